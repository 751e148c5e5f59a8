package memsqs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
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

const (
	notInFlight  = "AWS.SimpleQueueService.MessageNotInflight"
	invalidValue = "InvalidParameterValue"
)

func TestForgedHandles(t *testing.T) {
	standard(t, func(x *fixture) {
		x.send("a")
		m := x.want("a")[0]
		h := *m.ReceiptHandle
		for _, forged := range []string{h + "AAAA", h[:len(h)-4], h[:30] + string(rune('A'+h[30]%2)) + h[31:]} {
			x.code(x.delete(types.Message{ReceiptHandle: &forged}), "ReceiptHandleIsInvalid")
		}
		x.ok(x.delete(m))
	})
}

// The errors that Options.StrictHandles gives where AWS was recorded to forgive. On a FIFO queue they are the same.
func TestStrictHandles(t *testing.T) {
	t.Parallel()
	for group, queue := range map[string]func(*testing.T, func(*fixture), ...func(*memsqs.Options)){"": standard, "group": fifo} {
		queue(t, func(x *fixture) {
			x.send("a", slices.DeleteFunc([]string{group}, func(g string) bool { return g == "" })...)
			first := x.want("a")[0]
			x.ok(x.visibility(first, 0))
			second := x.want("a")[0]
			x.code(x.visibility(first, 0), invalidValue)
			x.want()
			time.Sleep(30 * time.Second)
			x.code(x.visibility(second, 100), notInFlight)
			out := must.Get(x.c.ChangeMessageVisibilityBatch(x.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &x.url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
				{Id: aws.String("1"), ReceiptHandle: second.ReceiptHandle, VisibilityTimeout: 100},
			}}))(x)
			if len(out.Failed) != 1 {
				x.Errorf("in a batch: %d failed, want 1", len(out.Failed))
			}
			x.want("a") // it is not hidden again
		}, strictHandles)
	}
}
