package sqlstore

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestMain(m *testing.M) {
	_ = mysqldriver.SetLogger(&mysqldriver.NopLogger{}) // it logs every connection that the tests break
	testserver.Main(m)
}

// Bed is a database of one dialect for one test.
type Bed struct {
	Dialect
	// Driver and DSN open the database, and Name is its name on its server.
	Driver, DSN, Name string
	// DB is a pool on the database, closed at the end of the test. The tables exist, except in an EmptyBed.
	DB *sql.DB
	// Server is the database's server, if it is the test's own.
	Server *testserver.Server
	// Open returns another pool on the same database, like another process's. It is closed at the end of the test.
	Open func(t testing.TB) *sql.DB
}

// EachDialect runs f as a subtest for each dialect, each on an empty and migrated database of its own. If a server is
// missing, the subtest is skipped, or fails with EMULATORS=required. SQLite is never missing. MySQL is skipped unless
// TESTSERVER_MYSQL names its server.
func EachDialect(t *testing.T, f func(t *testing.T, b *Bed)) {
	t.Helper()
	for _, k := range beds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			f(t, NewBed(t, k.name))
		})
	}
}

// NewBed returns an empty, migrated database: "PostgreSQL", "MariaDB", "MySQL" or "SQLite".
func NewBed(t testing.TB, name string) *Bed {
	t.Helper()
	b := EmptyBed(t, name)
	if err := Migrate(t.Context(), b.DB, b.Dialect); err != nil {
		t.Fatal(err)
	}
	return b
}

// EmptyBed returns a database without tables.
func EmptyBed(t testing.TB, name string) *Bed {
	t.Helper()
	for _, k := range beds {
		if k.name == name {
			name := "t" + strings.ToLower(rand.Text())
			driver, dsn := k.create(t, name)
			return newBed(t, k.dialect, driver, dsn, name)
		}
	}
	t.Fatalf("no bed %q", name)
	return nil
}

func newBed(t testing.TB, d Dialect, driver, dsn, name string) *Bed {
	t.Helper()
	b := &Bed{Dialect: d, Driver: driver, DSN: dsn, Name: name}
	b.Open = func(t testing.TB) *sql.DB {
		t.Helper()
		return open(t, driver, dsn)
	}
	b.DB = b.Open(t)
	return b
}

// ownServer returns a migrated database on a server of the test's own, which the test may kill.
func ownServer(t testing.TB, name string) *Bed {
	t.Helper()
	var b *Bed
	switch name {
	case "PostgreSQL":
		server := testserver.PostgreSQL.Start(t)
		b = newBed(t, PostgreSQL, "pgx", server.DSN("postgres"), "postgres")
		b.Server = server
	case "MariaDB", "MySQL":
		kind := testserver.MariaDB
		if name == "MySQL" {
			kind = testserver.MySQL
		}
		server := kind.Start(t)
		b = newBed(t, MySQL, "mysql", server.DSN("test")+"?interpolateParams=true", "test")
		b.Server = server
	default:
		t.Fatalf("%q has no server", name)
	}
	if err := Migrate(t.Context(), b.DB, b.Dialect); err != nil {
		t.Fatal(err)
	}
	return b
}

var beds = []struct {
	name    string
	dialect Dialect
	// create creates a database of that name, and returns its driver and its data source name.
	create func(t testing.TB, name string) (driver, dsn string)
}{
	{"PostgreSQL", PostgreSQL, createPostgreSQL},
	{"MariaDB", MySQL, create(testserver.MariaDB)},
	{"MySQL", MySQL, create(testserver.MySQL)},
	{"SQLite", SQLite, createSQLite},
}

func open(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("closing the pool: %v", err)
		}
	})
	return db
}

func exec(t testing.TB, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func createSQLite(t testing.TB, name string) (driver, dsn string) {
	return "sqlite", "file:" + filepath.Join(t.TempDir(), name) + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate"
}

func createPostgreSQL(t testing.TB, name string) (driver, dsn string) {
	t.Helper()
	server := testserver.PostgreSQL.Shared(t)
	exec(t, open(t, "pgx", server.DSN("postgres")), "CREATE DATABASE "+name)
	return "pgx", server.DSN(name)
}

// create returns a function that creates databases on the shared MariaDB or MySQL.
func create(k *testserver.Database) func(t testing.TB, name string) (driver, dsn string) {
	return func(t testing.TB, name string) (driver, dsn string) {
		t.Helper()
		server := k.Shared(t)
		exec(t, open(t, "mysql", server.DSN("test")), "CREATE DATABASE "+name)
		return "mysql", server.DSN(name) + "?interpolateParams=true"
	}
}

func newStore(t testing.TB, b *Bed, optFns ...func(*Options)) *Store {
	t.Helper()
	return storeOn(t, b.DB, b.Dialect, optFns...)
}

func storeOn(t testing.TB, db *sql.DB, d Dialect, optFns ...func(*Options)) *Store {
	t.Helper()
	s, err := New(db, d, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// claim is a first delivery's request, with a lease that does not end during a test.
func claim(key, owner string) dedup.Claim {
	return dedup.Claim{Key: key, Owner: owner, Lease: time.Hour, Retention: 24 * time.Hour, Attempt: 1}
}

func mustAcquire(t testing.TB, s dedup.Store, c dedup.Claim) dedup.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), c)
	if err != nil {
		t.Fatalf("Acquire by %s: %v", c.Owner, err)
	}
	return l
}

func mustComplete(t testing.TB, s dedup.Store, l dedup.Lease) {
	t.Helper()
	if err := s.Complete(t.Context(), l, dedup.Result{}); err != nil {
		t.Fatalf("Complete by %s: %v", l.Owner, err)
	}
}

// resultOf names the result of an acquire.
func resultOf(err error) string {
	_, inProgress := errors.AsType[*dedup.InProgressError](err)
	_, completed := errors.AsType[*dedup.CompletedError](err)
	switch {
	case err == nil:
		return "acquired"
	case inProgress:
		return "in progress"
	case completed:
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
	ms := by.Milliseconds()
	exec(t, b.DB, b.Dialect.sql("UPDATE {records} SET lease_until = CASE WHEN lease_until = 0 THEN 0 ELSE lease_until - ? END,"+
		" expires_at = expires_at - ? WHERE id = ?"), ms, ms, key)
}

func replaceUser(dsn, old, name string) string { return strings.Replace(dsn, old+"@", name+"@", 1) }
