package lambda

import (
	"testing"
	"time"
)

// A redrive policy that is attached while a process lives is used within 5 min.
func TestPolicyIsAttached(t *testing.T) {
	withQueue(t, true, nil, func(x *fixture) {
		f := x.wrap(fails(errTest))
		x.send("a1")
		x.failed(f, 30*time.Second, x.receive())
		x.redrive(2)
		time.Sleep(5 * time.Minute)
		if got := x.failed(f, 30*time.Second, x.receive()); got != "" || x.dead() != "a1: it failed" {
			t.Errorf("failed %q, dead-lettered %q; want the message dead-lettered with its reason", got, x.dead())
		}
		if n := x.calls(opAttributes); n != 2 {
			t.Errorf("%d calls of GetQueueAttributes, want 2", n)
		}
	})
}

// A receive count that began in another queue makes no receive the last one.
func TestMovedMessageIsNotSpent(t *testing.T) {
	withQueue(t, true, nil, func(x *fixture) {
		x.redrive(1)
		x.send("a1")
		e := x.receive()
		e.Records[0].Attributes["DeadLetterQueueSourceArn"] = standardARN
		if got := x.failed(x.wrap(fails(errTest)), 30*time.Second, e); got != "a1" || x.dead() != "" {
			t.Errorf("failed %q, dead-lettered %q; want a failure as any other", got, x.dead())
		}
	})
}
