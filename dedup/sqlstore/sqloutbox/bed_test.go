package sqloutbox

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
)

func TestMain(m *testing.M) { sqlbed.Main(m) }

// source is the namespace of the tests' events.
const source = "orders"

// bed is a database with the tables of this package.
type bed struct {
	sqlbed.Bed
	kind    string
	dialect sqlstore.Dialect
	db      *sql.DB
}

// eachBed runs f as a subtest on a migrated database of each kind. The test runs beside others.
func eachBed(t *testing.T, f func(t *testing.T, b *bed)) {
	t.Helper()
	each(t, sqlbed.Names, f)
}

// eachOutbox is eachBed with an outbox.
func eachOutbox(t *testing.T, f func(t *testing.T, b *bed, o *Outbox)) {
	t.Helper()
	eachBed(t, func(t *testing.T, b *bed) { f(t, b, b.outbox(t)) })
}

func each(t *testing.T, kinds []string, f func(t *testing.T, b *bed)) {
	t.Helper()
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f(t, newBed(t, kind))
		})
	}
}

func newBed(t testing.TB, kind string) *bed {
	t.Helper()
	b := emptyBed(t, kind)
	must.Do(t, Migrate(t.Context(), b.db, b.dialect))
	return b
}

// emptyBed returns a database without tables.
func emptyBed(t testing.TB, kind string) *bed {
	t.Helper()
	return openBed(t, kind, sqlbed.New(t, kind))
}

func openBed(t testing.TB, kind string, made sqlbed.Bed) *bed {
	t.Helper()
	return &bed{Bed: made, kind: kind, dialect: sqlstore.Dialect(made.Kind.Dialect), db: sqlbed.Open(t, made.Driver, made.DSN)}
}

// outbox returns the outbox "box" through the bed's pool.
func (b *bed) outbox(t testing.TB, optFns ...func(*Options)) *Outbox {
	t.Helper()
	return b.named(t, "box", optFns...)
}

func (b *bed) named(t testing.TB, name string, optFns ...func(*Options)) *Outbox {
	t.Helper()
	return b.through(t, b.db, name, optFns...)
}

// through returns an outbox that uses another pool.
func (b *bed) through(t testing.TB, db *sql.DB, name string, optFns ...func(*Options)) *Outbox {
	t.Helper()
	return must.Get(New(db, b.dialect, name, source, optFns...))(t)
}

func (b *bed) exec(t testing.TB, text string, args ...any) {
	t.Helper()
	sqlbed.Exec(t, b.db, b.Dialect.SQL(text), args...)
}

// begin begins a transaction that is rolled back at the end of the test, if it is open then.
func (b *bed) begin(t testing.TB) *sql.Tx {
	t.Helper()
	tx := must.Get(b.db.BeginTx(t.Context(), nil))(t)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// commit adds the events in one transaction.
func (b *bed) commit(t testing.TB, o *Outbox, es ...fifo.Event) {
	t.Helper()
	tx := b.begin(t)
	must.Do(t, o.Add(t.Context(), tx, es...))
	must.Do(t, tx.Commit())
}

// event is an event of a group.
func event(group, id string) fifo.Event {
	return fifo.Event{ID: id, Group: group, Body: "body of " + id}
}

// events are n events of a group.
func events(group string, n int) (es []fifo.Event) {
	for i := range n {
		es = append(es, event(group, fmt.Sprintf("%s-%d", group, i+1)))
	}
	return es
}

// read reads a group of which nothing is known.
func read(t testing.TB, o *Outbox, group string, limit int) []outbox.Entry {
	t.Helper()
	return must.Get(o.Read(t.Context(), outbox.Group{Name: group}, outbox.Known{}, limit))(t)
}

func ids(es []outbox.Entry) string {
	text := ""
	for _, e := range es {
		text += " " + e.ID
	}
	return text
}

func within(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// readOnly returns a pool whose sessions take no writes, as a replica's do not.
func (b *bed) readOnly(t testing.TB) *sql.DB {
	t.Helper()
	if b.ReadOnlyDSN != nil {
		return sqlbed.Open(t, b.Driver, b.ReadOnlyDSN(b.DSN))
	}
	own := openBed(t, b.kind, sqlbed.Own(t, b.kind))
	must.Do(t, Migrate(t.Context(), own.db, b.dialect))
	own.commit(t, own.outbox(t), event("g", "1"))
	for _, text := range []string{"CREATE USER plain@'%'", "GRANT ALL ON test.* TO plain@'%'", "SET GLOBAL read_only = 1"} {
		own.exec(t, text)
	}
	return sqlbed.Open(t, b.Driver, strings.Replace(own.DSN, "test@", "plain@", 1))
}
