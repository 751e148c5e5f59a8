package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	// MaxAttempts, with the pauses of Pause, spends about two seconds on failures that come at once.
	MaxAttempts = 8
	minPause    = 20 * time.Millisecond
	// MaxPause is the longest pause between two attempts.
	MaxPause = time.Second
	// CleanupTimeout limits the cleanup after the caller's context has ended.
	CleanupTimeout = 5 * time.Second
)

// DB runs the statements of one package: each with a limit, and repeated until its result is known.
type DB struct {
	pool     *sql.DB
	dialect  Dialect
	timeout  time.Duration
	reporter Reporter
	turn     chan struct{} // full while a statement runs; nil: statements take no turns
}

// New returns a DB. The timeout limits one statement. 0 or less removes the limit.
func New(pool *sql.DB, d Dialect, timeout time.Duration, r Reporter) *DB {
	db := &DB{pool: pool, dialect: d, timeout: timeout, reporter: r}
	if d.OneWriter() {
		db.turn = make(chan struct{}, 1)
	}
	return db
}

// Timeout is the limit of one statement. 0 or less is unlimited.
func (db *DB) Timeout() time.Duration { return db.timeout }

// Retry runs f until its result is known. f must be safe to repeat: a condition in its statement makes a second execution
// have the same effect as the first.
func (db *DB) Retry(ctx context.Context, op string, f func(context.Context) error) error {
	var err error
	for n := range MaxAttempts {
		if n > 0 && !Pause(ctx, n) || ctx.Err() != nil {
			return db.Explain(op, GaveUp(context.Cause(ctx), err))
		}
		err = db.runInTurn(ctx, f)
		if !db.MayRetry(err) {
			break
		}
	}
	return db.Explain(op, err)
}

// Explain is [Reporter.Explain] for an operation that has given its connection back. If a server said that it takes no writes, the
// pool drops that connection, which is the next one that it gives out: a handler may have left the session so, or the server may be
// the primary no more. A file has no other server, and one in memory would be lost with its connection.
func (db *DB) Explain(op string, err error) error {
	readOnly := err != nil && (errors.Is(err, ErrReadOnly) || db.dialect.Classify(err) == ReadOnly)
	if readOnly && db.dialect.FailsOver() && db.pool.Stats().Idle > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), MaxPause) // others may have taken the last one
		defer cancel()
		if conn, err := db.pool.Conn(ctx); err == nil {
			Discard(conn)
		}
	}
	return db.reporter.Explain(db.dialect, op, err)
}

// MayRetry reports whether another attempt may succeed.
func (db *DB) MayRetry(err error) bool {
	if err == nil || db.reporter.Final(err) {
		return false
	}
	c := db.dialect.Classify(err)
	return c == Conflict || c == Unwritten || c == Unknown
}

// runInTurn runs f in the caller's turn, with the limit for a statement.
func (db *DB) runInTurn(ctx context.Context, f func(context.Context) error) error {
	endTurn, err := db.WaitTurn(ctx)
	if err != nil {
		return err
	}
	defer endTurn()
	return db.WithTimeout(ctx, f)
}

// WaitTurn waits for the caller's turn and returns the function that ends it. If the database runs one writing transaction
// at a time, the statements of a DB run in turn. On SQLite a statement that meets the file's lock sleeps and repeats,
// longer each time, while other statements pass it.
//
// The turn always comes before the connection. SQLite often has a pool of one connection. There, a caller that has the
// connection and waits for the turn would block the caller that has the turn and waits for the connection.
func (db *DB) WaitTurn(ctx context.Context) (end func(), err error) {
	if db.turn == nil {
		return func() {}, nil
	}
	select {
	case db.turn <- struct{}{}:
		return func() { <-db.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// WithTimeout runs f with the limit for a statement.
func (db *DB) WithTimeout(ctx context.Context, f func(context.Context) error) error {
	if db.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, db.timeout)
		defer cancel()
	}
	return f(ctx)
}

// Pause waits before attempt n, counted from 0. Its jitter makes it likely that of two transactions that ended in a
// deadlock one is done before the other begins again. It reports false if ctx ended.
func Pause(ctx context.Context, n int) bool {
	return host.Wait(ctx, host.Jitter(minPause, MaxPause, n))
}

// GaveUp is the error of a call that was given up for a reason, with the error of its last attempt.
func GaveUp(reason, last error) error {
	if last == nil {
		return reason
	}
	return fmt.Errorf("%w: %w", reason, last)
}
