package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// Acquire implements [dedup.Store]. The first delivery of an event is one INSERT. Any other delivery is a read, and an
// UPDATE if the record is free.
//
// If ctx ends while a statement runs, Acquire returns at once, with [dedup.ErrOutcomeUnknown]. The statement goes on in the
// background, and a Release of the claim waits for its end.
func (s *Store) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	if ctx.Err() != nil {
		return dedup.Grant{}, fmt.Errorf("sqlstore: acquire: %w", context.Cause(ctx))
	}
	if err := checkClaim(c); err != nil {
		return dedup.Grant{}, err
	}
	if err := s.ensureChecked(ctx); err != nil {
		return dedup.Grant{}, err
	}
	var (
		g           dedup.Grant
		err         error
		ended, sent = make(chan struct{}), make(chan struct{})
	)
	go func() {
		defer close(ended)
		g, err = s.acquire(ctx, c, sync.OnceFunc(func() { close(sent) }))
	}()
	select {
	case <-ended:
		return g, err
	case <-ctx.Done():
	}
	select {
	case <-ended: // soon, if nothing is sent: the waits before that end with ctx
		return g, err
	case <-sent:
	}
	s.left.add(c.Key, c.Owner, ended)
	return dedup.Grant{}, fmt.Errorf("sqlstore: acquire: %w: %w", dedup.ErrOutcomeUnknown, context.Cause(ctx))
}

// acquires are those that go on after their callers have left, by key and owner.
type acquires struct{ ends sync.Map } // [2]string to the channel that is closed at the acquire's end

func (a *acquires) add(key, owner string, ended <-chan struct{}) {
	id := [2]string{key, owner}
	a.ends.Store(id, ended)
	go func() {
		<-ended
		a.ends.Delete(id)
	}()
}

// wait waits for the end of the owner's acquire. A statement that overtook it would not find the record, and the database
// would then grant the acquire to a caller that has left.
func (a *acquires) wait(ctx context.Context, key, owner string) error {
	ended, ok := a.ends.Load([2]string{key, owner})
	if !ok {
		return nil
	}
	select {
	case <-ended.(<-chan struct{}):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sqlstore: the acquire has not ended: %w", context.Cause(ctx))
	}
}

var (
	// errContended says that the record changed between the read and the write.
	errContended = errors.New("another delivery changed the record between the read and the write")
	// errNotSent wraps an error that came before the first statement.
	errNotSent = errors.New("no turn or no connection")
)

// acquire repeats acquireOnce until the result is known. It calls sent before the first statement.
func (s *Store) acquire(ctx context.Context, c dedup.Claim, sent func()) (dedup.Grant, error) {
	waitCtx := ctx
	outstanding := false // an attempt has an unknown outcome
	var err error
	for n := range sqldb.MaxAttempts {
		// The first attempt after a lost race needs no wait: the winner's record exists.
		if n > 0 && !(n == 1 && errors.Is(err, errContended)) && !sqldb.Pause(waitCtx, n) || waitCtx.Err() != nil {
			err = sqldb.GaveUp(context.Cause(waitCtx), err)
			break
		}
		var g dedup.Grant
		g, err = s.acquireOnce(waitCtx, c, sent)
		if errors.Is(err, errContended) {
			continue
		}
		if err == nil || isRefusal(err) {
			return g, err
		}
		if !s.base.MayRetry(err) {
			break
		}
		if s.dialect.Classify(err) == sqldb.Unknown && !errors.Is(err, errNotSent) {
			// Go on also after the caller's context has ended. A release alone could be overtaken by the statement that was
			// given up and still waits for a lock. An acquire that is granted here and then released leaves its owner in the
			// record, and that refuses the late statement.
			outstanding = true
			waitCtx = context.WithoutCancel(ctx)
		}
	}
	err = s.explain("acquire", err)
	if outstanding {
		err = fmt.Errorf("%w: %w", dedup.ErrOutcomeUnknown, err)
	}
	return dedup.Grant{}, err
}

// acquireOnce makes one attempt. The waits for a turn and for a connection end with ctx. The statements do not: cancelling
// one would make its outcome unknown, and a release sent after it could overtake it.
func (s *Store) acquireOnce(ctx context.Context, c dedup.Claim, sent func()) (g dedup.Grant, err error) {
	endTurn, err := s.base.WaitTurn(ctx)
	if err != nil {
		return dedup.Grant{}, fmt.Errorf("%w: %w", errNotSent, err)
	}
	defer endTurn()
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return dedup.Grant{}, fmt.Errorf("%w: %w", errNotSent, err)
	}
	defer func() { _ = conn.Close() }() // returns it to the pool, which drops a broken one
	sent()
	err = s.base.WithTimeout(context.WithoutCancel(ctx), func(ctx context.Context) error {
		g, err = s.insertOrTake(ctx, conn, c)
		return err
	})
	return g, err
}

// insertOrTake inserts the record, or reads it and takes it if it is free. A redelivery reads first, because its record
// usually exists.
func (s *Store) insertOrTake(ctx context.Context, q sqldb.Queryer, c dedup.Claim) (dedup.Grant, error) {
	if c.ReceiveCount <= 1 {
		if g, inserted, err := s.insert(ctx, q, c); inserted || err != nil {
			return g, err
		}
	}
	sent := time.Now()
	r, err := s.find(ctx, q, c.Key)
	if isMissing(err) {
		if g, inserted, err := s.insert(ctx, q, c); inserted || err != nil {
			return g, err
		}
		return dedup.Grant{}, errContended
	}
	if err != nil {
		return dedup.Grant{}, err
	}
	switch r.stateFor(c) {
	case owned:
		// Returned as it was granted, also if it has ended since: its owner renews it before it starts anything. So it does
		// with an overlong lease, which another delivery may be shortening.
		l := newLease(c, r.fence, r.kept.LastError)
		l.OwnRetry, l.Until = true, ownerEnd(sent, r.until-r.now)
		if r.overlong() {
			l.Until = sent
		}
		return dedup.Grant{Verdict: dedup.VerdictGranted, Lease: l}, nil
	case released:
		return dedup.Grant{Verdict: dedup.VerdictLost}, nil
	case leased:
		err := s.shorten(ctx, q, r)
		return dedup.Grant{Verdict: dedup.VerdictInProgress, Until: othersEnd(r.remaining())}, err
	case crashed:
		return dedup.Grant{Verdict: dedup.VerdictCrashed}, nil
	case done:
		return dedup.Grant{Verdict: dedup.VerdictCompleted, Result: r.kept.Result}, nil
	case free:
		return s.take(ctx, q, c, r)
	}
	return dedup.Grant{}, nil // no answer, which dedup refuses
}

func (s *Store) insert(ctx context.Context, q sqldb.Queryer, c dedup.Claim) (g dedup.Grant, inserted bool, err error) {
	sent := time.Now()
	fence, written, err := s.dialect.WriteReturning(ctx, q, s.stmts().insert, insertArgs(c)...)
	if err != nil || !written {
		return dedup.Grant{}, false, err
	}
	g, err = s.start(ctx, q, newLease(c, fence, ""), sent, c.Lease)
	return g, true, err
}

// take replaces a free record. It returns errContended if the record has changed since it was read.
func (s *Store) take(ctx context.Context, q sqldb.Queryer, c dedup.Claim, r record) (dedup.Grant, error) {
	sent := time.Now()
	fence, written, err := s.dialect.WriteReturning(ctx, q, s.stmts().take, takeArgs(c, r)...)
	switch {
	case err != nil:
		return dedup.Grant{}, err
	case !written:
		return dedup.Grant{}, errContended
	}
	l := newLease(c, fence, r.kept.LastError)
	r.takenBy(&l)
	return s.start(ctx, q, l, sent, c.Lease)
}

// shorten shortens an overlong lease in the record. So the event of an owner that crashed waits for one lease, and not for
// the difference of the clock.
func (s *Store) shorten(ctx context.Context, q sqldb.Queryer, r record) error {
	if !r.overlong() {
		return nil
	}
	_, err := s.dialect.Write(ctx, q, s.stmts().shorten, r.key, r.fence, r.until)
	return err
}

func newLease(c dedup.Claim, fence int64, lastError string) dedup.Lease {
	return dedup.Lease{
		Key: c.Key, Owner: c.Owner, Fence: fence, Retention: c.Retention,
		ReceiveCount: c.ReceiveCount, LastError: lastError,
	}
}

// start grants a new lease with its end. It renews the lease first if less than half of it remains, because the statement waited
// for a lock or the reply was slow: an owner renews after a third of the lease, which would then be too late.
func (s *Store) start(ctx context.Context, q sqldb.Queryer, l dedup.Lease, sent time.Time, d time.Duration) (dedup.Grant, error) {
	l.Until = ownerEnd(sent, d.Milliseconds())
	if time.Until(l.Until) <= d/2 {
		var err error
		if l, err = s.renew(ctx, q, l, d); errors.Is(err, sqsonce.ErrLeaseLost) {
			return dedup.Grant{Verdict: dedup.VerdictLost}, nil
		} else if err != nil {
			return dedup.Grant{}, err
		}
	}
	return dedup.Grant{Verdict: dedup.VerdictGranted, Lease: l}, nil
}
