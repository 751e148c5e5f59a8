package attack

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/inboxkit"
	"github.com/sqsonce/sqsonce/internal/proof/process"
)

// host runs deliveries and reports what happens, in the test's process or in one of its own.
type host struct {
	handler sqsonce.Handler
	report  func(note)
}

// note is what a host reports. Its times are Unix nanoseconds of the clock that all hosts share.
type note struct {
	What     string
	Event    string
	Delivery int64
	At       int64
	Fence    int64  `json:",omitempty"` // of the handler's lease
	Until    int64  `json:",omitempty"` // its end
	Error    string `json:",omitempty"` // of the delivery
}

const (
	ready = "ready" // of a process
	// Of the handler. A note is written before the handler goes on.
	started   = "started"
	renewed   = "renewed"
	goesOn    = "goes on"   // its lease is over, and its context is not cancelled
	ended     = "ended"     // before its outcome is recorded
	completed = "completed" // its record
	// Of the delivery.
	succeeded     = "succeeded"
	failed        = "failed"
	accused       = "failed by itself"
	crashed       = "crashed"
	misconfigured = "misconfigured"
)

// ofDelivery reports that the delivery has ended.
func (n note) ofDelivery() bool {
	switch n.What {
	case succeeded, failed, accused, crashed, misconfigured:
		return true
	}
	return false
}

// newHost opens the target's store or inbox.
func newHost(t *testing.T, target Target, inbox bool, addr string, report func(note)) *host {
	h := &host{report: report}
	if inbox {
		h.handler = target.Inbox(t, addr, h.work)
		return h
	}
	o, err := dedup.New(doomed{target.Store(t, addr), report}, "attack", Options)
	if err != nil {
		t.Fatal(err)
	}
	h.handler = o.Handler(func(ctx context.Context, m *sqsonce.Message) error { return h.work(ctx, m.ID) })
	return h
}

type deliveryKey struct{}

// deliver delivers an event.
func (h *host) deliver(number int64, event string) {
	ctx := context.WithValue(context.Background(), deliveryKey{}, delivery{number, event})
	err := h.handler(ctx, &sqsonce.Message{ID: event, Body: "{}", ReceiveCount: 1 + rand.IntN(2), QueueARN: "arn:aws:sqs:us-east-1:1:attack"})
	process.At(deliveryEnd)
	n := note{What: outcome(err), Event: event, Delivery: number, At: time.Now().UnixNano()}
	if err != nil {
		n.Error = err.Error()
		time.Sleep(rand.N(20 * time.Millisecond)) // the message is hidden
	}
	h.report(n)
}

func outcome(err error) string {
	switch {
	case err == nil:
		return succeeded
	case errors.Is(err, dedup.ErrCrashed):
		return crashed
	case errors.Is(err, sqsonce.ErrMisconfigured):
		return misconfigured
	case sqsonce.OutcomeOf(err).Kind == sqsonce.OutcomeFailed:
		return accused
	default:
		return failed
	}
}

var errWork = errors.New("the handler fails")

// work is what a handler does: for milliseconds, or for up to three leases. Half of the handlers do not look at
// their context, so that their completes come when the lease is long over.
func (h *host) work(ctx context.Context, event string) error {
	say := func(what string) (until time.Time) {
		l, _ := inboxkit.LeaseFrom(ctx)
		h.report(note{
			What: what, Event: event, Delivery: ctx.Value(deliveryKey{}).(delivery).Number,
			At: time.Now().UnixNano(), Fence: l.Fence, Until: l.Until.UnixNano(),
		})
		return l.Until
	}
	until := say(started)
	process.At(handlerStart)
	defer func() {
		process.At(handlerEnd)
		say(ended)
	}()
	d := rand.N(20 * time.Millisecond)
	if isLong(event) {
		d = lease/2 + rand.N(2*lease)
	}
	over, cancelled := time.After(d), ctx.Done()
	if rand.IntN(2) == 0 {
		cancelled = nil
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-over:
			if !checkCancelled(ctx) {
				say(goesOn)
			}
			if ctx.Err() != nil {
				time.Sleep(lease / 4) // renewals go on
			}
			if rand.IntN(8) == 0 {
				return errWork
			}
			return nil
		case <-cancelled:
			return context.Cause(ctx)
		case <-tick.C:
			if l, _ := inboxkit.LeaseFrom(ctx); !l.Until.Equal(until) {
				until = say(renewed)
			}
		}
	}
}

// isLong picks one event in eight. All runs of it are long, so that an owner that was stopped meets its successor at work.
func isLong(event string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(event))
	return h.Sum32()%8 == 0
}

// checkCancelled reports false where the handler's lease is over and its context is not cancelled. A process that was
// stopped goes on with any of its goroutines.
func checkCancelled(ctx context.Context) bool {
	for end := time.Now().Add(30 * time.Second); ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if l, _ := inboxkit.LeaseFrom(ctx); l.Until.After(time.Now()) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
