package lambda

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// once wraps a handler in dedup with a store in memory.
func once(t *testing.T, h sqsonce.Handler) sqsonce.Handler {
	t.Helper()
	o, err := dedup.New(memstore.New(), "billing")
	if err != nil {
		t.Fatal(err)
	}
	return o.Handler(h)
}

// TestOncePerEvent: the same message ten times in one event, then ten times more: one run, and in the end no failure.
func TestOncePerEvent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var n atomic.Int64
		f := wrap(t, once(t, func(ctx context.Context, m *sqsonce.Message) error {
			n.Add(1)
			return takes(2*time.Second)(ctx, m) // longer than a duplicate waits
		}))
		ten := batch("1", "1", "1", "1", "1", "1", "1", "1", "1", "1")
		// The copies that find the event in progress fail, so the response names the ID.
		if got := invoke(t, f, timeout(t, 30*time.Second), ten); got != "1" || n.Load() != 1 {
			t.Errorf("failed %q, %d runs; want 1, 1", got, n.Load())
		}
		// In the second event one copy finds the completed record, and the others get its result.
		time.Sleep(visibility)
		invoke(t, f, timeout(t, 30*time.Second), ten)
		if got := invoke(t, f, timeout(t, 30*time.Second), ten); got != "" || n.Load() != 1 {
			t.Errorf("later: failed %q, %d runs; want none, 1", got, n.Load())
		}
	})
}

// TestCopiesWaitInTheInvocation: Lambda cannot hold a message. A copy waits in its handler until the event is completed, so
// that one receive is enough.
func TestCopiesWaitInTheInvocation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var n atomic.Int64
		f := wrap(t, once(t, func(ctx context.Context, m *sqsonce.Message) error {
			n.Add(1)
			return takes(900*time.Millisecond)(ctx, m)
		}))
		if got := invoke(t, f, timeout(t, 30*time.Second), batch("1", "1", "1", "2")); got != "" || n.Load() != 2 {
			t.Errorf("failed %q, %d runs; want none, 2", got, n.Load())
		}
	})
}

// TestAbandonedCompletesItsRecord: a handler that returns after the response has had its effect and completes its record: the
// next delivery succeeds without a run.
func TestAbandonedCompletesItsRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var n atomic.Int64
		f := wrap(t, once(t, func(ctx context.Context, m *sqsonce.Message) error {
			n.Add(1)
			return ignores(25*time.Second)(ctx, m)
		}))
		if got := invoke(t, f, timeout(t, 20*time.Second), batch("1")); got != "1" {
			t.Errorf("failed: got %q, want 1", got)
		}
		time.Sleep(visibility)
		if got := invoke(t, f, timeout(t, 20*time.Second), batch("1")); got != "" || n.Load() != 1 {
			t.Errorf("later: failed %q, %d runs; want none, 1", got, n.Load())
		}
	})
}

// TestRecordIsReleasedWhenRejected: while a rejected message is being sent to the dead-letter queue its record is under its
// lease, and a second delivery of the event does not run. After the confirmation a redrive runs the handler again.
func TestRecordIsReleasedWhenRejected(t *testing.T) {
	withQueue(t, false, []fault.Rule{{Op: opSend, Nth: 2, Do: fault.Delay, Delay: 4 * time.Second}}, func(x *fixture) {
		x.send("1")
		var n atomic.Int64
		f := x.wrap(once(t, func(context.Context, *sqsonce.Message) error {
			n.Add(1)
			return sqsonce.Reject(errTest)
		}))
		e := x.receive()
		first := make(chan string)
		go func() { first <- x.failed(f, 30*time.Second, e) }()
		time.Sleep(2 * time.Second)
		if got := x.failed(f, 30*time.Second, e); got != "1" || n.Load() != 1 {
			t.Errorf("second delivery during the send: failed %q, %d runs; want 1, 1", got, n.Load())
		}
		if got := <-first; got != "" {
			t.Errorf("the rejected message: failed %q, want none", got)
		}
		if x.failed(f, 30*time.Second, e); n.Load() != 2 {
			t.Errorf("%d runs after the redrive, want 2", n.Load())
		}
	})
}
