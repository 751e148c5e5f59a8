// Package sqlbed makes databases for the tests of this module.
package sqlbed

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// atOnce is how many tests run at the same time, unless -parallel says so. They wait for servers more than they work: the limit
// of go test, the number of processors, would be far too low.
const atOnce = 6

// Main runs the tests of a package, and ends the servers that they started.
func Main(m *testing.M) {
	_ = mysqldriver.SetLogger(&mysqldriver.NopLogger{}) // it logs every connection that the tests break
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
			panic(err) // the testing package has it
		}
	}
	testserver.Main(m)
}

// Bed is a database without tables.
type Bed struct {
	Kind
	// DSN opens the database, and Name is its name on its server.
	DSN, Name string
	// Server is the database's server, if it is the test's own.
	Server *testserver.Server
}

// New returns an empty database of a name of [Names]. If its server is missing, the test is skipped, or fails with
// EMULATORS=required. SQLite is never missing. MySQL is skipped unless TESTSERVER_MYSQL names its server.
func New(t testing.TB, kind string) Bed {
	t.Helper()
	b := Bed{Kind: KindOf(kind), Name: "t" + strings.ToLower(rand.Text())}
	if b.server == nil {
		b.DSN = "file:" + filepath.Join(t.TempDir(), b.Name) + b.parameters
		return b
	}
	server := b.server.Shared(t)
	Exec(t, Open(t, b.Driver, server.DSN(b.existing)), "CREATE DATABASE "+b.Name)
	b.DSN = server.DSN(b.Name) + b.parameters
	return b
}

// Own returns a database on a server of the test's own, which the test may kill.
func Own(t testing.TB, kind string) Bed {
	t.Helper()
	k := KindOf(kind)
	if k.server == nil {
		t.Fatalf("%q has no server", kind)
	}
	server := k.server.Start(t)
	return Bed{Kind: k, DSN: server.DSN(k.existing) + k.parameters, Name: k.existing, Server: server}
}

// Open returns a pool that is closed at the end of the test.
func Open(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db := must.Get(sql.Open(driver, dsn))(t)
	t.Cleanup(func() { must.Do(t, db.Close()) })
	return db
}

// Exec runs a statement.
func Exec(t testing.TB, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// Rows are the rows of a query, with their columns that are not NULL.
func Rows(ctx context.Context, db *sql.DB, text string, args ...any) (all []map[string]string, err error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the errors
	columns, err := rows.Columns()
	for err == nil && rows.Next() {
		values, into, row := make([]sql.NullString, len(columns)), make([]any, len(columns)), map[string]string{}
		for i := range values {
			into[i] = &values[i]
		}
		err = rows.Scan(into...)
		for i, v := range values {
			if v.Valid {
				row[columns[i]] = v.String
			}
		}
		all = append(all, row)
	}
	return all, errors.Join(err, rows.Err())
}

// Plan is a statement's plan in small letters, with a line for each of its rows.
func (k Kind) Plan(t testing.TB, db *sql.DB, text string, args ...any) string {
	t.Helper()
	all := ""
	for _, row := range must.Get(Rows(t.Context(), db, k.Explain+text, args...))(t) {
		for _, column := range slices.Sorted(maps.Keys(row)) {
			all += column + "=" + row[column] + " "
		}
		all += "\n"
	}
	return strings.ToLower(all)
}
