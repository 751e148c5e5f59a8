package sqloutbox

import (
	"fmt"
	"testing"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/internal/must"
)

// What a handler leaves in a session moves no event: 20 that were added on such sessions, each after another, are read once,
// and what is deleted on such a session is not read again on another. The first Add does not look in its transaction for the
// tables.
func TestSessionMovesNoEvent(t *testing.T) {
	eachBed(t, func(t *testing.T, b *bed) {
		schema, use := b.Elsewhere(b.Name)
		if schema != "" {
			b.exec(t, "CREATE SCHEMA "+schema)
			must.Do(t, Migrate(t.Context(), b.db, b.dialect.WithPrefix(schema+".sqsonce_")))
		}
		db := sqlbed.Open(t, b.Driver, b.DSN)
		db.SetMaxOpenConns(2)
		o := b.through(t, db, "box")
		for n := range 20 {
			tx, err := db.BeginTx(t.Context(), nil)
			if err == nil {
				_, err = tx.ExecContext(t.Context(), use)
			}
			if err == nil {
				err = o.Add(t.Context(), tx, event("g", fmt.Sprint(n)))
			}
			if err == nil {
				err = tx.Commit()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		relay := b.outbox(t)
		es := read(t, relay, "g", 100)
		if len(es) != 20 {
			t.Fatalf("read%s, want 20 events", ids(es))
		}
		sqlbed.Exec(t, b.db, use)
		must.Get(relay.Delete(t.Context(), es))(t)
		if left := read(t, b.through(t, sqlbed.Open(t, b.Driver, b.DSN), "box"), "g", 100); len(left) > 0 {
			t.Errorf("read again:%s", ids(left))
		}
	})
}
