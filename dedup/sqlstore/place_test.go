package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// elsewhere makes tables with the same names in another schema, and returns what makes a session find those.
func elsewhere(t testing.TB, b *Bed) (use string) {
	t.Helper()
	schema, use := b.kind.Elsewhere(b.Name)
	if schema != "" {
		exec(t, b.DB, "CREATE SCHEMA "+schema)
		must.Do(t, Migrate(t.Context(), b.DB, b.Dialect.WithPrefix(schema+".sqsonce_")))
	}
	return use
}

// forget ends the pool's idle sessions, with all that was left in them.
func forget(db *sql.DB) {
	db.SetMaxIdleConns(0)
	db.SetMaxIdleConns(1)
}

// What a handler, or another user of the pool, leaves in a session moves no record: 20 events that come twice run once each,
// the second time on other sessions.
func TestSessionMovesNoRecord(t *testing.T) {
	t.Parallel()
	type way func(t *testing.T, s *Store, ran func(id string), use string) (deliver func(*sqsonce.Message) error)
	for name, way := range map[string]way{
		"Inbox": func(t *testing.T, s *Store, ran func(string), use string) func(*sqsonce.Message) error {
			h := newInbox(t, s).Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
				ran(m.ID)
				_, err := tx.ExecContext(ctx, use)
				return err
			})
			return func(m *sqsonce.Message) error { return h(t.Context(), m) }
		},
		"Store": func(t *testing.T, s *Store, ran func(string), use string) func(*sqsonce.Message) error {
			once := must.Get(dedup.New(s, "billing"))(t)
			h := once.Handler(func(ctx context.Context, m *sqsonce.Message) error {
				ran(m.ID)
				_, err := s.db.ExecContext(ctx, use)
				return err
			})
			return func(m *sqsonce.Message) error { return h(t.Context(), m) }
		},
		"Deferred": func(t *testing.T, s *Store, ran func(string), use string) func(*sqsonce.Message) error {
			d := newDeferred(t, s)
			p := newProcessor(t, d)
			return func(m *sqsonce.Message) error {
				receive(t, d, m)
				for _, j := range claimOf(t, p, p.due) {
					p.handle(t.Context(), j, func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
						ran(m.ID)
						_, err := tx.ExecContext(ctx, use)
						return err
					})
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			EachDialect(t, func(t *testing.T, b *Bed) {
				use := elsewhere(t, b)
				db := b.Open(t)
				db.SetMaxOpenConns(1)
				s := storeOn(t, db, b.Dialect)
				runs := map[string]int{}
				deliver := way(t, s, func(id string) { runs[id]++ }, use)
				for n := range 2 { // a second process: the caches of the first have no part in it
					if n > 0 {
						deliver = way(t, s, func(id string) { runs[id]++ }, use)
					}
					for id := range 20 {
						must.Do(t, deliver(order(fmt.Sprint(id), 1)))
					}
					forget(db)
				}
				for id, n := range runs {
					if n != 1 {
						t.Errorf("event %s ran %d times", id, n)
					}
				}
				if len(runs) != 20 {
					t.Errorf("%d of 20 events ran", len(runs))
				}
			})
		})
	}
}

// The first operation fixes the place, whichever it is. A later check does not follow the session: where the tables have gone
// from the place, they are missing.
func TestPlaceIsFixed(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		use := elsewhere(t, b)
		mustAcquire(t, newStore(t, b), claim("k", "a"))
		for name, first := range map[string]func(*Store) error{
			"Inspect": func(s *Store) error { _, err := s.Inspect(t.Context(), "k"); return err },
			"List":    func(s *Store) error { return listed1(t, s) },
			"Delete":  func(s *Store) error { return s.Delete(t.Context(), "none") },
			"Sweep":   func(s *Store) error { _, err := s.Sweep(t.Context()); return err },
			"Count":   func(s *Store) error { _, err := newDeferred(t, s).Count(t.Context()); return err },
			"Check":   func(s *Store) error { return s.Check(t.Context()) },
		} {
			db := b.Open(t)
			db.SetMaxOpenConns(1)
			s := storeOn(t, db, b.Dialect)
			if err := first(s); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			exec(t, db, use)
			if _, err := s.Inspect(t.Context(), "k"); err != nil {
				t.Errorf("Inspect after %s: %v", name, err)
			}
		}
		db := b.Open(t)
		db.SetMaxOpenConns(1)
		s := storeOn(t, db, b.Dialect)
		must.Do(t, s.Check(t.Context()))
		exec(t, db, s.place.Dialect().SQL("DROP TABLE {schema}"))
		exec(t, db, use)
		err := s.Check(t.Context())
		if e, ok := errors.AsType[*sqldb.DatabaseError](err); !ok || !errors.Is(err, sqldb.ErrNoTable) || e.Dialect != sqldb.Dialect(b.Dialect) {
			t.Errorf("got %v, want a DatabaseError of the store's dialect with ErrNoTable", err)
		}
	})
}

func listed1(t *testing.T, s *Store) error {
	n := 0
	for _, err := range s.List(t.Context()) {
		if err != nil {
			return err
		}
		n++
	}
	if n != 1 {
		return fmt.Errorf("%d records, want 1", n)
	}
	return nil
}

// A session that a handler has left read-only fails one call: the pool then has another one.
func TestReadOnlySessionIsDropped(t *testing.T) {
	each(t, servers, NewBed, func(t *testing.T, b *Bed) {
		db := b.Open(t)
		db.SetMaxOpenConns(1)
		s := storeOn(t, db, b.Dialect)
		d, i := newDeferred(t, s), newInbox(t, s)
		none := func(context.Context, *sqsonce.Message, *sql.Tx) error { return nil }
		p := newProcessor(t, d)
		receive(t, d, order("first", 1)) // for a claim to find
		for name, call := range map[string]func(id string) error{
			"Acquire": func(id string) error { _, err := s.Acquire(t.Context(), claim(id, "a")); return err },
			"Sweep":   func(string) error { _, err := s.Sweep(t.Context()); return err },
			"Receive": func(id string) error { return d.Receive(t.Context(), order(id, 1)) },
			"claim":   func(string) error { _, err := p.claim(t.Context(), 1); return err },
			"Ask":     func(id string) error { return inboxStore{i}.Ask(t.Context(), claim(id, id)) },
			"Inbox":   func(id string) error { return i.Handler(none)(t.Context(), order(id, 2)) },
		} {
			exec(t, db, b.kind.ReadOnly)
			if first, again := call(name+"1"), call(name+"2"); !errors.Is(first, sqldb.ErrReadOnly) || again != nil {
				t.Errorf("%s: got error %v and again %v, want ErrReadOnly and nil", name, first, again)
			}
			forget(db)
		}
	})
}
