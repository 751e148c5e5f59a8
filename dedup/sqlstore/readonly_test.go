package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
)

// A session that a handler has left read-only fails one call: the pool then has another one.
func TestReadOnlySessionIsDropped(t *testing.T) {
	t.Parallel()
	for _, name := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := NewBed(t, name)
			db := b.Open(t)
			db.SetMaxOpenConns(1)
			s := storeOn(t, db, b.Dialect)
			d := newDeferred(t, s)
			p := newProcessor(t, d)
			inbox := newInbox(t, s)
			for name, call := range map[string]func(id string) error{
				"Acquire": func(id string) error { _, err := s.Acquire(t.Context(), claim(id, "a")); return err },
				"Sweep":   func(string) error { _, err := s.Sweep(t.Context()); return err },
				"Receive": func(id string) error { return d.Receive(t.Context(), order(id, 1)) },
				"claim":   func(string) error { _, err := p.claim(t.Context(), 1); return err },
				"Ask":     func(id string) error { return inboxStore{inbox}.Ask(t.Context(), claim(id, id)) },
				"Inbox": func(id string) error {
					return inbox.Handler(func(context.Context, *sqsonce.Message, *sql.Tx) error { return nil })(t.Context(), order(id, 2))
				},
			} {
				must.Do(t, d.Receive(t.Context(), order(rand.Text(), 1))) // to be claimed
				exec(t, db, b.kind.ReadOnly)
				if err := call(rand.Text()); !errors.Is(err, ErrReadOnly) {
					t.Errorf("%s: got error %v, want ErrReadOnly", name, err)
				}
				if err := call(rand.Text()); err != nil {
					t.Errorf("%s, again: %v", name, err)
				}
				forget(db)
			}
		})
	}
}
