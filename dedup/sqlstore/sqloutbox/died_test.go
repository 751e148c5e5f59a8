package sqloutbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
)

// once returns a hook that fails the next statement with this beginning.
func once(begin string) func(string) error {
	done := false
	return func(text string) error {
		if done || !strings.HasPrefix(text, begin) {
			return nil
		}
		done = true
		return io.ErrUnexpectedEOF
	}
}

// A statement was carried out, and its answer is lost: the next attempt has the result of the first.
func TestLostAnswers(t *testing.T) {
	eachBed(t, func(t *testing.T, b *bed) {
		spy, db := spied(t, b)
		o := b.through(t, db, "box")
		b.commit(t, o, events("g", 3)...)
		es := read(t, o, "g", 10)
		if !b.Dialect.OneWriter() {
			spy.set(nil, once("UPDATE"))
			got, err := o.Claim(t.Context(), []string{"g"}, time.Hour)
			if err != nil || len(got) != 1 {
				t.Errorf("Claim: %v, %v, want g", got, err)
			}
			spy.set(nil, once("UPDATE"))
			must.Do(t, o.Unclaim(t.Context(), []string{"g"}))
			if got, err = b.outbox(t).Claim(t.Context(), []string{"g"}, time.Hour); err != nil || len(got) != 1 {
				t.Errorf("Claim by another: %v, %v, want g", got, err)
			}
		}
		for _, step := range []struct {
			name, begin string
			do          func() error
		}{
			{"Park", "UPDATE", func() error { return o.Park(t.Context(), es[0], outbox.OnRefusedHalt, "why") }},
			{"Unpark", "UPDATE", func() error { return o.Unpark(t.Context(), es[0]) }},
			{"Park again", "UPDATE", func() error { return o.Park(t.Context(), es[0], outbox.OnRefusedSkip, "why") }},
			{"Discard", "DELETE", func() error { return o.Discard(t.Context(), es[0]) }},
			{"Delete", "DELETE", func() error { _, err := o.Delete(t.Context(), es[1:2]); return err }},
		} {
			spy.set(nil, once(step.begin))
			if err := step.do(); err != nil {
				t.Errorf("%s: %v", step.name, err)
			}
		}
		spy.set(nil, nil)
		if got := ids(read(t, o, "g", 10)); got != " g-3" {
			t.Errorf("left%s, want g-3", got)
		}
		// Without a lost answer the same results are errors.
		if err := o.Unpark(t.Context(), es[2]); !errors.Is(err, outbox.ErrNotParked) {
			t.Errorf("Unpark: %v", err)
		}
	})
}

// A connection that breaks before the database has a statement.
func TestLostStatements(t *testing.T) {
	eachBed(t, func(t *testing.T, b *bed) {
		spy, db := spied(t, b)
		o := b.through(t, db, "box")
		b.commit(t, o, events("g", 2)...)
		spy.set(once("SELECT seq,"), nil)
		es := read(t, o, "g", 10)
		spy.set(once("DELETE"), nil)
		if left, err := o.Delete(t.Context(), es); err != nil || len(left) > 0 {
			t.Errorf("Delete: %d left, %v", len(left), err)
		}
		if got := ids(read(t, o, "g", 10)); got != "" {
			t.Errorf("left%s, want none", got)
		}
		// In the caller's transaction nothing is tried again: its other statements are gone too.
		tx := must.Get(db.BeginTx(t.Context(), nil))(t)
		spy.set(once("INSERT"), nil)
		if err := o.Add(t.Context(), tx, event("g", "3")); !errors.Is(err, sqsonce.ErrUnavailable) {
			t.Errorf("Add: got error %v, want one that is unavailable", err)
		}
		must.Do(t, tx.Rollback())
	})
}

// A producer dies before its commit: its event is not there, and its group does not wait.
func TestProducerDies(t *testing.T) {
	eachServer(t, func(t *testing.T, b *bed) {
		o := b.outbox(t)
		tx := b.begin(t)
		var id int
		must.Do(t, tx.QueryRowContext(t.Context(), b.SessionID).Scan(&id))
		must.Do(t, o.Add(t.Context(), tx, event("g", "died")))
		b.exec(t, fmt.Sprintf(b.Kill, id))
		next := b.begin(t)
		must.Do(t, o.Add(within(t, 20*time.Second), next, event("g", "lives")))
		must.Do(t, next.Commit())
		if err := tx.Commit(); err == nil {
			t.Error("the transaction of the killed session was committed")
		}
		if got := ids(read(t, o, "g", 10)); got != " lives" {
			t.Errorf("read%s, want lives", got)
		}
	})
}

// A database that does not answer: each call ends with its context, or after its attempts, with what may still be there.
func TestStatementsHang(t *testing.T) {
	eachServer(t, func(t *testing.T, b *bed) {
		patient, o := b.outbox(t), b.outbox(t, func(o *Options) { o.Timeout = 100 * time.Millisecond })
		for ctx := within(t, time.Minute); o.Check(ctx) != nil; { // a busy machine takes longer at times
			must.Do(t, ctx.Err())
		}
		b.commit(t, patient, events("g", 2)...)
		es := read(t, patient, "g", 10)
		lock := b.begin(t)
		must.Get(lock.ExecContext(t.Context(), b.Dialect.SQL("UPDATE {outbox} SET owner = '' WHERE seq > 0")))(t)
		calls := map[string]func(ctx context.Context) error{
			"Delete": func(ctx context.Context) error {
				left, err := o.Delete(ctx, es)
				if len(left) != 2 {
					t.Errorf("Delete: %d are left, want 2", len(left))
				}
				return err
			},
			"Claim": func(ctx context.Context) error {
				_, err := o.Claim(ctx, []string{"g"}, time.Minute)
				return err
			},
			"Park": func(ctx context.Context) error { return o.Park(ctx, es[0], outbox.OnRefusedHalt, "") },
		}
		for name, call := range calls {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if err := call(ctx); !errors.Is(err, sqsonce.ErrUnavailable) || errors.Is(err, outbox.ErrDenied) {
				t.Errorf("%s, with its context: got error %v, want one that is unavailable", name, err)
			}
			cancel()
		}
		ctx := within(t, time.Minute)
		if err := calls["Delete"](ctx); !errors.Is(err, sqsonce.ErrUnavailable) || ctx.Err() != nil {
			t.Errorf("Delete, after its attempts: got error %v and %v, want one that is unavailable before the context ends", err, ctx.Err())
		}
		// Reading waits for nobody.
		if got := ids(read(t, patient, "g", 10)); got != " g-1 g-2" {
			t.Errorf("read%s", got)
		}
		must.Do(t, lock.Rollback())
		if left, err := patient.Delete(t.Context(), es); err != nil || len(left) > 0 {
			t.Errorf("Delete: %d left, %v", len(left), err)
		}
	})
}
