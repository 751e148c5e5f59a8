package choose

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// A process acquires the record, charges the card, and is killed before it completes the record. While the lease runs
// nobody else starts the event. Then the policy decides: run it again, which charges twice, or keep it for a person.
func Example_leaseCrash() {
	ctx := context.Background()
	for name, policy := range map[string]dedup.CrashPolicy{"Rerun": dedup.OnCrashRerun, "Block": dedup.OnCrashBlock} {
		clock := newClock()
		srv := memdynamodb.New(func(o *memdynamodb.Options) { o.Now = clock.now })
		charged := 0

		// The first process, up to its end. This is what dedup.Once does before the handler.
		if _, err := newStore(srv).Acquire(ctx, dedup.Claim{
			Key: "billing#orders|42", Owner: "process 1", Lease: 30 * time.Second, Retention: 24 * time.Hour, ReceiveCount: 1,
		}); err != nil {
			log.Fatal(err)
		}
		charged++

		once, err := dedup.New(newStore(srv), "billing", func(o *dedup.Options) {
			o.OnCrash, o.Logger = policy, slog.New(slog.DiscardHandler)
		})
		if err != nil {
			log.Fatal(err)
		}
		second := once.Handler(func(context.Context, *sqsonce.Message) error { charged++; return nil })
		err = second(ctx, event("42"))
		during := fmt.Sprintf("%s: charged %d while the lease runs (in progress: %t)", name, charged, errors.Is(err, sqsonce.ErrInProgress))
		clock.pass(35 * time.Second)
		err = second(ctx, event("42"))
		fmt.Printf("%s, %d after it (done: %t)\n", during, charged, err == nil)
		srv.Close()
	}
	// Unordered output:
	// Rerun: charged 1 while the lease runs (in progress: true), 2 after it (done: true)
	// Block: charged 1 while the lease runs (in progress: true), 1 after it (done: false)
}

// An inbox whose process ends between the write and the commit leaves nothing behind: the booking is made once. What the
// handler did outside its transaction is not undone, and happens again.
func Example_inboxCrash() {
	ctx := context.Background()
	db := openDB("CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER)", "INSERT INTO account VALUES ('alice', 0)")
	defer db.Close()
	if err := sqlstore.Migrate(ctx, db, sqlstore.SQLite); err != nil {
		log.Fatal(err)
	}
	store, err := sqlstore.New(db, sqlstore.SQLite)
	if err != nil {
		log.Fatal(err)
	}
	inbox, err := sqlstore.NewInbox(store, "ledger")
	if err != nil {
		log.Fatal(err)
	}
	mails := 0
	crash := true
	handler := inbox.Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance + 10 WHERE id = 'alice'"); err != nil {
			return err
		}
		mails++ // not in the database
		if crash {
			return tx.Rollback() // as the database does when the connection of a killed process breaks
		}
		return nil
	})

	fmt.Println("first delivery done:", handler(ctx, event("42")) == nil)
	crash = false
	fmt.Println("second delivery done:", handler(ctx, event("42")) == nil)
	fmt.Println("third delivery done:", handler(ctx, event("42")) == nil)
	var balance int
	if err := db.QueryRow("SELECT balance FROM account").Scan(&balance); err != nil {
		log.Fatal(err)
	}
	fmt.Println("balance:", balance, "mails:", mails)
	// Output:
	// first delivery done: false
	// second delivery done: true
	// third delivery done: true
	// balance: 10 mails: 2
}

// A store that loses a completed record runs its event again: Redis after a failover to a replica that had not received the
// record, after a restart without an append-only file, or by eviction. A new memstore stands for what is left.
func Example_recordLost() {
	charged := 0
	deliver := func(store dedup.Store) {
		once, err := dedup.New(store, "billing")
		if err != nil {
			log.Fatal(err)
		}
		handler := once.Handler(func(context.Context, *sqsonce.Message) error { charged++; return nil })
		if err := handler(context.Background(), event("42")); err != nil {
			log.Fatal(err)
		}
	}
	primary, replica := memstore.New(), memstore.New()
	deliver(primary)
	deliver(primary)
	fmt.Println("before the failover: charged", charged)
	deliver(replica)
	fmt.Println("after it: charged", charged)
	// Output:
	// before the failover: charged 1
	// after it: charged 2
}
