package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
)

var paid = &sqsonce.Message{
	ID:           "6f2c",
	Body:         `{"order":"42"}`,
	ReceiveCount: 1,
	Attributes: map[string]sqsonce.Attribute{
		sqsonce.AttrEventSource: {Type: "String", String: "orders"},
		sqsonce.AttrEventID:     {Type: "String", String: "42"},
	},
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
	inbox, err := sqlstore.NewInbox(newStore(db), "billing")
	if err != nil {
		log.Fatal(err)
	}
	handler := inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance + 10 WHERE id = 'alice'")
		return err
	})
	for range 10 {
		if err := handler(context.Background(), paid); err != nil {
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
	receive := sqsonce.Batch(inbox.ReceiveBatch) // what a worker or a Lambda function calls
	for range 2 {
		fmt.Println("acknowledged:", receive(context.Background(), paid))
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
	// parked: billing#orders|42 after 1 attempt: sqsonce: rejected: no such account
	// unparked: <nil>
}
