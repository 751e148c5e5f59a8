package dedup

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce/internal/settle"
)

// afterKill is how long a lease outlasts the instant at which the host ends the process. Lambda was seen to let a
// function run 0.7 s past its deadline.
const afterKill = 2 * time.Second

// phase is where a record lease is.
type phase int

const (
	phaseAsked      phase = iota // the acquire is not answered
	phaseGranted                 // the handler is about to start: ensureLive
	phaseRunning                 // the handler runs
	phaseOverdue                 // it runs, and is cancelled: the lease ended without an answer to a renewal
	phaseRefused                 // it runs, and is cancelled: the store refused the owner
	phaseCommitting              // an inbox commits: stopRenewal
	phaseReturned                // the handler has returned
	phaseCompleting              // the complete is sent again and again
	phaseClosed                  // the acquire was refused, or the delivery has ended
)

// recordLease is the record lease of one delivery. Its phase decides for which time its one timer waits, and what follows:
//
//	phase       next renewal   the lease's end     a renewal is refused  the handler returns  next phase by
//	asked       -              -                   -                     -                    acquireDone: granted or closed; see awaitAcquire
//	granted     by ensureLive  ensureLive renews   the delivery is lost  -                    startHandler: running
//	running     yes            overdue             refused               returned             stopRenewal: committing
//	overdue     yes            -                   refused               returned             stopRenewal: committing
//	refused     no             -                   -                     returned             stopRenewal: committing
//	committing  by stopRenewal the commit decides  nothing is committed  returned             -
//	returned    before Reject  -                   the delivery is lost  -                    startCompleting: completing
//	completing  yes            -                   returned, no retries  -                    the complete's end: returned
//	closed      no             -                   -                     -                    -
//
// end moves every phase to closed. overdue and refused cancel the handler. Renewals go on in overdue, and after the host has
// cancelled the handler's context, because the handler may still run, and another delivery must not start before a takeover.
type recordLease struct {
	once  *Once
	task  task
	owner string
	// length is the lease's, counted from each acquire and renewal. renewed says whether the lease is renewed. It is
	// not if it outlasts the process.
	length  time.Duration
	renewed bool

	acquired signal // the acquire was answered, or failed
	ended    signal // the delivery has ended, and its record is completed or released

	mu    sync.Mutex
	phase phase // only move changes it
	lease Lease // before the acquire is answered only Until, the end that was asked for
	lost  error // why the store refused the owner; nil: it did not

	patient   context.Context         // of the acquire, and of the handler if that has the host's; nil: there was no acquire
	giveUp    context.CancelCauseFunc // ends patient
	handler   leaseContext            // the context of the handler, whose values are the renewals'
	cancel    context.CancelCauseFunc // of what needs the lease: the handler, or the retries of the complete
	cancelled sync.Once               // the handler, because of the lease; not under mu
	failing   atomic.Bool             // a line says so of a renewal or the complete
	nested    bool                    // the call comes from inside a handler of a Once
	recording bool                    // see tellRecording; only the delivery's goroutine uses it

	timer   *time.Timer // tick
	due     time.Time   // of the next renewal, or the end of the acquire's patience
	renewal *renewal    // the one under way; nil: there is none
}

// renewal is one that is under way.
type renewal struct {
	done    chan struct{} // closed: it has ended
	abandon context.CancelFunc
}

// move changes the phase, and sets the timer for it. Under mu.
func (rl *recordLease) move(to phase) {
	rl.phase = to
	rl.setTimer(time.Now())
}

// renews reports whether the timer renews the lease. Under mu.
func (rl *recordLease) renews() bool {
	switch rl.phase {
	case phaseRunning, phaseOverdue, phaseCompleting:
		return rl.renewed
	}
	return false
}

// setTimer sets the timer for the end of the acquire's patience, or for the next renewal or the lease's end, whichever is earlier. Under
// mu.
func (rl *recordLease) setTimer(now time.Time) {
	const never = time.Duration(math.MaxInt64)
	wait := never
	if rl.phase == phaseAsked && rl.patient.Err() == nil || rl.renews() && rl.renewal == nil {
		wait = rl.due.Sub(now)
	}
	if rl.phase == phaseRunning {
		wait = min(wait, remaining(rl.lease.Until, now))
	}
	switch {
	case wait != never && rl.timer == nil:
		rl.timer = time.AfterFunc(wait, rl.tick)
	case wait != never:
		rl.timer.Reset(wait)
	case rl.timer != nil:
		rl.timer.Stop()
	}
}

// leaseContext is the context of a handler, with its record lease.
type leaseContext struct {
	context.Context
	rl *recordLease // nil: the handler runs without a record
}

// String prints no fields: what prints a context, as mocks do, would read them while they change.
func (c *leaseContext) String() string { return fmt.Sprint(c.Context) + ".dedup" }

func (c *leaseContext) Value(key any) any {
	if key == (leaseContextKey{}) {
		return c.rl
	}
	return c.Context.Value(key)
}

type leaseContextKey struct{}

func recordLeaseFrom(ctx context.Context) (*recordLease, bool) {
	rl, _ := ctx.Value(leaseContextKey{}).(*recordLease)
	return rl, rl != nil
}

// FenceFrom returns the fence of the record lease under which ctx's handler runs. It returns false without such a
// lease. The number is greater than that of every earlier owner of the same event's record, while the record is
// retained.
//
// Compare the number only on items that are keyed by the same event, because the numbers of different events are not
// comparable. For an entity that several events change, use the entity's own version.
func FenceFrom(ctx context.Context) (fence int64, ok bool) {
	l, ok := leaseFrom(ctx)
	return l.Fence, ok
}

func newRecordLease(o *Once, t task) *recordLease {
	rl := &recordLease{once: o, task: t, owner: newOwner()}
	now := time.Now()
	rl.setLength(now)
	rl.lease.Until = now.Add(rl.length)
	return rl
}

// setLength sets the length of a lease that starts now. Where the end of the process is known the lease outlasts it and
// needs no renewal. A known end that has passed was wrong (the process was frozen and resumed for another invocation):
// then the lease is renewed.
func (rl *recordLease) setLength(now time.Time) {
	rl.length, rl.renewed = rl.once.o.LeaseDuration, true
	if k := rl.task.killAt; k.After(now) {
		rl.length, rl.renewed = k.Sub(now)+afterKill, false
	}
}

// tellRecording tells the host whether this delivery has the message in place of a handler: see [settle.Record].
func (rl *recordLease) tellRecording(ctx context.Context, on bool) {
	if rl.recording == on {
		return
	}
	rl.recording = on
	if on {
		settle.Record(ctx)
	} else {
		settle.Recorded(ctx)
	}
}

// current returns the lease as the last accepted renewal left it.
func (rl *recordLease) current() Lease {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	return rl.lease
}

func (rl *recordLease) until() time.Time { return rl.current().Until }

func (rl *recordLease) left() time.Duration { return remaining(rl.until(), time.Now()) }

// live reports whether the acquire is not answered yet, or this delivery certainly owns the record.
func (rl *recordLease) live() bool {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	return rl.phase != phaseClosed && rl.lost == nil && remaining(rl.lease.Until, time.Now()) > 0
}

// acquireDone notes whether the record was granted. Peers that wait for it go on.
func (rl *recordLease) acquireDone(granted bool) {
	rl.mu.Lock()
	if granted {
		rl.move(phaseGranted)
	} else {
		rl.move(phaseClosed)
	}
	rl.mu.Unlock()
	rl.acquired.give()
}

// end lets the next delivery of the event join the peers, and then wakes those that wait.
func (rl *recordLease) end() {
	rl.once.peers.leave(rl.task.key, rl)
	rl.mu.Lock()
	rl.move(phaseClosed)
	rl.mu.Unlock()
	rl.ended.give()
	if rl.giveUp != nil {
		rl.giveUp(nil)
	}
}

// remaining returns the time until a time, by the one of two clocks that has run further since that time was computed.
// The monotonic clock stops while a machine is suspended or a Lambda environment frozen; the wall clock can be set back.
// An owner that trusted one of them would believe in a lease that is over.
func remaining(until, now time.Time) time.Duration {
	wall := until.Round(0).Sub(now.Round(0))
	return min(until.Sub(now), wall)
}

// anchor returns the same instant with a reading of the monotonic clock. Times computed from a server's date have none.
func anchor(until, now time.Time) time.Time { return now.Add(remaining(until, now)) }
