package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"

	"github.com/sqsonce/sqsonce/dedup/sqlstore"
)

// natural is a handler, and the effects of its repetitions without any store.
type natural struct {
	name    string
	tables  []string
	fresh   []string
	handler func(ctx context.Context, tx *sql.Tx, d sqlstore.Dialect) error
	read    string
	want    [4]int // once, twice, ten times, five at once
}

var naturals = []natural{
	{
		name:   "SET",
		tables: []string{"CREATE TABLE account (id VARCHAR(9) PRIMARY KEY, balance INT)"},
		fresh:  []string{"DELETE FROM account", "INSERT INTO account (id, balance) VALUES ('alice', 0)"},
		handler: func(ctx context.Context, tx *sql.Tx, _ sqlstore.Dialect) error {
			return run(ctx, tx, "UPDATE account SET balance = 10 WHERE id = 'alice'")
		},
		read: "SELECT balance FROM account",
		want: [4]int{10, 10, 10, 10},
	}, {
		name:   "+=",
		tables: []string{"CREATE TABLE account (id VARCHAR(9) PRIMARY KEY, balance INT)"},
		fresh:  []string{"DELETE FROM account", "INSERT INTO account (id, balance) VALUES ('alice', 0)"},
		handler: func(ctx context.Context, tx *sql.Tx, _ sqlstore.Dialect) error {
			return run(ctx, tx, "UPDATE account SET balance = balance + 10 WHERE id = 'alice'")
		},
		read: "SELECT balance FROM account",
		want: [4]int{10, 20, 100, 50}, // not safe: it needs an Inbox
	}, {
		name:   "ON CONFLICT",
		tables: []string{"CREATE TABLE invoice (order_id VARCHAR(9) PRIMARY KEY, amount INT)"},
		fresh:  []string{"DELETE FROM invoice"},
		handler: func(ctx context.Context, tx *sql.Tx, d sqlstore.Dialect) error {
			if d == sqlstore.MySQL {
				return run(ctx, tx, "INSERT INTO invoice (order_id, amount) VALUES ('42', 10) ON DUPLICATE KEY UPDATE order_id = order_id")
			}
			return run(ctx, tx, "INSERT INTO invoice (order_id, amount) VALUES ('42', 10) ON CONFLICT (order_id) DO NOTHING")
		},
		read: "SELECT COUNT(*) FROM invoice",
		want: [4]int{1, 1, 1, 1},
	}, {
		name:   "state transition",
		tables: []string{"CREATE TABLE orders (id VARCHAR(9) PRIMARY KEY, status VARCHAR(9))", "CREATE TABLE mail (order_id VARCHAR(9))"},
		fresh:  []string{"DELETE FROM mail", "DELETE FROM orders", "INSERT INTO orders (id, status) VALUES ('42', 'pending')"},
		handler: func(ctx context.Context, tx *sql.Tx, _ sqlstore.Dialect) error {
			res, err := tx.ExecContext(ctx, "UPDATE orders SET status = 'paid' WHERE id = '42' AND status = 'pending'")
			if err != nil {
				return err
			}
			if n, err := res.RowsAffected(); err != nil || n == 0 {
				return err
			}
			return run(ctx, tx, "INSERT INTO mail (order_id) VALUES ('42')")
		},
		read: "SELECT COUNT(*) FROM mail",
		want: [4]int{1, 1, 1, 1},
	}, {
		name:   "SELECT FOR UPDATE",
		tables: []string{"CREATE TABLE stock (item VARCHAR(9) PRIMARY KEY, pieces INT)"},
		fresh:  []string{"DELETE FROM stock", "INSERT INTO stock (item, pieces) VALUES ('book', 3)"},
		handler: func(ctx context.Context, tx *sql.Tx, d sqlstore.Dialect) error {
			return sell(ctx, tx, forUpdate(d), nil)
		},
		read: "SELECT pieces FROM stock",
		want: [4]int{2, 1, 0, 0},
	},
}

func run(ctx context.Context, tx *sql.Tx, text string) error {
	_, err := tx.ExecContext(ctx, text)
	return err
}

// forUpdate is empty for SQLite, whose transactions here begin with BEGIN IMMEDIATE: one at a time writes.
func forUpdate(d sqlstore.Dialect) string {
	if d == sqlstore.SQLite {
		return ""
	}
	return " FOR UPDATE"
}

// sell takes a piece from the stock if there is one. afterRead is called between the read and the write.
func sell(ctx context.Context, tx *sql.Tx, lock string, afterRead func()) error {
	var pieces int
	if err := tx.QueryRowContext(ctx, "SELECT pieces FROM stock WHERE item = 'book'"+lock).Scan(&pieces); err != nil {
		return err
	}
	if afterRead != nil {
		afterRead()
	}
	if pieces == 0 {
		return nil
	}
	// Not pieces - 1 in SQL, which would need only the UPDATE's own lock: the program decides.
	return run(ctx, tx, fmt.Sprintf("UPDATE stock SET pieces = %d WHERE item = 'book'", pieces-1))
}

func inTx(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// The examples' handlers on each kind of database: twice, ten times, and by five consumers at once.
func TestNatural(t *testing.T) {
	t.Parallel()
	for _, n := range naturals {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			sqlstore.EachDialect(t, func(t *testing.T, b *sqlstore.Bed) {
				must := func(texts ...string) {
					t.Helper()
					for _, text := range texts {
						if _, err := b.DB.ExecContext(t.Context(), text); err != nil {
							t.Fatalf("%s: %v", text, err)
						}
					}
				}
				must(n.tables...)
				for i, c := range []struct {
					name                 string
					consumers, delivered int
				}{{"once", 1, 1}, {"twice", 1, 2}, {"ten times", 1, 10}, {"five at once", 5, 1}} {
					must(n.fresh...)
					var wg sync.WaitGroup
					for range c.consumers {
						wg.Go(func() {
							for range c.delivered {
								if err := inTx(t.Context(), b.DB, func(tx *sql.Tx) error { return n.handler(t.Context(), tx, b.Dialect) }); err != nil {
									t.Errorf("%s: got error %v, want nil", c.name, err)
								}
							}
						})
					}
					wg.Wait()
					var got int
					if err := b.DB.QueryRowContext(t.Context(), n.read).Scan(&got); err != nil {
						t.Fatal(err)
					}
					if got != n.want[i] {
						t.Errorf("%s: got %d, want %d", c.name, got, n.want[i])
					}
				}
			})
		})
	}
}

// Why the lock is needed: two handlers that both read before either writes sell the same piece, without an error.
func TestNaturalWithoutTheLock(t *testing.T) {
	t.Parallel()
	b := sqlstore.NewBed(t, "PostgreSQL")
	for _, text := range []string{"CREATE TABLE stock (item VARCHAR(9) PRIMARY KEY, pieces INT)", "INSERT INTO stock (item, pieces) VALUES ('book', 3)"} {
		if _, err := b.DB.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	var both, wg sync.WaitGroup
	both.Add(2)
	for range 2 {
		wg.Go(func() {
			err := inTx(t.Context(), b.DB, func(tx *sql.Tx) error {
				return sell(t.Context(), tx, "", func() { both.Done(); both.Wait() })
			})
			if err != nil {
				t.Errorf("selling: got error %v, want nil: the loss is silent", err)
			}
		})
	}
	wg.Wait()
	var left int
	if err := b.DB.QueryRowContext(t.Context(), "SELECT pieces FROM stock").Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left != 2 {
		t.Errorf("pieces left after two were sold of 3: got %d, want the wrong 2", left)
	}
}
