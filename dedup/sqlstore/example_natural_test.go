package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite"
)

// An effect that does not change when it is repeated needs no Inbox. SET is such an effect. += is not: it needs an Inbox.
func Example_naturalSet() {
	db := scratch("CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER)")
	defer db.Close()
	fresh := "INSERT INTO account (id, balance) VALUES ('alice', 0) ON CONFLICT (id) DO UPDATE SET balance = 0"
	const read = "SELECT balance FROM account"

	table(db, "SET", fresh, read, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE account SET balance = 10 WHERE id = 'alice'")
		return err
	})
	table(db, "+=", fresh, read, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance + 10 WHERE id = 'alice'")
		return err
	})
	// Output:
	// SET: once 10, twice 10, ten times 10, five at once 10
	// +=: once 10, twice 20, ten times 100, five at once 50
}

// A row whose primary key comes from the event cannot exist twice, whoever inserts it.
func Example_naturalOnConflict() {
	db := scratch("CREATE TABLE invoice (order_id TEXT PRIMARY KEY, amount INTEGER)")
	defer db.Close()
	const fresh, read = "DELETE FROM invoice", "SELECT COUNT(*) FROM invoice"

	table(db, "invoices", fresh, read, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO invoice (order_id, amount) VALUES ('42', 10) ON CONFLICT (order_id) DO NOTHING")
		return err
	})
	// Output:
	// invoices: once 1, twice 1, ten times 1, five at once 1
}

// A state changes only once: the rows affected say whether this delivery changed it, and only then is there more to do.
// The rest must be in the same transaction, or a crash between them would lose it.
func Example_naturalStateTransition() {
	db := scratch("CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT)", "CREATE TABLE mail (order_id TEXT)")
	defer db.Close()
	const fresh = "DELETE FROM mail; INSERT INTO orders (id, status) VALUES ('42', 'pending') ON CONFLICT (id) DO UPDATE SET status = 'pending'"

	table(db, "mails", fresh, "SELECT COUNT(*) FROM mail", func(ctx context.Context, tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, "UPDATE orders SET status = 'paid' WHERE id = '42' AND status = 'pending'")
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return err // paid by an earlier delivery
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO mail (order_id) VALUES ('42')")
		return err
	})
	// Output:
	// mails: once 1, twice 1, ten times 1, five at once 1
}

// A decision about a row needs its lock: SELECT ... FOR UPDATE. On SQLite a transaction that begins with BEGIN IMMEDIATE,
// here by the parameter _txlock of the data source name, is the only one that writes, and needs no other lock.
//
// The lock keeps the stock from falling below zero. It does not recognise a repeated event, which takes one more piece.
func Example_naturalRowLock() {
	db := scratch("CREATE TABLE stock (item TEXT PRIMARY KEY, pieces INTEGER)")
	defer db.Close()
	const fresh = "INSERT INTO stock (item, pieces) VALUES ('book', 3) ON CONFLICT (item) DO UPDATE SET pieces = 3"

	table(db, "pieces left", fresh, "SELECT pieces FROM stock", func(ctx context.Context, tx *sql.Tx) error {
		var pieces int
		if err := tx.QueryRowContext(ctx, "SELECT pieces FROM stock WHERE item = 'book'").Scan(&pieces); err != nil {
			return err
		}
		if pieces == 0 {
			return nil // sold out
		}
		_, err := tx.ExecContext(ctx, "UPDATE stock SET pieces = ? WHERE item = 'book'", pieces-1)
		return err
	})
	// Output:
	// pieces left: once 2, twice 1, ten times 0, five at once 0
}

// scratch returns an SQLite database with the tables.
func scratch(tables ...string) *sql.DB {
	dir, err := os.MkdirTemp("", "natural")
	if err != nil {
		log.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "db")+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range tables {
		if _, err := db.Exec(t); err != nil {
			log.Fatal(err)
		}
	}
	return db
}

// table runs the handler for several deliveries of one message, each in a transaction, and prints the results.
func table(db *sql.DB, name, fresh, read string, handler func(context.Context, *sql.Tx) error) {
	ctx := context.Background()
	deliver := func() {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if err := handler(ctx, tx); err != nil {
			log.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			log.Fatal(err)
		}
	}
	left := func(deliveries func()) (n int) {
		if _, err := db.ExecContext(ctx, fresh); err != nil {
			log.Fatal(err)
		}
		deliveries()
		if err := db.QueryRowContext(ctx, read).Scan(&n); err != nil {
			log.Fatal(err)
		}
		return n
	}
	times := func(n int) func() {
		return func() {
			for range n {
				deliver()
			}
		}
	}
	fmt.Printf("%s: once %d, twice %d, ten times %d, five at once %d\n", name, left(times(1)), left(times(2)), left(times(10)),
		left(func() {
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(deliver)
			}
			wg.Wait()
		}))
}
