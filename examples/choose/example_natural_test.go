package choose

import (
	"database/sql"
	"fmt"
	"log"

	_ "modernc.org/sqlite"
)

// openDB is an SQLite database in memory.
func openDB(statements ...string) *sql.DB {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1) // each connection to :memory: is a database of its own
	for _, s := range statements {
		exec(db, s)
	}
	return db
}

// exec returns how many rows were written.
func exec(db *sql.DB, statement string, args ...any) int64 {
	res, err := db.Exec(statement, args...)
	if err != nil {
		log.Fatal(err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		log.Fatal(err)
	}
	return n
}

// SET may be repeated, but not out of order: an old event that comes again overwrites a newer one. A version in the
// condition refuses it.
func Example_naturalOutOfOrder() {
	db := openDB("CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT, version INTEGER)", "INSERT INTO orders VALUES ('42', 'new', 0)")
	defer db.Close()
	status := func() (s string) {
		if err := db.QueryRow("SELECT status FROM orders").Scan(&s); err != nil {
			log.Fatal(err)
		}
		return s
	}
	set := func(status string, _ int) { exec(db, "UPDATE orders SET status = ? WHERE id = '42'", status) }
	setNewer := func(status string, version int) {
		exec(db, "UPDATE orders SET status = ?, version = ? WHERE id = '42' AND version < ?", status, version, version)
	}
	for _, apply := range []func(string, int){set, setNewer} {
		apply("paid", 1)
		apply("shipped", 2)
		apply("paid", 1) // delivered again
		fmt.Println(status())
	}
	// Output:
	// paid
	// shipped
}

// ON CONFLICT makes one row once. It knows nothing of a second effect: if the process dies between the two, the next delivery
// finds the row, takes the event for done, and no mail is ever sent. Without the test of the rows affected each delivery
// sends one.
func Example_onConflictSecondEffect() {
	db := openDB("CREATE TABLE invoice (order_id TEXT PRIMARY KEY, amount INTEGER)")
	defer db.Close()
	mails := 0
	deliver := func(crash bool) {
		if exec(db, "INSERT INTO invoice VALUES ('42', 10) ON CONFLICT (order_id) DO NOTHING") == 0 {
			return // a duplicate
		}
		if crash {
			return
		}
		mails++
	}
	deliver(true)
	deliver(false)
	var invoices int
	if err := db.QueryRow("SELECT COUNT(*) FROM invoice").Scan(&invoices); err != nil {
		log.Fatal(err)
	}
	fmt.Println("invoices:", invoices, "mails:", mails)
	// Output: invoices: 1 mails: 0
}

// The row lock makes deliveries wait for each other. What recognises the second one is the event's ID in the locked row, here
// of the last event only: an older one that comes again is not recognised.
func Example_rowLock() {
	db := openDB("CREATE TABLE stock (item TEXT PRIMARY KEY, pieces INTEGER, last_event TEXT)", "INSERT INTO stock VALUES ('book', 3, '')")
	defer db.Close()
	sell := func(event string) {
		tx, err := db.Begin() // SQLite has one writer at a time; PostgreSQL and MySQL: SELECT ... FOR UPDATE
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		var pieces int
		var last string
		if err := tx.QueryRow("SELECT pieces, last_event FROM stock WHERE item = 'book'").Scan(&pieces, &last); err != nil {
			log.Fatal(err)
		}
		if last == event || pieces == 0 {
			return
		}
		if _, err := tx.Exec("UPDATE stock SET pieces = ?, last_event = ? WHERE item = 'book'", pieces-1, event); err != nil {
			log.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			log.Fatal(err)
		}
		fmt.Println(event, "left:", pieces-1)
	}
	sell("order-1")
	sell("order-1")
	sell("order-2")
	sell("order-1")
	// Output:
	// order-1 left: 2
	// order-2 left: 1
	// order-1 left: 0
}
