package memsqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func TestGroupFillsAReceive(t *testing.T) {
	fifo(t, func(x *fixture) {
		for _, b := range []string{"a1", "b1", "a2", "b2", "a3"} {
			x.send(b, b[:1])
		}
		x.want("a1", "a2", "a3", "b1", "b2")
	})
}

func TestGroupIsLocked(t *testing.T) {
	t.Run("while its first message is in flight", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			for _, b := range []string{"a1", "a2", "b1"} {
				x.send(b, b[:1])
			}
			x.same(x.receive(1), "a1")
			x.same(x.receive(1), "b1")
			x.want()
			x.send("a3", "a")
			x.want()
		})
	})
	t.Run("until all received ones are deleted", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			for _, b := range []string{"a1", "a2", "a3", "a4"} {
				x.send(b, "a")
			}
			got := x.receive(3)
			x.same(got, "a1", "a2", "a3")
			x.ok(x.delete(got[0]))
			x.want()
			x.ok(x.delete(got[2]))
			x.want()
			x.ok(x.delete(got[1]))
			x.want("a4")
		})
	})
	t.Run("after a deleted head, until the others expire", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			for _, b := range []string{"a1", "a2", "a3"} {
				x.send(b, "a")
			}
			got := x.want("a1", "a2", "a3")
			x.ok(x.delete(got[0]))
			time.Sleep(30 * time.Second)
			x.want("a2", "a3")
		})
	})
	t.Run("from the first message still invisible", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			for _, b := range []string{"a1", "a2", "a3"} {
				x.send(b, "a")
			}
			got := x.want("a1", "a2", "a3")
			x.ok(x.visibility(got[1], 60))
			time.Sleep(30 * time.Second)
			first := x.want("a1")[0] // a3 is visible too, but a2, before it, is not
			x.ok(x.delete(first))
			x.want()
			time.Sleep(30 * time.Second)
			x.want("a2", "a3")
		})
	})
	t.Run("by a head with a longer visibility timeout", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			for _, b := range []string{"a1", "a2"} {
				x.send(b, "a")
			}
			got := x.want("a1", "a2")
			x.ok(x.visibility(got[0], 45))
			x.ok(x.visibility(got[1], 0))
			x.want()
			time.Sleep(45 * time.Second)
			x.want("a1", "a2")
		})
	})
}

func TestReleasedMessageIsTheHeadAgain(t *testing.T) {
	fifo(t, func(x *fixture) {
		x.send("a1", "a")
		m := x.want("a1")[0]
		x.send("a2", "a")
		x.ok(x.visibility(m, 0))
		x.want("a1", "a2")
	})
}

func TestQueueDelayOfFIFO(t *testing.T) {
	run(t, "jobs.fifo", attrs{"DelaySeconds": "10"}, func(x *fixture) {
		x.send("a1", "a")
		x.want()
		time.Sleep(10 * time.Second)
		x.want("a1")
	})
	t.Run("changed later", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			x.send("a1", "a")
			_, err := x.c.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &x.url, Attributes: attrs{"DelaySeconds": "10"}})
			x.ok(err)
			x.want()
			time.Sleep(10 * time.Second)
			x.want("a1")
		})
	})
}
