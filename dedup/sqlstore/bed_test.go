package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestMain(m *testing.M) { sqlbed.Main(m) }

// What the tests use of the dialects' SQL.
func (d Dialect) sql(text string) string         { return sqldb.Dialect(d).SQL(text) }
func (d Dialect) classify(err error) sqldb.Class { return sqldb.Dialect(d).Classify(err) }

// Bed is a database of one dialect for one test.
type Bed struct {
	Dialect
	// kind is what the tests know of the database.
	kind sqlbed.Kind
	// Driver and DSN open the database, and Name is its name on its server.
	Driver, DSN, Name string
	// DB is a pool on the database, closed at the end of the test. The tables exist, except in an EmptyBed.
	DB *sql.DB
	// Server is the database's server, if it is the test's own.
	Server *testserver.Server
	// Open returns another pool on the same database, like another process's. It is closed at the end of the test.
	Open func(t testing.TB) *sql.DB
}

// EachDialect runs f as a subtest for each dialect, each on an empty and migrated database of its own: see [sqlbed.New]. The test
// runs alongside others.
func EachDialect(t *testing.T, f func(t *testing.T, b *Bed)) {
	t.Helper()
	each(t, sqlbed.Names, NewBed, f)
}

// eachStore is EachDialect with a store.
func eachStore(t *testing.T, f func(t *testing.T, b *Bed, s *Store)) {
	t.Helper()
	EachDialect(t, func(t *testing.T, b *Bed) { f(t, b, newStore(t, b)) })
}

// eachLedger is eachStore with the ledger that handlers write.
func eachLedger(t *testing.T, f func(t *testing.T, b *Bed, s *Store)) {
	t.Helper()
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		newLedger(t, b)
		f(t, b, s)
	})
}

// eachDeferred is eachLedger with an inbox of a standard processor.
func eachDeferred(t *testing.T, f func(t *testing.T, b *Bed, d *Deferred)) {
	t.Helper()
	eachLedger(t, func(t *testing.T, b *Bed, s *Store) { f(t, b, newDeferred(t, s)) })
}

// each is EachDialect for some databases, made by newBed.
func each(t *testing.T, names []string, newBed func(testing.TB, string) *Bed, f func(t *testing.T, b *Bed)) {
	t.Helper()
	t.Parallel()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, newBed(t, name))
		})
	}
}

// NewBed returns an empty, migrated database: "PostgreSQL", "MariaDB", "MySQL" or "SQLite".
func NewBed(t testing.TB, name string) *Bed {
	t.Helper()
	b := EmptyBed(t, name)
	must.Do(t, Migrate(t.Context(), b.DB, b.Dialect))
	return b
}

// EmptyBed returns a database without tables.
func EmptyBed(t testing.TB, name string) *Bed {
	t.Helper()
	return openBed(t, sqlbed.New(t, name))
}

// ownServer returns a migrated database on a server of the test's own, which the test may kill.
func ownServer(t testing.TB, name string) *Bed {
	t.Helper()
	b := openBed(t, sqlbed.Own(t, name))
	must.Do(t, Migrate(t.Context(), b.DB, b.Dialect))
	return b
}

func openBed(t testing.TB, made sqlbed.Bed) *Bed {
	t.Helper()
	b := &Bed{Dialect: Dialect(made.Dialect), kind: made.Kind, Driver: made.Driver, DSN: made.DSN, Name: made.Name, Server: made.Server}
	b.Open = func(t testing.TB) *sql.DB {
		t.Helper()
		return open(t, made.Driver, made.DSN)
	}
	b.DB = b.Open(t)
	return b
}

// with is the same database with another data source name.
func (b *Bed) with(t testing.TB, dsn string) *Bed {
	t.Helper()
	return openBed(t, sqlbed.Bed{Kind: b.kind, DSN: dsn, Name: b.Name, Server: b.Server})
}

var (
	open = sqlbed.Open
	exec = sqlbed.Exec
)

func newStore(t testing.TB, b *Bed, optFns ...func(*Options)) *Store {
	t.Helper()
	return storeOn(t, b.DB, b.Dialect, optFns...)
}

func storeOn(t testing.TB, db *sql.DB, d Dialect, optFns ...func(*Options)) *Store {
	t.Helper()
	return must.Get(New(db, d, optFns...))(t)
}

// claim is a first delivery's request, with a lease that does not end during a test.
func claim(key, owner string) dedup.Claim {
	return dedup.Claim{Key: key, Owner: owner, Lease: time.Hour, Retention: 24 * time.Hour, ReceiveCount: 1}
}

func mustAcquire(t testing.TB, s dedup.Store, c dedup.Claim) dedup.Lease {
	t.Helper()
	return must.Get(granted.Lease(s.Acquire(t.Context(), c)))(t)
}

func mustComplete(t testing.TB, s dedup.Store, l dedup.Lease) {
	t.Helper()
	must.Do(t, s.Complete(t.Context(), l, dedup.Result{}))
}

// resultOf names the result of an acquire.
func resultOf(err error) string {
	_, inProgress := errors.AsType[*dedup.InProgressError](err)
	switch {
	case err == nil:
		return "acquired"
	case inProgress:
		return "in progress"
	case errors.Is(err, granted.ErrCompleted):
		return "completed"
	case errors.Is(err, sqsonce.ErrLeaseLost):
		return "lost"
	default:
		return "error: " + err.Error()
	}
}

// age moves a record's times into the past, as if it had been written earlier.
func age(t testing.TB, b *Bed, key string, by time.Duration) {
	t.Helper()
	must.Do(t, ageAll(t.Context(), b.DB, sqldb.Dialect(b.Dialect), by, "id = ?", key))
}

func ageAll(ctx context.Context, q sqldb.Queryer, d sqldb.Dialect, by time.Duration, where string, args ...any) error {
	ms := by.Milliseconds()
	_, err := d.In(q).ExecContext(ctx, d.SQL("UPDATE {records} SET lease_until = CASE WHEN lease_until = 0 THEN 0 ELSE lease_until - ? END,"+
		" expires_at = expires_at - ? WHERE "+where), append([]any{ms, ms}, args...)...)
	return err
}

func replaceUser(dsn, old, name string) string { return strings.Replace(dsn, old+"@", name+"@", 1) }
