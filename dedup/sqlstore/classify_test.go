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
