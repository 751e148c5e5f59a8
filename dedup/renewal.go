package dedup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
)

// leastRetry is the least time between a renewal that failed and the next one, but for a lease of less than 3 s.
const leastRetry = time.Second

var errSlowStore = errors.New("renewal answered after the lease that it granted had ended: set Options.LeaseDuration longer than the store takes to answer")

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
	now := time.Now()
	rl.lease.Until = anchor(until, now)
	rl.setTimer(now)
}

// callRenew asks the store for a new end. The call is short enough for a second one before the lease expires.
func (rl *recordLease) callRenew(ctx context.Context) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, min(rl.once.o.CallTimeout, rl.length/3))
	defer cancel()
	return rl.once.store.Renew(ctx, rl.current(), rl.length)
}

// renew moves the lease's end, or notes that the store refused the owner.
func (rl *recordLease) renew(ctx context.Context) error {
	l, err := rl.callRenew(ctx)
	switch {
	case err == nil:
		rl.setUntil(l.Until)
		rl.logAnswer(ctx)
	case errors.Is(err, sqsonce.ErrLeaseLost):
		rl.lose(err)
	case ctx.Err() == nil: // else the handler has returned, and the renewal was abandoned
		rl.once.counts.storeErrors.Add(1)
		rl.logFailure(ctx, "dedup: renewal failed", err)
	}
	return err
}

// logFailure logs a call of the store that failed. logAnswer logs its end.
func (rl *recordLease) logFailure(ctx context.Context, text string, err error) {
	rl.failing.Store(true)
	rl.once.o.Logger.Log(ctx, rl.once.outageLevel(), text, about(ctx, rl.task.key, "error", err)...)
}

// logAnswer has a line end those of logFailure.
func (rl *recordLease) logAnswer(ctx context.Context) {
	if rl.failing.Swap(false) {
		rl.once.o.Logger.InfoContext(ctx, "dedup: the store works again", about(ctx, rl.task.key)...)
	}
}

// startHandler returns the handler's context and begins to renew the lease, at a third of its length. It cancels the handler
// when the lease has expired. The renewals have ctx's values, and the hooks that hear of a lost lease the handler's.
func (rl *recordLease) startHandler(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	cancellable, cancel := rl.handlerContext(ctx)
	rl.handler = leaseContext{cancellable, rl}
	rl.renewFrom(phaseRunning, cancel)
	return &rl.handler, cancel
}

// startCompleting renews the lease again while the record is being completed. refused is called, once, with the answer to a
// renewal that the store refuses.
func (rl *recordLease) startCompleting(refused func(error)) {
	rl.renewFrom(phaseCompleting, refused)
}

func (rl *recordLease) renewFrom(p phase, cancel context.CancelCauseFunc) {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	now := time.Now()
	rl.cancel = cancel
	rl.due = now.Add(min(rl.length/3, remaining(rl.lease.Until, now)))
	rl.move(p)
}

// tick is called by the timer. It cancels the handler if the lease has expired, because the delivery can no longer prove that
// it owns the record. It does so before it renews: the timer of a suspended machine fires late.
func (rl *recordLease) tick() {
	rl.mu.Lock()
	now := time.Now()
	if rl.phase == phaseAsked && !rl.due.After(now) {
		rl.giveUp(context.DeadlineExceeded) // under mu: once the acquire is answered, this context may be the handler's
	}
	over := rl.phase == phaseRunning && remaining(rl.lease.Until, now) <= 0
	if over {
		rl.move(phaseOverdue)
	}
	due := rl.renews() && rl.renewal == nil && !rl.due.After(now)
	var ctx context.Context
	if due {
		rl.renewal = &renewal{done: make(chan struct{})}
		ctx, rl.renewal.abandon = context.WithCancel(context.WithoutCancel(rl.handler.Context))
	}
	rl.setTimer(now)
	rl.mu.Unlock()

	if over {
		rl.cancelHandler(IncidentExpired, "the lease ended before a renewal was answered", nil)
	}
	if due {
		rl.renewOnTimer(ctx)
	}
}

// renewOnTimer makes the renewal that is due, and sets the timer for the next. After a failure the next one comes sooner.
func (rl *recordLease) renewOnTimer(ctx context.Context) {
	sent := time.Now()
	next := rl.length / 3
	if rl.renew(ctx) != nil {
		next = max(rl.length/12, min(leastRetry, next))
	}
	now := time.Now()
	next = max(next-now.Sub(sent), rl.length/100)
	rl.mu.Lock()
	defer rl.mu.Unlock()
	ended := rl.renewal
	rl.renewal, rl.due = nil, now.Add(next)
	rl.setTimer(now)
	ended.abandon()
	close(ended.done)
}

// leave ends the renewals and returns when none is under way. A renewal under way has a timeout of its own before a commit.
// The complete or release that follows a handler's return does not wait for it.
func (rl *recordLease) leave(to phase) {
	rl.mu.Lock()
	if to == phaseReturned || rl.phase >= phaseRunning && rl.phase < phaseReturned {
		rl.move(to)
	}
	under := rl.renewal
	rl.mu.Unlock()
	if under == nil {
		return
	}
	if to == phaseReturned {
		under.abandon()
	}
	<-under.done
}

// prepareCommit is [stopRenewal].
func (rl *recordLease) prepareCommit(ctx context.Context, least time.Duration) (Lease, error) {
	rl.leave(phaseCommitting)
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
			return Lease{}, rl.once.unavailable(fmt.Errorf("dedup: lease over and not renewed, do not commit %s: %w", rl.once.record(rl.task.key), err))
		}
	}
	return rl.current(), nil
}

// lose notes that the store refused the owner, and cancels the handler. While the record is being completed an earlier complete, whose
// answer was lost, may be why: that is for the complete to find out.
func (rl *recordLease) lose(refusal error) {
	rl.mu.Lock()
	if rl.phase == phaseCompleting {
		cancel := rl.cancel
		rl.move(phaseReturned)
		rl.mu.Unlock()
		cancel(refusal)
		return
	}
	if rl.lost == nil {
		rl.lost = rl.once.lostError(rl.task.key, refusal)
		if errors.Is(refusal, ErrForeignWriter) {
			rl.once.counts.foreign.Add(1)
		}
	}
	if rl.phase == phaseRunning || rl.phase == phaseOverdue {
		rl.move(phaseRefused)
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

// cancelHandler cancels the handler once, and counts it. When it has returned, the handler is cancelled. Hooks may ask for the
// lease, so they are not called under the lock.
func (rl *recordLease) cancelHandler(kind IncidentKind, why string, refusal error) {
	rl.cancelled.Do(func() {
		rl.mu.Lock()
		l, ctx, cancel := rl.lease, &rl.handler, rl.cancel
		rl.mu.Unlock()
		defer cancel(sqsonce.ErrLeaseLost)
		rl.once.counts.leasesLost.Add(1)
		rl.once.o.Logger.WarnContext(ctx, "dedup: lease lost", about(ctx, l.Key, "fence", l.Fence, "reason", why)...)
		rl.once.incident(ctx, Incident{Key: l.Key, Kind: kind, Fence: l.Fence, Err: refusal})
	})
}
