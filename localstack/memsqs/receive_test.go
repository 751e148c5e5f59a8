package memsqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func TestLongPollWakes(t *testing.T) {
	wait := func(x *fixture) (time.Duration, []string) {
		start := time.Now()
		var bodies []string
		for _, m := range x.receive(10, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 20 }) {
			bodies = append(bodies, *m.Body)
		}
		return time.Since(start), bodies
	}
	check := func(x *fixture, want time.Duration, body string) {
		x.Helper()
		d, bodies := wait(x)
		if d != want || len(bodies) != 1 || bodies[0] != body {
			x.Fatalf("got %q after %v, want %q after %v", bodies, d, body, want)
		}
	}
	onStandard(t, "in the last moment", func(x *fixture) {
		x.send("a")
		x.ok(x.visibility(x.want("a")[0], 20))
		check(x, 20*time.Second, "a")
	})
	onStandard(t, "in the order of the polls", func(x *fixture) {
		got := make(chan string, 2)
		for _, name := range []string{"first", "second"} {
			go func() {
				_, bodies := wait(x)
				got <- name + " " + bodies[0]
			}()
			time.Sleep(time.Second)
		}
		x.send("a")
		if g := <-got; g != "first a" {
			x.Errorf("got %q, want %q", g, "first a")
		}
		x.send("b")
		if g := <-got; g != "second b" {
			x.Errorf("got %q, want %q", g, "second b")
		}
	})
}

func TestInFlightQuota(t *testing.T) {
	onStandard(t, "standard", func(x *fixture) {
		x.srv.LimitInFlight(2)
		for _, b := range []string{"a", "b", "c"} {
			x.send(b)
		}
		first := x.receive(1)[0]
		x.same(x.receive(1), "b")
		_, err := x.c.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{QueueUrl: &x.url})
		x.code(err, "OverLimit")
		x.after(3*time.Second, func() { x.ok(x.delete(first)) })
		start := time.Now()
		x.same(x.receive(1, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 5 }), "c") // a long poll waits and is no error
		if d := time.Since(start); d != 3*time.Second {
			x.Errorf("the poll woke after %v, want 3 s", d)
		}
	})
	onFIFO(t, "FIFO", func(x *fixture) {
		x.srv.LimitInFlight(1)
		x.send("a1", "a")
		x.send("b1", "b")
		first := x.receive(1)[0]
		x.want()
		x.ok(x.delete(first))
		x.want("b1")
	})
}

func TestReceiveRequestAttempt(t *testing.T) {
	id := "attempt-1"
	attempt := func(in *sqs.ReceiveMessageInput) { in.ReceiveRequestAttemptId = &id }
	onFIFO(t, "not beyond 12 hours from the receive", func(x *fixture) {
		x.send("a1", "a")
		long := func(in *sqs.ReceiveMessageInput) { attempt(in); in.VisibilityTimeout = 43200 }
		x.receive(1, long)
		time.Sleep(4 * time.Minute)
		x.same(x.receive(1, long), "a1")
		time.Sleep(43200*time.Second - 4*time.Minute)
		x.want("a1")
	})
	onFIFO(t, "not after expiry", func(x *fixture) {
		x.send("a1", "a")
		x.receive(1, attempt)
		time.Sleep(30 * time.Second)
		if m := x.receive(1, attempt)[0]; count(m) != 2 {
			x.Errorf("receive count %d, want 2", count(m))
		}
	})
	onFIFO(t, "not what another has received since", func(x *fixture) {
		x.send("a1", "a")
		x.receive(1, attempt)
		time.Sleep(30 * time.Second)
		x.want("a1")
		x.same(x.receive(1, attempt))
	})
	onStandard(t, "not on a standard queue", func(x *fixture) {
		_, err := x.c.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{QueueUrl: &x.url, ReceiveRequestAttemptId: &id})
		x.code(err, invalidValue)
	})
}
