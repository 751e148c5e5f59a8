package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// Acquire implements [dedup.Store]. The first delivery of an event is one INSERT; any other is a read, and an UPDATE
// where the record is free.
//
// A caller whose context ends while a statement is out leaves at once. What becomes of the statement is then the store's
// business: it waits for the answer and releases what was granted, so that the key is not blocked for a lease that nobody
// knows of.
func (s *Store) Acquire(ctx context.Context, c dedup.Claim) (dedup.Lease, error) {
	if ctx.Err() != nil {
		return dedup.Lease{}, fmt.Errorf("sqlstore: acquire: %w", context.Cause(ctx))
	}
	if err := checkClaim(c); err != nil {
		return dedup.Lease{}, err
	}
	if err := s.use(ctx); err != nil {
		return dedup.Lease{}, err
	}
	type answer struct {
		lease dedup.Lease
		err   error
	}
	// Not buffered: either the caller takes the answer or, having left, never will. There is no third case in which both
	// believe that the other has the lease.
	answers := make(chan answer)
	go func() {
		l, err := s.acquire(ctx, c)
		select {
		case answers <- answer{l, err}:
		case <-ctx.Done():
			if err == nil {
				s.abandon(ctx, l.Key, l.Owner)
			}
		}
	}()
	select {
	case a := <-answers:
		return a.lease, a.err
	case <-ctx.Done():
		return dedup.Lease{}, fmt.Errorf("sqlstore: acquire: %w", context.Cause(ctx))
	}
}

var errContended = errors.New("the record was free and could not be acquired")

// acquire attempts until there is an answer.
func (s *Store) acquire(ctx context.Context, c dedup.Claim) (dedup.Lease, error) {
	waiting := ctx
	outstanding := false // an attempt may have been written, or may yet be
	var err error
	for n := range maxAttempts {
		// The first attempt after a lost race needs no wait: the winner's record is there.
		if n > 0 && !(n == 1 && errors.Is(err, errContended)) && !pause(waiting, n) || waiting.Err() != nil {
			err = because(context.Cause(waiting), err)
			break
		}
		var l dedup.Lease
		l, err = s.attempt(waiting, c)
		if errors.Is(err, errContended) {
			continue
		}
		if err == nil || isAnswer(err) {
			return l, err
		}
		if !s.again(err) {
			break
		}
		if s.dialect.classify(err) == unknown && !errors.Is(err, errUnsent) {
			// Whoever has left without an answer still gets one, since a release alone might be overtaken: by a statement
			// that was given up and still waits for a lock. The lease that is granted here and then released leaves its owner
			// in the record, and refuses that statement.
			outstanding = true
			waiting = context.WithoutCancel(ctx)
		}
	}
	if outstanding {
		s.abandon(ctx, c.Key, c.Owner)
	}
	return dedup.Lease{}, explain(s.dialect, "acquire", err)
}

// isAnswer knows the errors that say what the record is. They are nobody's failure, and are returned as they are.
func isAnswer(err error) bool {
	switch err.(type) {
	case *dedup.InProgressError, *dedup.CompletedError:
		return true
	}
	return err == sqsonce.ErrLeaseLost || errors.Is(err, ErrRecord)
}

// errUnsent is around an error before the first statement.
var errUnsent = errors.New("no turn or no connection")

// attempt asks once. The waits for a turn and for a connection end with ctx. The statements do not: one that was cut off would have an
// unknown outcome for no reason, and a release sent after it could overtake it.
func (s *Store) attempt(ctx context.Context, c dedup.Claim) (l dedup.Lease, err error) {
	endTurn, err := s.inTurn(ctx)
	if err != nil {
		return dedup.Lease{}, fmt.Errorf("%w: %w", errUnsent, err)
	}
	defer endTurn()
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return dedup.Lease{}, fmt.Errorf("%w: %w", errUnsent, err)
	}
	defer func() { _ = conn.Close() }() // back to the pool, or it is broken and gone
	err = s.timed(context.WithoutCancel(ctx), func(ctx context.Context) error {
		l, err = s.ask(ctx, conn, c)
		return err
	})
	return l, err
}

// ask inserts the record, or reads it and takes it where it is free. A redelivery's record is there as a rule and is read
// at once.
func (s *Store) ask(ctx context.Context, q queryer, c dedup.Claim) (dedup.Lease, error) {
	if c.Attempt <= 1 {
		if l, granted, err := s.insert(ctx, q, c); granted || err != nil {
			return l, err
		}
	}
	sent := time.Now()
	r, err := s.find(ctx, q, c.Key)
	if isMissing(err) {
		if l, granted, err := s.insert(ctx, q, c); granted || err != nil {
			return l, err
		}
		return dedup.Lease{}, errContended
	}
	if err != nil {
		return dedup.Lease{}, err
	}
	switch r.standing(c) {
	case ours:
		// As it was granted, also where it is over by now: the holder renews it before it starts anything.
		l := newLease(c, r.fence, r.lastError)
		l.OwnRetry, l.Until = true, early(sent, r.until-r.now)
		return l, nil
	case lost:
		return dedup.Lease{}, sqsonce.ErrLeaseLost
	case held:
		return dedup.Lease{}, &dedup.InProgressError{Until: late(r.until - r.now)}
	case crashed:
		return dedup.Lease{}, &dedup.InProgressError{Crashed: true}
	case done:
		return dedup.Lease{}, &dedup.CompletedError{Result: r.result}
	default:
		return s.take(ctx, q, c, r)
	}
}

func (s *Store) insert(ctx context.Context, q queryer, c dedup.Claim) (l dedup.Lease, granted bool, err error) {
	sent := time.Now()
	fence, written, err := s.dialect.writeKept(ctx, q, s.text.insert,
		c.Key, c.Owner, c.Lease.Milliseconds(), retain(c).Milliseconds(), c.Attempt)
	if err != nil || !written {
		return dedup.Lease{}, false, err
	}
	l, err = s.start(ctx, q, newLease(c, fence, ""), sent, c.Lease)
	return l, true, err
}

// take replaces a free record. It is errContended where the record is no longer what was read.
func (s *Store) take(ctx context.Context, q queryer, c dedup.Claim, r record) (dedup.Lease, error) {
	sent := time.Now()
	fence, written, err := s.dialect.writeKept(ctx, q, s.text.take,
		c.Owner, c.Lease.Milliseconds(), retain(c).Milliseconds(), c.Attempt, c.Key, r.fence, r.until)
	switch {
	case err != nil:
		return dedup.Lease{}, err
	case !written:
		return dedup.Lease{}, errContended
	}
	l := newLease(c, fence, r.lastError)
	l.Takeover = r.status == inProgress && r.until > 0
	return s.start(ctx, q, l, sent, c.Lease)
}
