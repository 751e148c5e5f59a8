package memsqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

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
			time.Sleep(20 * time.Second) // the replay reset the visibility timeout
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
