package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

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

// A server ends a session by an administrator's command: the outcome of its running statement is unknown.
func TestClassifyKilled(t *testing.T) {
	each(t, servers, NewBed, func(t *testing.T, b *Bed) {
		conn := must.Get(b.DB.Conn(t.Context()))(t)
		defer sqldb.Discard(conn)
		var id int
		must.Do(t, conn.QueryRowContext(t.Context(), b.kind.SessionID).Scan(&id))
		time.AfterFunc(100*time.Millisecond, func() { _, _ = b.DB.Exec(fmt.Sprintf(b.kind.Kill, id)) })
		_, err := conn.ExecContext(t.Context(), b.kind.Sleep)
		if got := b.Dialect.classify(err); err == nil || got != sqldb.Unknown {
			t.Errorf("got class %d of error %v, want unknown", got, err)
		}
	})
}

// A server ends a session that was idle for too long, also in a transaction. MySQL refuses the next statement with the
// reason and does not execute it. Other servers only close the connection.
func TestClassifyIdle(t *testing.T) {
	each(t, mysqls, NewBed, func(t *testing.T, b *Bed) {
		conn := must.Get(b.DB.Conn(t.Context()))(t)
		defer sqldb.Discard(conn)
		var id int
		must.Do(t, conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id))
		for _, text := range []string{"SET SESSION wait_timeout = 1", "BEGIN"} {
			must.Get(conn.ExecContext(t.Context(), text))(t)
		}
		eventually(t, "the session is over", func() bool {
			var sessions int
			err := b.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?", id).Scan(&sessions)
			return err == nil && sessions == 0
		})
		_, err := conn.ExecContext(t.Context(), b.Dialect.sql("DELETE FROM {records}"))
		if got := b.Dialect.classify(err); err == nil || got != sqldb.Unwritten && got != sqldb.Unknown {
			t.Errorf("got class %d of error %v, want one that may be retried", got, err)
		}
	})
}

// If a SQLSTATE is not listed, its class decides.
func TestClassifySQLState(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]sqldb.Class{
		"40001": sqldb.Conflict, "40P01": sqldb.Conflict, "57014": sqldb.Unwritten, "08006": sqldb.Unknown, "08003": sqldb.Unknown, "57P01": sqldb.Unknown, "28P01": sqldb.Denied, "53100": sqldb.Unwritten, "22003": sqldb.Other, "": sqldb.Unknown,
	} {
		if got := PostgreSQL.classify(&pgconn.PgError{Code: code}); got != want {
			t.Errorf("SQLSTATE %q: got class %d, want %d", code, got, want)
		}
	}
}

// Errors of MySQL only, and errors that a test cannot provoke.
func TestClassifyMySQLNumber(t *testing.T) {
	t.Parallel()
	for number, want := range map[uint16]sqldb.Class{1213: sqldb.Conflict, 3572: sqldb.Conflict, 4031: sqldb.Unwritten, 1290: sqldb.ReadOnly, 1836: sqldb.ReadOnly, 1317: sqldb.Unknown, 3169: sqldb.Unknown, 1: sqldb.Other} {
		if got := MySQL.classify(fmt.Errorf("wrapped: %w", &mysqldriver.MySQLError{Number: number})); got != want {
			t.Errorf("error %d: got class %d, want %d", number, got, want)
		}
	}
}

// pets is a table with two open transactions.
type pets struct {
	t        *testing.T
	b        *Bed
	one, two *sql.Conn
}

// newPets begins two transactions, each in a session with the setting.
func newPets(t *testing.T, b *Bed, setting string) *pets {
	t.Helper()
	exec(t, b.DB, "CREATE TABLE IF NOT EXISTS pets (id int PRIMARY KEY, n int NOT NULL)")
	exec(t, b.DB, "DELETE FROM pets")
	exec(t, b.DB, "INSERT INTO pets VALUES (1, 0), (2, 0)")
	p := &pets{t: t, b: b}
	p.one, p.two = p.begin(setting), p.begin(setting)
	return p
}

func (p *pets) begin(setting string) *sql.Conn {
	p.t.Helper()
	conn := must.Get(p.b.DB.Conn(p.t.Context()))(p.t)
	for _, text := range []string{setting, "BEGIN"} {
		if _, err := conn.ExecContext(p.t.Context(), text); err != nil {
			p.t.Fatalf("%s: %v", text, err)
		}
	}
	return conn
}

func (p *pets) add(c *sql.Conn, id int) error {
	_, err := c.ExecContext(p.t.Context(), fmt.Sprintf("UPDATE pets SET n = n + 1 WHERE id = %d", id))
	return err
}

// expect expects one of the errors to say that the database rolled its transaction back. It ends both transactions.
func (p *pets) expect(errs ...error) {
	p.t.Helper()
	sqldb.Discard(p.one)
	sqldb.Discard(p.two)
	if err := errors.Join(errs...); !sqldb.Dialect(p.b.Dialect).RolledBack(err) {
		p.t.Errorf("got error %v of class %d, want one that may be run again", err, p.b.Dialect.classify(err))
	}
}

// A transaction that the database rolled back is distinguished from one with an unknown outcome: only the first may be run
// again.
func TestClassifyConflicts(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		if b.kind.Dialect.OneWriter() {
			p := newPets(t, b, b.kind.LockTimeout)
			p.expect(p.add(p.one, 1), p.add(p.two, 2))
			return
		}
		p := newPets(t, b, b.kind.LockTimeout)
		p.expect(p.add(p.one, 1), p.add(p.two, 1))

		p = newPets(t, b, "SELECT 1")
		must.Do(t, errors.Join(p.add(p.one, 1), p.add(p.two, 2)))
		first := make(chan error, 1)
		go func() {
			err := p.add(p.one, 2)
			if err != nil {
				sqldb.Discard(p.one) // so that the other continues
			}
			first <- err
		}()
		time.Sleep(50 * time.Millisecond) // either transaction may be the one that closes the cycle
		second := p.add(p.two, 1)
		if second != nil {
			sqldb.Discard(p.two)
		}
		p.expect(<-first, second)

		if b.kind.Snapshot != "" {
			p := newPets(t, b, b.kind.Snapshot)
			must.Do(t, p.one.QueryRowContext(t.Context(), "SELECT sum(n) FROM pets").Scan(new(int)))
			exec(t, b.DB, "UPDATE pets SET n = 9 WHERE id = 1")
			p.expect(p.add(p.one, 1))
		}
	})
}
