package memsqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

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
			x.same(x.receive(1, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 5 }), "c") // a long poll waits instead
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
