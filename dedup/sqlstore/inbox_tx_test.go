package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// What the row says is an answer and is not asked for again; what the database could not do is.
func TestGuardedBegin(t *testing.T) {
	t.Parallel()
	s := newStore(t, NewBed(t, "SQLite"))
	_, busy := s.db.Exec("not SQL")
	if busy == nil {
		t.Fatal("the database took what is not SQL")
	}
	for name, c := range map[string]struct {
		err   error
		marks int
	}{
		"completed":   {&dedup.CompletedError{}, 1},
		"in progress": {&dedup.InProgressError{}, 1},
		"lost":        {sqsonce.ErrLeaseLost, 1},
		"ours":        {errOurs, 1},
		"not SQL":     {busy, 1},
		"contended":   {errContended, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			marks := 0
			g := guarded{store: s, wait: 5 * time.Second, mark: func(context.Context, *sql.Tx) error {
				if marks++; marks == 3 {
					return nil
				}
				return c.err
			}}
			err := g.begin(t.Context())
			if c.marks == 3 && err != nil || c.marks == 1 && !errors.Is(err, c.err) {
				t.Errorf("begin: got error %v after %v", err, c.err)
			}
			g.rollback()
			if marks != c.marks {
				t.Errorf("the row was asked %d times, want %d", marks, c.marks)
			}
		})
	}
}

// A transaction's statements are cut off by their own limit, not by the caller's end alone.
func TestGuardedLeavesWithItsCaller(t *testing.T) {
	t.Parallel()
	s := newStore(t, NewBed(t, "SQLite"))
	ctx, cancel := context.WithCancelCause(t.Context())
	g := guarded{store: s, wait: 5 * time.Second, mark: func(own context.Context, _ *sql.Tx) error {
		cancel(errBoom)
		<-own.Done()
		return own.Err()
	}}
	if err := g.begin(ctx); !errors.Is(err, errBoom) {
		t.Errorf("begin: got error %v, want the cause", err)
	}
	if g.tx != nil {
		t.Error("the transaction stays open")
	}
}
