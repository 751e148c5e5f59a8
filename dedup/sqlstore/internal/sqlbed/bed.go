// Package sqlbed makes databases for the tests of this module.
package sqlbed

import (
	"crypto/rand"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// Names are the kinds of databases. MariaDB and MySQL share a dialect.
var Names = []string{"PostgreSQL", "MariaDB", "MySQL", "SQLite"}

// Main runs the tests of a package, and ends the servers that they started.
func Main(m *testing.M) {
	_ = mysqldriver.SetLogger(&mysqldriver.NopLogger{}) // it logs every connection that the tests break
	testserver.Main(m)
}

// Bed is a database without tables.
type Bed struct {
	Dialect sqldb.Dialect
	// Driver and DSN open the database, and Name is its name on its server.
	Driver, DSN, Name string
	// Server is the database's server, if it is the test's own.
	Server *testserver.Server
}

// New returns an empty database of a name of [Names]. If its server is missing, the test is skipped, or fails with
// EMULATORS=required. SQLite is never missing. MySQL is skipped unless TESTSERVER_MYSQL names its server.
func New(t testing.TB, kind string) Bed {
	t.Helper()
	b := Bed{Name: "t" + strings.ToLower(rand.Text())}
	switch kind {
	case "PostgreSQL":
		server := testserver.PostgreSQL.Shared(t)
		Exec(t, Open(t, "pgx", server.DSN("postgres")), "CREATE DATABASE "+b.Name)
		b.Dialect, b.Driver, b.DSN = sqldb.PostgreSQL, "pgx", server.DSN(b.Name)
	case "MariaDB", "MySQL":
		server := mysqlKind(kind).Shared(t)
		Exec(t, Open(t, "mysql", server.DSN("test")), "CREATE DATABASE "+b.Name)
		b.Dialect, b.Driver, b.DSN = sqldb.MySQL, "mysql", server.DSN(b.Name)+"?interpolateParams=true"
	case "SQLite":
		b.Dialect, b.Driver = sqldb.SQLite, "sqlite"
		b.DSN = "file:" + filepath.Join(t.TempDir(), b.Name) + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate"
	default:
		t.Fatalf("no bed %q", kind)
	}
	return b
}

// Own returns a database on a server of the test's own, which the test may kill.
func Own(t testing.TB, kind string) Bed {
	t.Helper()
	switch kind {
	case "PostgreSQL":
		server := testserver.PostgreSQL.Start(t)
		return Bed{Dialect: sqldb.PostgreSQL, Driver: "pgx", DSN: server.DSN("postgres"), Name: "postgres", Server: server}
	case "MariaDB", "MySQL":
		server := mysqlKind(kind).Start(t)
		return Bed{Dialect: sqldb.MySQL, Driver: "mysql", DSN: server.DSN("test") + "?interpolateParams=true", Name: "test", Server: server}
	}
	t.Fatalf("%q has no server", kind)
	return Bed{}
}

func mysqlKind(kind string) *testserver.Database {
	if kind == "MySQL" {
		return testserver.MySQL
	}
	return testserver.MariaDB
}

// Open returns a pool that is closed at the end of the test.
func Open(t testing.TB, driver, dsn string) *sql.DB {
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

// Exec runs a statement.
func Exec(t testing.TB, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// Dialect returns the dialect of a name of [Names].
func Dialect(kind string) sqldb.Dialect {
	switch kind {
	case "PostgreSQL":
		return sqldb.PostgreSQL
	case "SQLite":
		return sqldb.SQLite
	default:
		return sqldb.MySQL
	}
}
