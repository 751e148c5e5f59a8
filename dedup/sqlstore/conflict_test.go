package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// pets is a table with two transactions on it.
type pets struct {
	t        *testing.T
	b        *Bed
	one, two *sql.Conn
}

// newPets begins two transactions, each after a setting of its session.
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
	conn, err := p.b.DB.Conn(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
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

// expect expects one of the errors to be of a transaction that the database has ended, and ends both.
func (p *pets) expect(errs ...error) {
	p.t.Helper()
	discard(p.one)
	discard(p.two)
	if err := errors.Join(errs...); !p.b.Dialect.retryable(err) {
		p.t.Errorf("got error %v of class %d, want one to run again", err, p.b.Dialect.classify(err))
	}
}

// Transactions that the database ends are told from those whose outcome is open: only the first may be run again.
func TestClassifyConflicts(t *testing.T) {
	t.Parallel()
	EachDialect(t, func(t *testing.T, b *Bed) {
		if b.Dialect == SQLite {
			p := newPets(t, b, "PRAGMA busy_timeout = 0")
			p.expect(p.add(p.one, 1), p.add(p.two, 2))
			return
		}
		lockTimeout := map[Dialect]string{
			PostgreSQL: "SET lock_timeout = '50ms'", MySQL: "SET SESSION innodb_lock_wait_timeout = 1",
		}[b.Dialect]
		p := newPets(t, b, lockTimeout)
		p.expect(p.add(p.one, 1), p.add(p.two, 1))

		p = newPets(t, b, "SELECT 1")
		if err := errors.Join(p.add(p.one, 1), p.add(p.two, 2)); err != nil {
			t.Fatal(err)
		}
		first := make(chan error, 1)
		go func() {
			err := p.add(p.one, 2)
			if err != nil {
				discard(p.one) // so that the other goes on
			}
			first <- err
		}()
		time.Sleep(50 * time.Millisecond) // either may be the one who closes the circle
		second := p.add(p.two, 1)
		if second != nil {
			discard(p.two)
		}
		p.expect(<-first, second)

		if b.Dialect == PostgreSQL {
			p := newPets(t, b, "SET default_transaction_isolation = 'repeatable read'")
			if err := p.one.QueryRowContext(t.Context(), "SELECT sum(n) FROM pets").Scan(new(int)); err != nil {
				t.Fatal(err)
			}
			exec(t, b.DB, "UPDATE pets SET n = 9 WHERE id = 1")
			p.expect(p.add(p.one, 1))
		}
	})
}

// A statement that the database ended, since a lock was held too long, is run again.
func TestConflictsAreTriedAgain(t *testing.T) {
	t.Parallel()
	EachDialect(t, func(t *testing.T, b *Bed) {
		dsn, held := b.DSN, 500*time.Millisecond
		switch b.Dialect {
		case PostgreSQL:
			dsn += "&lock_timeout=50ms"
		case MySQL:
			dsn += "&innodb_lock_wait_timeout=1"
			held = 1500 * time.Millisecond
		case SQLite:
			dsn = strings.Replace(dsn, "busy_timeout(10000)", "busy_timeout(50)", 1)
		}
		s := storeOn(t, open(t, b.Driver, dsn), b.Dialect)
		if err := s.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		tx := blocked(t, b, "k")
		time.AfterFunc(held, func() { _ = tx.Rollback() })
		mustComplete(t, s, mustAcquire(t, s, claim("k", "a")))
	})
}
