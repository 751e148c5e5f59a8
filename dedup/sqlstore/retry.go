package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/internal/backoff"
)

const (
	// maxAttempts with the pauses below spends about two seconds on failures that are quick.
	maxAttempts = 8
	leastPause  = 20 * time.Millisecond
	mostPause   = time.Second
	// ownTimeout bounds what the store does after its caller has left.
	ownTimeout = 5 * time.Second
)

// retry runs a step until it has an answer, for steps that may be repeated at any time: the condition on the owner makes
// a second effect the same as the first.
func (s *Store) retry(ctx context.Context, op string, f func(context.Context) error) error {
	var err error
	for n := range maxAttempts {
		if n > 0 && !pause(ctx, n) || ctx.Err() != nil {
			return explain(s.dialect, op, because(context.Cause(ctx), err))
		}
		err = s.limited(ctx, f)
		if !s.again(err) {
			break
		}
	}
	return explain(s.dialect, op, err)
}

// again reports whether another attempt may have an answer.
func (s *Store) again(err error) bool {
	if err == nil || isAnswer(err) {
		return false
	}
	if _, final := errors.AsType[*DatabaseError](err); final {
		return false
	}
	c := s.dialect.classify(err)
	return c == unwritten || c == unknown
}

// limited runs f in its turn, with the store's limit for a statement.
func (s *Store) limited(ctx context.Context, f func(context.Context) error) error {
	endTurn, err := s.inTurn(ctx)
	if err != nil {
		return err
	}
	defer endTurn()
	return s.timed(ctx, f)
}

// inTurn waits for the caller's turn and returns what ends it. On SQLite, where only one connection can write, the
// store's statements take turns: those that meet the file's lock would sleep and try again, longer and longer, while
// others pass.
//
// The turn comes before the connection, always: in a pool of one connection, which is what SQLite is often given, who had
// the connection and waited for the turn would wait for who has the turn and waits for the connection.
func (s *Store) inTurn(ctx context.Context) (end func(), err error) {
	if s.turn == nil {
		return func() {}, nil
	}
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *Store) timed(ctx context.Context, f func(context.Context) error) error {
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	return f(ctx)
}

// pause waits before attempt n, counted from 0, with jitter: of two transactions that ended in a deadlock one is then
// likely to be through before the other comes. It reports false where ctx ended.
func pause(ctx context.Context, n int) bool {
	return backoff.Wait(ctx, backoff.Jitter(leastPause, mostPause, n))
}

// because is why a call was given up, with what its last attempt had met.
func because(reason, last error) error {
	if last == nil {
		return reason
	}
	return fmt.Errorf("%w: %w", reason, last)
}
