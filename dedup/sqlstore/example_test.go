package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"strconv"
	"time"

	_ "modernc.org/sqlite"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/limit"
)

// openDB stands for sql.Open("pgx", os.Getenv("DATABASE_URL")). Here it is SQLite in memory.
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

// What an operator sees of an event, and how to make its next delivery run the handler again.
func ExampleStore_Inspect() {
	ctx := context.Background()
	db := openDB()
	defer db.Close()
	store := newStore(db)
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
	fmt.Println("completed:", record.Completed, "receives:", record.ReceiveCount)
	if err := store.Delete(ctx, key); err != nil {
		log.Fatal(err)
	}
	_, err = store.Inspect(ctx, key)
	fmt.Println(err)
	// Output:
	// completed: true receives: 1
	// dedup: no record
}

func newStore(db *sql.DB) *sqlstore.Store {
	if err := sqlstore.Migrate(context.Background(), db, sqlstore.SQLite); err != nil {
		log.Fatal(err)
	}
	store, err := sqlstore.New(db, sqlstore.SQLite)
	if err != nil {
		log.Fatal(err)
	}
	return store
}

// The balance and the event's record change together or not at all.
func ExampleInbox_Handler() {
	db := scratch("CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER)", "INSERT INTO account VALUES ('alice', 0)")
	defer db.Close()
	store := newStore(db)
	inbox, err := sqlstore.NewInbox(store, "billing") // store: of sqlstore.New
	if err != nil {
		log.Fatal(err)
	}
	handler := inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance + 10 WHERE id = 'alice'")
		return err
	})
	for range 10 {
		if err := handler(context.Background(), message); err != nil {
			log.Fatal(err)
		}
	}
	var balance int
	if err := db.QueryRow("SELECT balance FROM account").Scan(&balance); err != nil {
		log.Fatal(err)
	}
	fmt.Println("balance:", balance)
	// Output: balance: 10
}

// Messages are stored and acknowledged at once, and handled from the table.
func ExampleProcessor_Run() {
	db := scratch()
	defer db.Close()
	inbox, err := sqlstore.NewDeferred(newStore(db), "billing")
	if err != nil {
		log.Fatal(err)
	}
	receive := sqsonce.Batch(inbox.ReceiveBatch) // the handler of a worker or a Lambda function
	for range 2 {
		fmt.Println("acknowledged:", receive(context.Background(), message))
	}

	processor, err := sqlstore.NewProcessor(inbox, func(o *sqlstore.ProcessorOptions) {
		o.Poll = 10 * time.Millisecond
		o.MaxAttempts = 5
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	err = processor.Run(ctx, func(_ context.Context, m *sqsonce.Message, _ *sql.Tx) error {
		stop()
		return sqsonce.Reject(errors.New("no such account"))
	})
	fmt.Println("stopped:", err)

	parked, err := inbox.Parked(context.Background(), 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range parked {
		fmt.Println("parked:", e.Key, "after", e.Attempts, "attempt:", e.Error)
		fmt.Println("unparked:", inbox.Unpark(context.Background(), e.Key))
	}
	// Output:
	// acknowledged: <nil>
	// acknowledged: <nil>
	// stopped: <nil>
	// parked: billing#orders|order-42 after 1 attempt: sqsonce: rejected: no such account
	// unparked: <nil>
}

// Two events of a customer, the message group, run in their order, one a second. The wait isn't an attempt.
func ExampleProcessor_Run_limit() {
	db := scratch()
	defer db.Close()
	inbox, err := sqlstore.NewDeferred(newStore(db), "billing")
	if err != nil {
		log.Fatal(err)
	}
	limits, err := limit.New([]limit.Rule{{Name: "customer", Plan: limit.Plan{Rate: limit.Rate{N: 1, Per: 5 * time.Second, Burst: 1}}}})
	if err != nil {
		log.Fatal(err)
	}
	defer limits.Close(context.Background()) // after Run
	receive := sqsonce.Batch(inbox.ReceiveBatch)
	for i, id := range []string{"placed", "paid"} {
		m := *message
		m.ID, m.Body, m.Group, m.Sequence = id, id, "customer-7", strconv.Itoa(i+1)
		m.Attributes = map[string]sqsonce.Attribute{
			sqsonce.AttrEventSource: {Type: "String", String: "orders"},
			sqsonce.AttrEventID:     {Type: "String", String: id},
		}
		if err := receive(context.Background(), &m); err != nil {
			log.Fatal(err)
		}
	}

	processor, err := sqlstore.NewProcessor(inbox, func(o *sqlstore.ProcessorOptions) {
		o.Poll = 10 * time.Millisecond
		o.MaxAttempts = 1
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	err = processor.Run(ctx, func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
		return limits.Do(ctx, m, func(context.Context) error {
			fmt.Println(m.Body) // and the effect, in tx
			if m.Body == "paid" {
				stop()
			}
			return nil
		})
	})
	fmt.Println("stopped:", err)
	fmt.Println("postponed:", processor.Stats().Postponed > 0, "failed:", processor.Stats().Failed)
	// Output:
	// placed
	// paid
	// stopped: <nil>
	// postponed: true failed: 0
}
