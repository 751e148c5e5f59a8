package memsqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func TestSendReceiveDelete(t *testing.T) {
	standard(t, func(x *fixture) {
		sent := x.send("a")
		got := x.want("a")
		if *got[0].MessageId != *sent.MessageId {
			x.Errorf("message ID %s, want %s", *got[0].MessageId, *sent.MessageId)
		}
		x.want()
		x.ok(x.delete(got[0]))
		if messages := x.srv.Messages(x.url); len(messages) != 0 {
			x.Errorf("messages %v, want none", messages)
		}
	})
}

func TestVisibilityTimeoutEnds(t *testing.T) {
	standard(t, func(x *fixture) {
		x.send("a")
		first := x.want("a")[0]
		time.Sleep(30*time.Second - 1)
		x.want()
		time.Sleep(time.Nanosecond)
		second := x.want("a")[0]
		if count(first) != 1 || count(second) != 2 {
			x.Errorf("receive counts %d, %d, want 1, 2", count(first), count(second))
		}
		if *first.ReceiptHandle == *second.ReceiptHandle {
			x.Error("the receipt handle did not change")
		}
	})
}

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
		if d != want || body != "" && (len(bodies) != 1 || bodies[0] != body) || body == "" && len(bodies) != 0 {
			x.Fatalf("got %q after %v, want %q after %v", bodies, d, body, want)
		}
	}
	t.Run("at the end, and receives nothing after it", func(t *testing.T) {
		standard(t, func(x *fixture) {
			check(x, 20*time.Second, "")
			x.send("a")
			x.want("a")
		})
	})
	t.Run("on a send", func(t *testing.T) {
		standard(t, func(x *fixture) {
			x.after(3*time.Second, func() { x.send("a") })
			check(x, 3*time.Second, "a")
		})
	})
	t.Run("when visibility ends", func(t *testing.T) {
		standard(t, func(x *fixture) {
			x.send("a")
			x.ok(x.visibility(x.want("a")[0], 7))
			check(x, 7*time.Second, "a")
		})
	})
	t.Run("when visibility is given up", func(t *testing.T) {
		standard(t, func(x *fixture) {
			x.send("a")
			m := x.want("a")[0]
			x.after(4*time.Second, func() { x.ok(x.visibility(m, 0)) })
			check(x, 4*time.Second, "a")
		})
	})
	t.Run("when a delay ends", func(t *testing.T) {
		run(t, "jobs", attrs{"DelaySeconds": "5"}, func(x *fixture) {
			x.send("a")
			check(x, 5*time.Second, "a")
		})
	})
	t.Run("when a FIFO delete frees the group", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			x.send("a1", "a")
			x.send("a2", "a")
			m := x.receive(1)[0]
			x.after(2*time.Second, func() { x.ok(x.delete(m)) })
			check(x, 2*time.Second, "a2")
		})
	})
	t.Run("in the last moment", func(t *testing.T) {
		standard(t, func(x *fixture) {
			x.send("a")
			x.ok(x.visibility(x.want("a")[0], 20))
			check(x, 20*time.Second, "a")
		})
	})
	t.Run("in the order of the polls", func(t *testing.T) {
		standard(t, func(x *fixture) {
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
	})
}

func TestReceiveLimits(t *testing.T) {
	standard(t, func(x *fixture) {
		for _, in := range []sqs.ReceiveMessageInput{{MaxNumberOfMessages: 11}, {MaxNumberOfMessages: -1}, {WaitTimeSeconds: 21}, {VisibilityTimeout: 43201}} {
			in.QueueUrl = &x.url
			_, err := x.c.ReceiveMessage(x.Context(), &in)
			x.code(err, invalidValue)
		}
		x.send("a")
		x.send("b")
		out, err := x.c.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{QueueUrl: &x.url})
		x.ok(err)
		x.same(out.Messages, "a") // the default is one message
	})
}

func TestInFlightQuota(t *testing.T) {
	t.Run("standard", func(t *testing.T) {
		standard(t, func(x *fixture) {
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
	})
	t.Run("FIFO", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			x.srv.LimitInFlight(1)
			x.send("a1", "a")
			x.send("b1", "b")
			first := x.receive(1)[0]
			x.want()
			x.ok(x.delete(first))
			x.want("b1")
		})
	})
}

func TestReceiveRequestAttempt(t *testing.T) {
	id := "attempt-1"
	attempt := func(in *sqs.ReceiveMessageInput) { in.ReceiveRequestAttemptId = &id }
	t.Run("replays", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			x.send("a1", "a")
			x.send("a2", "a")
			x.send("b1", "b")
			first := x.receive(2, attempt)
			time.Sleep(20 * time.Second)
			second := x.receive(2, attempt)
			x.same(second, "a1", "a2")
			if *first[0].ReceiptHandle != *second[0].ReceiptHandle || count(second[0]) != 1 {
				x.Error("the replay has another receipt handle or counts as a receive")
			}
			x.want("b1")
			time.Sleep(20 * time.Second) // the replay has started the visibility timeout again
			x.want()
			x.ok(x.delete(second[0]))
		})
	})
	t.Run("not beyond 12 hours from the receive", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			x.send("a1", "a")
			long := func(in *sqs.ReceiveMessageInput) { attempt(in); in.VisibilityTimeout = 43200 }
			x.receive(1, long)
			time.Sleep(4 * time.Minute)
			x.same(x.receive(1, long), "a1")
			time.Sleep(43200*time.Second - 4*time.Minute)
			x.want("a1")
		})
	})
	t.Run("not after a change", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			x.send("a1", "a")
			x.ok(x.visibility(x.receive(1, attempt)[0], 30))
			x.same(x.receive(1, attempt))
		})
	})
	t.Run("not after a delete", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			x.send("a1", "a")
			x.send("a2", "a")
			x.ok(x.delete(x.receive(2, attempt)[0]))
			x.same(x.receive(2, attempt))
		})
	})
	t.Run("not after expiry", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			x.send("a1", "a")
			x.receive(1, attempt)
			time.Sleep(30 * time.Second)
			if m := x.receive(1, attempt)[0]; count(m) != 2 {
				x.Errorf("receive count %d, want 2", count(m))
			}
		})
	})
	t.Run("not what another has received since", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			x.send("a1", "a")
			x.receive(1, attempt)
			time.Sleep(30 * time.Second)
			x.want("a1")
			x.same(x.receive(1, attempt))
		})
	})
	t.Run("not after five minutes", func(t *testing.T) {
		run(t, "jobs.fifo", attrs{"VisibilityTimeout": "600"}, func(x *fixture) {
			x.send("a1", "a")
			x.receive(1, attempt)
			time.Sleep(5 * time.Minute)
			x.same(x.receive(1, attempt))
		})
	})
	t.Run("not on a standard queue", func(t *testing.T) {
		standard(t, func(x *fixture) {
			_, err := x.c.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{QueueUrl: &x.url, ReceiveRequestAttemptId: &id})
			x.code(err, invalidValue)
		})
	})
}
