package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
)

// openDB stands for sql.Open("pgx", os.Getenv("DATABASE_URL")): here it is SQLite in memory.
func openDB() *sql.DB {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1) // each connection to :memory: is a database of its own
	return db
}

var message = &sqsonce.Message{
	ID:           "6f2c",
	Body:         `{"order":42}`,
	ReceiveCount: 1,
	Attributes: map[string]sqsonce.Attribute{
		sqsonce.AttrEventSource: {Type: "String", String: "orders"},
		sqsonce.AttrEventID:     {Type: "String", String: "order-42"},
	},
}

// A handler that charges a card runs once per event, however often the message comes.
func Example() {
	ctx := context.Background()
	db := openDB()
	defer db.Close()
	if err := sqlstore.Migrate(ctx, db, sqlstore.SQLite); err != nil {
		log.Fatal(err)
	}
	store, err := sqlstore.New(db, sqlstore.SQLite)
	if err != nil {
		log.Fatal(err)
	}
	once, err := dedup.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	handler := once.Handler(func(context.Context, *sqsonce.Message) error {
		fmt.Println("charged")
		return nil
	})
	for range 3 {
		if err := handler(ctx, message); err != nil {
			log.Fatal(err)
		}
	}
	// Output: charged
}

// At start: the tables, a store, and the sweeper, which ends with the process's context. Check says at once what a first
// message would find out.
func ExampleNew() {
	ctx := context.Background()
	db, err := sql.Open("pgx", "postgres://app@db.internal/shop")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(20) // above the host's concurrency
	dialect := sqlstore.PostgreSQL.WithPrefix("shop.once_")
	if err := sqlstore.Migrate(ctx, db, dialect); err != nil {
		log.Fatal(err)
	}
	store, err := sqlstore.New(db, dialect)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Check(ctx); err != nil {
		log.Fatal(err) // a *sqlstore.DatabaseError says what is wrong
	}
	go func() {
		if err := store.SweepEvery(ctx, time.Hour); err != nil {
			log.Print(err)
		}
	}()
}

// What an operator sees of an event, and how its next delivery is made to run again.
func ExampleStore_Inspect() {
	ctx := context.Background()
	db := openDB()
	defer db.Close()
	if err := sqlstore.Migrate(ctx, db, sqlstore.SQLite); err != nil {
		log.Fatal(err)
	}
	store, err := sqlstore.New(db, sqlstore.SQLite)
	if err != nil {
		log.Fatal(err)
	}
	once, err := dedup.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	if err := once.Handler(func(context.Context, *sqsonce.Message) error { return nil })(ctx, message); err != nil {
		log.Fatal(err)
	}
	const key = "billing#orders|order-42"
	record, err := store.Inspect(ctx, key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("completed:", record.Completed, "receives:", record.Attempts)
	if err := store.Delete(ctx, key); err != nil {
		log.Fatal(err)
	}
	_, err = store.Inspect(ctx, key)
	fmt.Println(err)
	// Output:
	// completed: true receives: 1
	// dedup: no record
}
