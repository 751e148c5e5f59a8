package dedup

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
)

// afterKill is how long a lease outlasts the instant at which the host ends the process: Lambda has been seen to let a
// function run 0.7 s past its deadline.
const afterKill = 2 * time.Second

// hold is one delivery attempt's hold on a record: pending until the store has answered, then a lease that is renewed
// until the handler has returned.
type hold struct {
	once  *Once
	task  task
	owner string
	// length is the lease's; renewed says whether it is extended while the handler runs.
	length  time.Duration
	renewed bool

	decided chan struct{} // closed: the store has answered the acquire
	ended   chan struct{} // closed: the delivery has its outcome, and its record was left

	mu      sync.Mutex
	refused bool  // the store's answer
	lease   Lease // while pending only Until, the end of what was asked for
	lost    bool  // the store said that the record is not ours any more
	told    bool  // the handler was cancelled
	watched bool  // the lease's end cancels the handler
	cancel  context.CancelCauseFunc
	expiry  *time.Timer

	renewals
}

type holdContextKey struct{}

func newHold(o *Once, t task) *hold {
	h := &hold{once: o, task: t, owner: rand.Text(), decided: make(chan struct{}), ended: make(chan struct{})}
	now := time.Now()
	h.measure(now)
	h.lease.Until = now.Add(h.length)
	return h
}

// measure sets the length of a lease taken now. A process whose end is known needs no renewals: its lease outlasts it.
// An instant that has passed was wrong (the process was frozen and thawed for another invocation): renewals again.
func (h *hold) measure(now time.Time) {
	h.length, h.renewed = h.once.o.Lease, true
	if k := h.task.killAt; k.After(now) {
		h.length, h.renewed = k.Sub(now)+afterKill, false
	}
}

// current returns the lease as the last accepted renewal left it.
func (h *hold) current() Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease
}

// until is the lease's end: when another delivery of the same process may come back.
func (h *hold) until() time.Time { return h.current().Until }

func (h *hold) left() time.Duration { return remaining(h.until(), time.Now()) }

// decide notes the store's answer to the acquire, and lets those that wait for it go on.
func (h *hold) decide(err error) {
	h.mu.Lock()
	h.refused = err != nil
	h.mu.Unlock()
	close(h.decided)
}

// end makes room for the next delivery of the event here, and then wakes those that wait for it.
func (h *hold) end() {
	h.once.memory.leave(h.task.key, h)
	close(h.ended)
}

// live reports whether the hold is pending or certainly has the record.
func (h *hold) live() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.lost && !h.refused && remaining(h.lease.Until, time.Now()) > 0
}

// ready makes sure that the lease is ahead when the handler starts. An answer can arrive after the lease it grants is
// over, when the request was slow or the process frozen in between; another owner may be running by then, and only the
// store can say. It returns [sqsonce.ErrLeaseLost] where that is so.
func (h *hold) ready(ctx context.Context, granted Lease) error {
	h.mu.Lock()
	h.lease = granted
	h.mu.Unlock()
	h.extended(granted.Until)
	for range 3 {
		now := time.Now()
		killed := !h.renewed && !h.task.killAt.After(now)
		if !killed && h.left() > 0 {
			return nil
		}
		h.measure(now)
		l, err := h.renewOnce(ctx)
		if err != nil {
			return err
		}
		h.extended(l.Until)
	}
	return errSlowStore
}

// extended notes an end that the store has granted. Of a renewed lease only the end is new.
func (h *hold) extended(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease.Until = anchor(until, time.Now())
}

// renewOnce asks the store for a new end. The call is short enough for a second one before the lease is over.
func (h *hold) renewOnce(ctx context.Context) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, min(h.once.o.CallTimeout, h.length/3))
	defer cancel()
	return h.once.store.Renew(ctx, h.current(), h.length)
}

// watch cancels the handler's context when the lease's end passes before a renewal is answered: the holder can no longer
// prove that the record is its own. Until the first renewal there is nothing to watch: it comes before the end.
func (h *hold) watch(cancel context.CancelCauseFunc) {
	h.mu.Lock()
	h.cancel, h.watched = cancel, true
	h.mu.Unlock()
	if !h.renewed {
		h.expire()
	}
}

// expire runs before each renewal and at what was the lease's end by then: after a suspend the timer is late, and the
// handler must be told first.
func (h *hold) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.watched {
		return
	}
	left := remaining(h.lease.Until, time.Now())
	switch {
	case left <= 0:
		h.tellLocked("the lease ended before a renewal was answered")
	case h.expiry == nil:
		h.expiry = time.AfterFunc(left, h.expire)
	default:
		h.expiry.Reset(left)
	}
}

// unwatch ends the watch: the handler has returned, or a commit's own condition decides from here on.
func (h *hold) unwatch() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watched = false
	if h.expiry != nil {
		h.expiry.Stop()
	}
}

// lose notes the store's word that the record is not ours any more.
func (h *hold) lose(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	why := "another owner has the record"
	if errors.Is(err, ErrForeignWriter) {
		why = "a program that knows no owners wrote the record"
		if !h.lost {
			h.once.counts.foreign.Add(1)
		}
	}
	h.lost = true
	h.tellLocked(why)
}

func (h *hold) isLost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// tellLocked cancels the handler, and counts it once.
func (h *hold) tellLocked(why string) {
	if h.told {
		return
	}
	h.told = true
	h.once.counts.leasesLost.Add(1)
	h.once.o.Logger.Warn("dedup: lease lost", "key", h.lease.Key, "fence", h.lease.Fence, "reason", why)
	h.cancel(sqsonce.ErrLeaseLost)
}
