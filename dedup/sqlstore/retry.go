package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	// maxAttempts, with the pauses below, spends about two seconds on failures that come at once.
	maxAttempts = 8
	minPause    = 20 * time.Millisecond
	maxPause    = time.Second
	// cleanupTimeout limits what the store does after its caller's context has ended.
	cleanupTimeout = 5 * time.Second
)

// retry runs f until its result is known. f must be safe to repeat: the condition on the owner makes a second execution
// have the same effect as the first.
func (s *Store) retry(ctx context.Context, op string, f func(context.Context) error) error {
	var err error
	for n := range maxAttempts {
		if n > 0 && !pause(ctx, n) || ctx.Err() != nil {
			return explain(s.dialect, op, gaveUp(context.Cause(ctx), err))
		}
		err = s.runInTurn(ctx, f)
		if !s.mayRetry(err) {
			break
		}
	}
	return explain(s.dialect, op, err)
}

// mayRetry reports whether another attempt may succeed.
func (s *Store) mayRetry(err error) bool {
	if err == nil || isRefusal(err) || isDatabaseError(err) {
		return false
	}
	c := s.dialect.classify(err)
	return c == unwritten || c == unknown
}

// runInTurn runs f in the caller's turn, with the store's limit for a statement.
func (s *Store) runInTurn(ctx context.Context, f func(context.Context) error) error {
	endTurn, err := s.waitTurn(ctx)
	if err != nil {
		return err
	}
	defer endTurn()
	return s.withTimeout(ctx, f)
}

// waitTurn waits for the caller's turn and returns the function that ends it. On SQLite, where only one connection can
// write, the store's statements take turns: a statement that meets the file's lock sleeps and tries again, longer each
// time, while other statements pass it.
//
// The turn always comes before the connection. SQLite often has a pool of one connection. There, a caller that has the
// connection and waits for the turn would block the caller that has the turn and waits for the connection.
func (s *Store) waitTurn(ctx context.Context) (end func(), err error) {
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

func (s *Store) withTimeout(ctx context.Context, f func(context.Context) error) error {
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	return f(ctx)
}

// pause waits before attempt n, counted from 0. Its jitter makes it likely that of two transactions that ended in a
// deadlock one is done before the other begins again. It reports false if ctx ended.
func pause(ctx context.Context, n int) bool {
	return host.Wait(ctx, host.Jitter(minPause, maxPause, n))
}

// gaveUp is the error of a call that was given up for a reason, with the error of its last attempt.
func gaveUp(reason, last error) error {
	if last == nil {
		return reason
	}
	return fmt.Errorf("%w: %w", reason, last)
}
