package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// The drivers' own errors, provoked on the databases.
func TestClassify(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		exec(t, b.DB, "CREATE TABLE pets (id int PRIMARY KEY, name varchar(60) NOT NULL)")
		exec(t, b.DB, "INSERT INTO pets VALUES (1, 'a'), (2, 'b')")
		for _, tt := range []struct {
			name, text string
			want       sqldb.Class
		}{
			{"duplicate", "INSERT INTO pets VALUES (1, 'Error 1213 (40001): no such table')", sqldb.Duplicate},
			{"no table", "SELECT * FROM cats", sqldb.NoTable},
			{"no column", "SELECT age FROM pets", sqldb.NoColumn},
			{"no column to insert into", "INSERT INTO pets (age) VALUES (1)", sqldb.NoColumn},
			{"syntax", "SELEC 1", sqldb.UnknownSyntax},
			{"no function", "SELECT no_such_function(1)", sqldb.UnknownSyntax},
			{"not null", "INSERT INTO pets VALUES (3, NULL)", sqldb.Other},
		} {
			_, err := b.DB.ExecContext(t.Context(), tt.text)
			if got := b.Dialect.classify(fmt.Errorf("wrapped: %w", err)); err == nil || got != tt.want {
				t.Errorf("%s: got class %d of error %v, want %d", tt.name, got, err, tt.want)
			}
		}
		for _, err := range []error{io.ErrUnexpectedEOF, context.DeadlineExceeded, errors.New("anything")} {
			if got := b.Dialect.classify(err); got != sqldb.Unknown {
				t.Errorf("%v: got class %d, want unknown", err, got)
			}
		}
	})
}

// A transaction that lost to another one may be run again.
func TestClassifyConflicts(t *testing.T) {
	t.Parallel()
	for d, errs := range map[Dialect][]error{
		PostgreSQL: {&pgconn.PgError{Code: "40001"}, &pgconn.PgError{Code: "40P01"}, &pgconn.PgError{Code: "55P03"}},
		MySQL:      {&mysqldriver.MySQLError{Number: 1213}, &mysqldriver.MySQLError{Number: 1205}, &mysqldriver.MySQLError{Number: 1020}, &mysqldriver.MySQLError{Number: 3572}, &mysqldriver.MySQLError{Number: 3101}},
		SQLite:     {sqliteError(5), sqliteError(6)},
	} {
		for _, err := range errs {
			if !sqldb.Dialect(d).IsConflict(fmt.Errorf("wrapped: %w", err)) {
				t.Errorf("%s: %v is no conflict", d, err)
			}
		}
	}
}
