package dedup

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
)

// afterKill is how long a lease outlasts the instant at which the host ends the process. Lambda was seen to let a
// function run 0.7 s past its deadline.
const afterKill = 2 * time.Second

// leastRetry is the least time between a renewal that failed and the next one, but for a lease of less than 3 s.
const leastRetry = time.Second

var errSlowStore = errors.New("renewal answered after the end of the lease that it granted: set Options.Lease longer than the store takes to answer")

// recordLease is the record lease of one delivery: requested until the store has answered the acquire, then renewed until
// the handler has returned.
type recordLease struct {
	once  *Once
	task  task
	owner string
	// length is the lease's from each acquire and renewal on. renewed says whether it is renewed while the handler runs.
	length  time.Duration
	renewed bool

	acquired chan struct{} // closed: the acquire was answered, or failed
	ended    chan struct{} // closed: the delivery has ended, and its record is completed or released

	mu        sync.Mutex
	refused   bool      // the acquire was refused, or failed
	lease     Lease     // before the acquire is answered only Until, the end that was asked for
	lost      error     // why the store refused the owner; nil: it did not
	cancelled sync.Once // the handler's context, because of the lease; not under mu

	// The end of the lease cancels the handler: watch.
	watched bool
	ctx     context.Context // the handler's
	cancel  context.CancelCauseFunc
	expiry  *time.Timer

	// The renewals: startRenewing.
	timer    *time.Timer        // the next one; nil: there are none
	stopped  bool               // no more of them
	inFlight chan struct{}      // closed: the one in flight has ended; nil: there is none
	abandon  context.CancelFunc // cancels the one in flight

	// While the record is being completed: renewAgain.
	completing context.CancelFunc // ends the retries of the complete; nil: the handler runs
	refusal    error              // of a renewal
}

type leaseContextKey struct{}

func recordLeaseFrom(ctx context.Context) (*recordLease, bool) {
	rl, ok := ctx.Value(leaseContextKey{}).(*recordLease)
	return rl, ok
}

// FenceFrom returns the fence of the record lease under which ctx's handler runs, and false where there is none. The
// number is greater than that of every earlier owner of the same event's record, while the record is retained.
//
// Compare it only on items that are keyed by the same event: the numbers of different events are not comparable. For an
// entity that several events change use the entity's own version.
func FenceFrom(ctx context.Context) (fence int64, ok bool) {
	l, ok := LeaseFrom(ctx)
	return l.Fence, ok
}

func newRecordLease(o *Once, t task) *recordLease {
	rl := &recordLease{once: o, task: t, owner: rand.Text(), acquired: make(chan struct{}), ended: make(chan struct{})}
	now := time.Now()
	rl.setLength(now)
	rl.lease.Until = now.Add(rl.length)
	return rl
}

// setLength sets the length of a lease that starts now. Where the end of the process is known the lease outlasts it and
// needs no renewal. A known end that has passed was wrong (the process was frozen and resumed for another invocation):
// then the lease is renewed.
func (rl *recordLease) setLength(now time.Time) {
	rl.length, rl.renewed = rl.once.o.Lease, true
	if k := rl.task.killAt; k.After(now) {
		rl.length, rl.renewed = k.Sub(now)+afterKill, false
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
	return rl.lost == nil && !rl.refused && remaining(rl.lease.Until, time.Now()) > 0
}

// acquireDone notes whether the acquire succeeded. Peers that wait for it go on.
func (rl *recordLease) acquireDone(err error) {
	rl.mu.Lock()
	rl.refused = err != nil
	rl.mu.Unlock()
	close(rl.acquired)
}

// end lets the next delivery of the event join the peers, and then wakes those that wait.
func (rl *recordLease) end() {
	rl.once.peers.leave(rl.task.key, rl)
	close(rl.ended)
}

// ensureLive makes sure that the lease is live when the handler starts. The acquire's answer can come when the lease that
// it grants is over: the request was slow, or the process was frozen meanwhile. Another owner may run by then, and only
// the store knows. A renewal asks it: [sqsonce.ErrLeaseLost] says that there is another owner.
func (rl *recordLease) ensureLive(ctx context.Context, granted Lease) error {
	rl.mu.Lock()
	rl.lease = granted
	rl.mu.Unlock()
	rl.setUntil(granted.Until)
	for range 3 {
		now := time.Now()
		pastKill := !rl.renewed && !rl.task.killAt.After(now)
		if !pastKill && rl.left() > 0 {
			return nil
		}
		rl.setLength(now)
		l, err := rl.callRenew(ctx)
		if err != nil {
			return err
		}
		rl.setUntil(l.Until)
	}
	return errSlowStore
}

// setUntil notes an end that the store has granted. A renewal changes nothing else of a lease.
func (rl *recordLease) setUntil(until time.Time) {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	rl.lease.Until = anchor(until, time.Now())
}

// callRenew asks the store for a new end. The call is short enough for a second one before the lease is over.
func (rl *recordLease) callRenew(ctx context.Context) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, min(rl.once.o.CallTimeout, rl.length/3))
	defer cancel()
	return rl.once.store.Renew(ctx, rl.current(), rl.length)
}

// renew moves the lease's end, or notes that the store refused the owner.
func (rl *recordLease) renew(ctx context.Context) error {
	rl.checkEnd()
	l, err := rl.callRenew(ctx)
	switch {
	case err == nil:
		rl.setUntil(l.Until)
	case errors.Is(err, sqsonce.ErrLeaseLost):
		if !rl.refusedWhileCompleting(err) {
			rl.lose(err)
		}
	case ctx.Err() == nil: // else the handler has returned, and the renewal was abandoned
		rl.once.counts.storeErrors.Add(1)
		rl.once.o.Logger.WarnContext(ctx, "dedup: renewal failed", "key", rl.task.key, "error", err)
	}
	return err
}

// startRenewing renews the lease at a third of its length until stopRenewing. A renewal that failed is retried sooner;
// one that was refused is the last.
//
// Renewals go on after the handler's context was cancelled, by the host or because the lease ended: the handler may still
// run, and no other delivery may start while nobody has taken over.
func (rl *recordLease) startRenewing(ctx context.Context) {
	if !rl.renewed {
		return
	}
	first := min(rl.length/3, rl.left())
	rl.mu.Lock()
	defer rl.mu.Unlock()
	rl.stopped = false
	rl.timer = time.AfterFunc(first, func() { rl.renewOnTimer(ctx) })
}

// renewAgain starts the renewals again, after stopRenewing, while the record is being completed. A renewal that is refused
// calls refused: see refusedRenewal.
func (rl *recordLease) renewAgain(ctx context.Context, refused context.CancelFunc) {
	rl.mu.Lock()
	rl.completing = refused
	rl.mu.Unlock()
	rl.startRenewing(ctx)
}

func (rl *recordLease) refusedWhileCompleting(refusal error) bool {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	if rl.completing == nil {
		return false
	}
	rl.refusal = refusal
	rl.completing()
	return true
}

// refusedRenewal returns the refusal of a renewal while the record was being completed, or nil.
func (rl *recordLease) refusedRenewal() error {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	return rl.refusal
}

// renewOnTimer makes one renewal and starts the timer for the next.
func (rl *recordLease) renewOnTimer(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	rl.mu.Lock()
	if rl.stopped { // while the timer fired, or during the last renewal
		rl.mu.Unlock()
		return
	}
	rl.inFlight, rl.abandon = make(chan struct{}), cancel
	rl.mu.Unlock()

	sent := time.Now()
	err := rl.renew(ctx)
	next := rl.length / 3
	if err != nil {
		next = max(rl.length/12, min(leastRetry, next))
	}
	rl.mu.Lock()
	defer rl.mu.Unlock()
	close(rl.inFlight)
	rl.inFlight = nil
	if !rl.stopped && !errors.Is(err, sqsonce.ErrLeaseLost) {
		rl.timer.Reset(max(next-time.Since(sent), rl.length/100))
	}
}

// stopRenewing ends the renewals and returns when none is in flight. abandon cancels the one in flight: the handler has
// returned, and the complete or release that follows does not wait for it.
func (rl *recordLease) stopRenewing(abandon bool) {
	rl.mu.Lock()
	rl.stopped = true
	if rl.timer != nil {
		rl.timer.Stop()
	}
	inFlight, cancel := rl.inFlight, rl.abandon
	rl.mu.Unlock()
	if inFlight == nil {
		return
	}
	if abandon {
		cancel()
	}
	<-inFlight
}

// prepareCommit is [StopRenewal].
func (rl *recordLease) prepareCommit(ctx context.Context, least time.Duration) (Lease, error) {
	rl.stopRenewing(false) // the one in flight has a timeout of its own
	rl.unwatch()
	if err := rl.lostError(); err != nil {
		return Lease{}, err
	}
	if left := rl.left(); left < least && rl.renewed || left <= 0 {
		rl.setLength(time.Now())
		// A renewal that fails while the lease is live changes nothing.
		err := rl.renew(context.WithoutCancel(ctx))
		if errors.Is(err, sqsonce.ErrLeaseLost) {
			return Lease{}, fmt.Errorf("dedup: renewal refused, do not commit %s: %w", rl.once.record(rl.task.key), err)
		}
		if rl.left() <= 0 {
			err = cmp.Or(err, errSlowStore)
			return Lease{}, fmt.Errorf("dedup: lease over and not renewed, do not commit %s: %w", rl.once.record(rl.task.key), err)
		}
	}
	return rl.current(), nil
}

// watch cancels the handler's context when the lease ends before a renewal is answered: the delivery can then no longer
// prove that it owns the record. Where the lease is renewed, the first renewal comes before its end and starts the watch.
func (rl *recordLease) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	rl.mu.Lock()
	rl.ctx, rl.cancel, rl.watched = ctx, cancel, true
	rl.mu.Unlock()
	if !rl.renewed {
		rl.checkEnd()
	}
}

// checkEnd cancels the handler where the lease is over, and else runs again at its end. It also runs before each renewal:
// the timer of a suspended machine fires late, and the handler must be cancelled before the store is asked.
func (rl *recordLease) checkEnd() {
	if rl.hasEnded() {
		rl.cancelHandler(IncidentExpired, "the lease ended before a renewal was answered", nil)
	}
}

// hasEnded reports whether the lease is over while the handler depends on it. Where it is not, checkEnd runs at its end.
func (rl *recordLease) hasEnded() bool {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	if !rl.watched {
		return false
	}
	left := remaining(rl.lease.Until, time.Now())
	switch {
	case left <= 0:
		return true
	case rl.expiry == nil:
		rl.expiry = time.AfterFunc(left, rl.checkEnd)
	default:
		rl.expiry.Reset(left)
	}
	return false
}

// unwatch ends the watch: the handler has returned, or the condition of an inbox's commit decides from here on.
func (rl *recordLease) unwatch() {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	rl.watched = false
	if rl.expiry != nil {
		rl.expiry.Stop()
	}
}

// lose notes that the store refused the owner, and cancels the handler.
func (rl *recordLease) lose(refusal error) {
	rl.mu.Lock()
	if rl.lost == nil {
		rl.lost = rl.once.lostError(rl.task.key, refusal)
		if errors.Is(refusal, ErrForeignWriter) {
			rl.once.counts.foreign.Add(1)
		}
	}
	rl.mu.Unlock()
	rl.cancelHandler(lostKind(refusal), whyLost(refusal), refusal)
}

// lostError returns the error of a delivery whose owner the store refused, and nil where it did not.
func (rl *recordLease) lostError() error {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	return rl.lost
}

// cancelHandler cancels the handler once, and counts it. Whoever returns from here knows that it is cancelled. Hooks may ask for
// the lease: they are not called under the lock.
func (rl *recordLease) cancelHandler(kind IncidentKind, why string, refusal error) {
	rl.cancelled.Do(func() {
		rl.mu.Lock()
		l, ctx, cancel := rl.lease, rl.ctx, rl.cancel
		rl.mu.Unlock()
		defer cancel(sqsonce.ErrLeaseLost)
		rl.once.counts.leasesLost.Add(1)
		rl.once.o.Logger.WarnContext(ctx, "dedup: lease lost", "key", l.Key, "fence", l.Fence, "reason", why)
		rl.once.incident(ctx, Incident{Key: l.Key, Kind: kind, Fence: l.Fence, Err: refusal})
	})
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
