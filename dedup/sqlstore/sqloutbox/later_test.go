package sqloutbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
)

// schedule commits events that are due after a while.
func (b *bed) schedule(t testing.TB, o *Outbox, in time.Duration, es ...fifo.Event) {
	t.Helper()
	tx := b.begin(t)
	must.Do(t, o.AddAt(t.Context(), tx, time.Now().Add(in), es...))
	must.Do(t, tx.Commit())
}

// pass has an hour pass for what is scheduled.
func (b *bed) pass(t testing.TB) {
	t.Helper()
	b.exec(t, "UPDATE {outbox_later} SET due_at = due_at - 3600000")
}

// moves expects that the next Move moves n events.
func moves(t testing.TB, o *Outbox, n int) (overdue time.Duration) {
	t.Helper()
	got, overdue, err := o.Move(t.Context())
	if got != n || err != nil {
		t.Fatalf("Move: %d, %v, want %d", got, err, n)
	}
	return overdue
}

// Of a group, those that are due come in the order of their due times, behind what was added before, and each is whole. None is
// there before it is due, and none that was cancelled.
func TestAddAt(t *testing.T) {
	eachOutbox(t, func(t *testing.T, b *bed, o *Outbox) {
		whole := fifo.Event{
			ID: "whole", Group: "g", Type: "kind", Body: "body", TraceHeader: "Root=1-5759e988-bd862e3fe1be46a994272793",
			Attributes: map[string]sqsonce.Attribute{"a": {Type: "Binary", Binary: []byte{0, 1}}},
		}
		b.schedule(t, o, 50*time.Minute, event("g", "third"), event("g", "fourth"), event("h", "other"), event("g", "fifth"))
		b.schedule(t, o, 30*time.Minute, whole)
		b.schedule(t, o, 40*time.Minute, event("g", "never"), event("g", "second"))
		b.schedule(t, o, 90*time.Minute, event("g", "last"))
		tx := b.begin(t)
		must.Do(t, o.AddAt(t.Context(), tx, time.Now(), event("g", "rolled back")))
		must.Do(t, tx.Rollback())
		if late := moves(t, o, 0); late != 0 {
			t.Errorf("overdue %v before any is due", late)
		}

		tx = b.begin(t)
		cancelled := must.Get(o.Cancel(t.Context(), tx, "never", "unknown", "never"))(t)
		if !slices.Equal(cancelled, []string{"never"}) {
			t.Errorf("cancelled %v, want never", cancelled)
		}
		must.Do(t, tx.Commit())
		b.commit(t, o, event("g", "first"))
		b.pass(t)
		if late := moves(t, o, 6); late < 29*time.Minute || late > 31*time.Minute {
			t.Errorf("overdue %v, want 30 min", late)
		}
		moves(t, o, 0)
		es := read(t, o, "g", 10)
		if got := ids(es); got != " first whole second third fourth fifth" {
			t.Errorf("read%s", got)
		}
		if got := es[1]; fmt.Sprint(got.Event) != fmt.Sprint(whole) || got.Source != source || got.Age > 10*time.Minute {
			t.Errorf("moved %+v, want %+v", got, whole)
		}
		tx = b.begin(t)
		if cancelled := must.Get(o.Cancel(t.Context(), tx, "second"))(t); len(cancelled) > 0 {
			t.Errorf("cancelled %v, which was moved", cancelled)
		}
		must.Do(t, tx.Rollback())
		b.pass(t)
		moves(t, o, 1)
	})
}

func TestAddAtRefuses(t *testing.T) {
	eachOutbox(t, func(t *testing.T, b *bed, o *Outbox) {
		b.schedule(t, o, time.Hour, event("g", "1"))
		tx := b.begin(t)
		if err := o.AddAt(t.Context(), tx, time.Now(), event("h", "2"), event("h", "1")); !errors.Is(err, ErrScheduled) {
			t.Errorf("an ID that is scheduled: %v", err)
		}
		must.Do(t, tx.Rollback())
		tx = b.begin(t) // another due time for it
		must.Get(o.Cancel(t.Context(), tx, "1"))(t)
		must.Do(t, o.AddAt(t.Context(), tx, time.Now().Add(-time.Second), event("g", "1")))
		must.Do(t, tx.Commit())
		moves(t, o, 1)
		tx = b.begin(t)
		locked := b.outbox(t, func(o *Options) { o.GroupLocked = true })
		for field, err := range map[string]error{
			"Options.GroupLocked": locked.AddAt(t.Context(), tx, time.Now(), event("g", "2")),
			"Event.Delay":         o.AddAt(t.Context(), tx, time.Now(), fifo.Event{ID: "2", Group: "g", Body: "b", Delay: time.Second}),
			"tx":                  o.AddAt(t.Context(), nil, time.Now(), event("g", "2")),
		} {
			if !isField(err, field) {
				t.Errorf("%s: %v", field, err)
			}
		}
		for _, due := range []time.Time{{}, time.Unix(0, -2e6), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)} {
			if err := o.AddAt(t.Context(), tx, due, event("g", "2")); !isField(err, "due") {
				t.Errorf("due at %v: %v", due, err)
			}
		}
		if _, err := o.Cancel(t.Context(), nil, "1"); !isField(err, "tx") {
			t.Errorf("Cancel without a transaction: %v", err)
		}
	})
}

// An operator sees what is scheduled, and cancels it. An event that can't be decoded hides no other.
func TestScheduled(t *testing.T) {
	eachOutbox(t, func(t *testing.T, b *bed, o *Outbox) {
		b.schedule(t, o, 2*time.Hour, event("g", "2"))
		b.schedule(t, o, time.Hour, event("g", "1"))
		b.schedule(t, o, 0, event("g", "broken"))
		b.exec(t, "UPDATE {outbox_later} SET attributes = '{' WHERE later_key = ?", laterKey("broken"))
		es, err := o.Scheduled(t.Context(), 10)
		broken := errors.Is(err, outbox.ErrBroken)
		if len(es) != 2 || es[0].ID != "1" || es[1].ID != "2" || !broken || es[0].Source != source || es[0].Body != event("g", "1").Body {
			t.Errorf("scheduled %+v, %v", es, err)
		}
		if in := time.Until(es[0].Due); in < 50*time.Minute || in > 70*time.Minute {
			t.Errorf("due in %v, want an hour", in)
		}
		if es := must.Get(o.Scheduled(t.Context(), 10, "2", "unknown"))(t); len(es) != 1 || es[0].ID != "2" {
			t.Errorf("of 2: %+v", es)
		}
		must.Do(t, o.CancelScheduled(t.Context(), "1"))
		if err := o.CancelScheduled(t.Context(), "1"); !errors.Is(err, outbox.ErrNotFound) {
			t.Errorf("cancelled again: %v", err)
		}
	})
}

// What can't be moved, or not yet, keeps none behind it: an event of another namespace, one that can't be decoded, one that a
// transaction is cancelling, and the groups that others have. Of a group none passes another one.
func TestMoveLeaves(t *testing.T) {
	eachOutbox(t, func(t *testing.T, b *bed, o *Outbox) {
		due := func(in time.Duration, es ...fifo.Event) {
			t.Helper()
			b.schedule(t, o, in-time.Hour, es...)
		}
		due(1, event("a", "other namespace"), event("a", "broken"), event("a", "behind"))
		b.exec(t, "UPDATE {outbox_later} SET source = 'billing' WHERE later_key = ?", laterKey("other namespace"))
		b.exec(t, "UPDATE {outbox_later} SET attributes = '{' WHERE later_key = ?", laterKey("broken"))
		if b.Dialect.OneWriter() { // a writer has the file
			moves(t, o, 2)
			return
		}
		due(2*time.Second, events("hot", 150)...)
		due(3*time.Second, event("cancelled", "c1"), event("cancelled", "c2"))
		due(4*time.Second, event("free", "f1"))
		writer, canceller := b.begin(t), b.begin(t)
		must.Do(t, o.Add(t.Context(), writer, event("hot", "before")))
		must.Get(o.Cancel(t.Context(), canceller, "c1"))(t)
		moves(t, o, 3) // two of a, and free behind the 150 of hot
		if late := moves(t, o, 0); late < 50*time.Minute {
			t.Errorf("overdue %v, want that of the one with another namespace", late)
		}
		must.Do(t, errors.Join(writer.Commit(), canceller.Rollback()))
		moves(t, o, 100)
		moves(t, o, 52)
		var want []string
		for _, e := range append([]fifo.Event{event("hot", "before")}, events("hot", 150)...) {
			want = append(want, e.ID)
		}
		if got := ids(read(t, o, "hot", 200)); got != " "+strings.Join(want, " ") {
			t.Errorf("read%s", got)
		}
		if got := ids(read(t, o, "cancelled", 9)); got != " c1 c2" {
			t.Errorf("read%s", got)
		}
		if _, err := o.Read(t.Context(), outbox.Group{Name: "a"}, outbox.Known{}, 9); err == nil {
			t.Error("the one that can't be decoded was not moved")
		}
	})
}

// Large events go in pages that a statement's time is enough for.
func TestMoveLarge(t *testing.T) {
	t.Parallel()
	b := newBed(t, "SQLite")
	o := b.outbox(t)
	for i := range 10 {
		b.schedule(t, o, -time.Hour, fifo.Event{ID: fmt.Sprint(i), Group: "g", Body: strings.Repeat("x", 1<<20-1000)})
	}
	for _, n := range []int{4, 4, 2, 0} {
		moves(t, o, n)
	}
}

// Two versions of this package on one database: a relay of the version before knows nothing of what is scheduled, and one of
// this version publishes before the tables are migrated.
func TestVersions(t *testing.T) {
	t.Parallel()
	for _, kind := range sqlbed.Names {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := emptyBed(t, kind)
			must.Do(t, schema.Migrate(t.Context(), b.db, sqldb.Dialect(b.dialect), 1))
			o, q := b.outbox(t), newQueue(t)
			b.commit(t, o, event("g", "1"))
			r := q.relay(t, o)
			seen, err := r.Sweep(t.Context())
			if !isProblem(err, sqldb.ErrNoTable) || seen.Groups != 1 {
				t.Errorf("Sweep before the migration: %+v, %v, want a group and ErrNoTable", seen, err)
			}
			if err := o.Check(t.Context()); !isProblem(err, sqldb.ErrSchemaVersion) {
				t.Errorf("Check before the migration: %v", err)
			}
			tx := b.begin(t)
			if err := o.AddAt(t.Context(), tx, time.Now(), event("g", "2")); !isProblem(err, sqldb.ErrNoTable) {
				t.Errorf("AddAt before the migration: %v", err)
			}
			must.Do(t, tx.Rollback())
			must.Do(t, Migrate(t.Context(), b.db, b.dialect))
			must.Do(t, b.outbox(t).checkFor(t.Context(), 1)) // as the version before does
			b.schedule(t, o, -time.Second, event("g", "2"))
			must.Get(r.Sweep(t.Context()))(t)
			var got []string
			for _, m := range q.receive(t) {
				got = append(got, *m.Body)
			}
			if !slices.Equal(got, []string{"body of 1", "body of 2"}) {
				t.Errorf("published %q", got)
			}
		})
	}
}
