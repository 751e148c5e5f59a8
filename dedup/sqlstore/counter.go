package sqlstore

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/counter"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/limit"
)

// keyCounter is what NewCounter returns.
type keyCounter struct {
	slots
	store  *Store
	memory counter.Memory
}

type slots = counter.Slots

var _ limit.Counter = (*keyCounter)(nil)

// NewCounter returns a [limit.Counter] in the database of s. It is safe for concurrent use.
//
// A key is a row of the table of records, limit/ and the key, which reads as a released record, and a slot is a record
// of the store. Both are listed under the consumer limit/NAME of a rule, and [Store.Sweep] deletes them. Every version
// has the table, so an installation has what a counter needs.
//
// Only the database's clock decides. A take or a place of a key that is known is one statement, a refusal one more. A
// take whose answer is lost is sent again, and takes other tokens.
func NewCounter(s *Store) limit.Counter {
	return &keyCounter{slots: slots{Store: s, Package: "sqlstore"}, store: s}
}

const (
	// counterStatements limits the writes of a call, each after a read of the row that refused the one before.
	counterStatements = 4
	// keptFor is how long a row is retained after the last tokens and places.
	keptFor = 24 * time.Hour
	// roundedUp is by how much the microseconds of the statements may be ahead.
	roundedUp = 1000
	// anyLine is a greatest lag that every line has.
	anyLine = math.MaxInt64 / 2
)

// Take implements [limit.Counter].
func (c *keyCounter) Take(ctx context.Context, t counting.Take) (g counting.Grant, err error) {
	a, err := counter.NewAsk("sqlstore", t)
	if err != nil {
		return counting.Grant{}, err
	}
	short, hasLine := a.MostLine()
	err = c.ask(ctx, "take", "Take.Key", a.Key, func(ctx context.Context, s counter.State, found, exists bool) (done bool, err error) {
		if a.Floor > 0 && !found {
			return false, nil // a pause is rare, and its answer says how long the line is
		}
		sent := time.Now()
		n, ok := a.Try(s, found)
		if !ok {
			lag := a.Lag(s)
			c.memory.Learn(a.Key, sent, lag, lag)
			g = a.Refused(lag, s.Line)
			return true, nil
		}
		span := int64(n) * a.Step
		lag := a.Floor + span
		if exists {
			most := int64(anyLine)
			if hasLine && n > 0 {
				most = short
			}
			lag, done, err = c.store.dialect.WriteReturning(ctx, c.store.db, c.store.stmts().takeTokens,
				a.Floor, span, kept(a.MostLag(n)+span), a.Key, a.MostLag(n), most)
		} else {
			done, err = c.insert(ctx, a.Key, lag, 0)
		}
		if err != nil || !done {
			return false, err
		}
		c.memory.Learn(a.Key, sent, lag-span, lag)
		if n == 0 {
			g = a.Refused(lag, s.Line)
		} else {
			g = a.Granted(n, lag-span+roundedUp)
		}
		return true, nil
	})
	return g, err
}

// Line implements [limit.Counter].
func (c *keyCounter) Line(ctx context.Context, key string, n int, step time.Duration) (first time.Duration, err error) {
	span, err := counter.Span("sqlstore", key, n, step)
	if err != nil {
		return 0, err
	}
	key = counter.RecordKey(key)
	err = c.ask(ctx, "line", "key", key, func(ctx context.Context, _ counter.State, _, exists bool) (done bool, err error) {
		end := span
		if exists {
			end, done, err = c.store.dialect.WriteReturning(ctx, c.store.db, c.store.stmts().place, span, kept(span), key)
		} else {
			done, err = c.insert(ctx, key, 0, span)
		}
		first = counter.Duration(end - span + roundedUp)
		return done, err
	})
	return first, err
}

// ask calls write until it has written a key's row: for its likely state first, then as it was read. exists is false if
// there is none.
func (c *keyCounter) ask(ctx context.Context, op, field, key string, write func(ctx context.Context, s counter.State, found, exists bool) (bool, error)) error {
	if err := checkText(field, key, maxKey); err != nil {
		return err
	}
	if err := c.store.ensureChecked(ctx); err != nil {
		return err
	}
	return c.store.retry(ctx, op, func(ctx context.Context) error {
		s, found, exists := counter.State{Tat: c.memory.Guess(key)}, false, true
		for range counterStatements {
			if done, err := write(ctx, s, found, exists); done || err != nil {
				return err
			}
			var isKey bool
			err := c.store.dialect.In(c.store.db).QueryRowContext(ctx, c.store.stmts().schedule, key).Scan(&s.Tat, &s.Line, &isKey)
			found, exists = true, !isMissing(err)
			switch {
			case !exists:
				s = counter.State{}
			case sqldb.IsScan(err):
				return fmt.Errorf("sqlstore: key %q: %w: %w", key, dedup.ErrRecord, err)
			case err != nil:
				return err
			case !isKey:
				return fmt.Errorf("sqlstore: key %q: %w", key, dedup.ErrRecord)
			}
		}
		return errContended
	})
}

// insert makes the row of a new key, by the lags of its tat and its line.
func (c *keyCounter) insert(ctx context.Context, key string, tat, line int64) (bool, error) {
	return c.store.dialect.Write(ctx, c.store.db, c.store.stmts().newSchedule, key, tat, line, kept(max(tat, line)))
}

// kept is the retention of a row with a lag, in milliseconds.
func kept(lag int64) int64 { return (counter.Duration(lag) + keptFor).Milliseconds() }
