package sqloutbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	_ "modernc.org/sqlite"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/sqloutbox"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// openDB stands for sql.Open("pgx", os.Getenv("DATABASE_URL")). Here it is SQLite in memory, with the tables of both packages.
func openDB(ctx context.Context) *sql.DB {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1) // each connection to :memory: is a database of its own
	if err := sqlstore.Migrate(ctx, db, sqlstore.SQLite); err != nil {
		log.Fatal(err)
	}
	if err := sqloutbox.Migrate(ctx, db, sqlstore.SQLite); err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT, version INTEGER); INSERT INTO orders VALUES ('ord-42', 'new', 2)"); err != nil {
		log.Fatal(err)
	}
	return db
}

// newQueue returns a client of an SQS in memory, and the URL of its FIFO queue.
func newQueue(ctx context.Context) (client *sqs.Client, url string) {
	client = sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"), HTTPClient: &http.Client{Transport: memsqs.New()},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})
	out, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("orders.fifo"), Attributes: map[string]string{"FifoQueue": "true"}})
	if err != nil {
		log.Fatal(err)
	}
	return client, *out.QueueUrl
}

// A consumer that writes and emits: the record of the message it handles, its own write and the event of that are one
// transaction. However often the message comes, the write happens once and the event is published.
func Example() {
	ctx := context.Background()
	db := openDB(ctx)
	defer db.Close()
	store, err := sqlstore.New(db, sqlstore.SQLite)
	if err != nil {
		log.Fatal(err)
	}
	inbox, err := sqlstore.NewInbox(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	box, err := sqloutbox.New(db, sqlstore.SQLite, "orders", "orders")
	if err != nil {
		log.Fatal(err)
	}
	handler := inbox.Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
		var version int
		err := tx.QueryRowContext(ctx, "UPDATE orders SET status = 'paid', version = version + 1 WHERE id = 'ord-42' RETURNING version").Scan(&version)
		if err != nil {
			return err
		}
		return box.Add(ctx, tx, fifo.Event{ // last, and its error is returned
			ID: fmt.Sprintf("ord-42/v%d", version), Group: "ord-42", Type: "order.paid", Body: `{"order":"ord-42"}`,
		})
	})
	message := &sqsonce.Message{
		ID: "6f2c", Body: `{"payment":"7"}`, ReceiveCount: 1,
		Attributes: map[string]sqsonce.Attribute{
			sqsonce.AttrEventSource: {Type: "String", String: "payments"},
			sqsonce.AttrEventID:     {Type: "String", String: "7"},
		},
	}
	for range 3 {
		if err := handler(ctx, message); err != nil {
			log.Fatal(err)
		}
	}

	client, queueURL := newQueue(ctx)
	publisher, err := fifo.NewPublisher(client, queueURL, "orders")
	if err != nil {
		log.Fatal(err)
	}
	relay, err := outbox.NewRelay(box, publisher)
	if err != nil {
		log.Fatal(err)
	}
	// Run relay.Run(ctx) next to your handlers, in any number of processes.
	if err := relay.Drain(ctx, "ord-42"); err != nil {
		log.Fatal(err)
	}
	if err := publisher.Close(ctx); err != nil {
		log.Fatal(err)
	}
	out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queueURL, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range out.Messages {
		fmt.Println(*m.MessageAttributes[sqsonce.AttrEventID].StringValue, *m.Body)
	}
	// Output: ord-42/v3 {"order":"ord-42"}
}

// A transaction that is rolled back adds nothing.
func ExampleOutbox_Add() {
	ctx := context.Background()
	db := openDB(ctx)
	defer db.Close()
	box, err := sqloutbox.New(db, sqlstore.SQLite, "orders", "orders")
	if err != nil {
		log.Fatal(err)
	}
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit} {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET status = 'sent' WHERE id = 'ord-42'"); err != nil {
			log.Fatal(err)
		}
		if err := box.Add(ctx, tx, fifo.Event{ID: "ord-42/sent", Group: "ord-42", Body: "{}"}); err != nil {
			log.Fatal(err)
		}
		if err := end(tx); err != nil {
			log.Fatal(err)
		}
		groups, _, err := box.Groups(ctx, "", 10)
		fmt.Println(len(groups), "group with events", err)
	}
	// Output:
	// 0 group with events <nil>
	// 1 group with events <nil>
}

// An order expires after half an hour, unless it is paid.
func ExampleOutbox_AddAt() {
	ctx := context.Background()
	db := openDB(ctx)
	defer db.Close()
	box, err := sqloutbox.New(db, sqlstore.SQLite, "orders", "orders")
	if err != nil {
		log.Fatal(err)
	}
	place := func(ctx context.Context, tx *sql.Tx, order string) error {
		return box.AddAt(ctx, tx, time.Now().Add(30*time.Minute), fifo.Event{
			ID: order + "/expire", Group: order, Type: "order.expired", Body: `{"order":"` + order + `"}`,
		})
	}
	paid := func(ctx context.Context, tx *sql.Tx, order string) error {
		if _, err := box.Cancel(ctx, tx, order+"/expire"); err != nil {
			return err
		}
		return box.Add(ctx, tx, fifo.Event{ID: order + "/paid", Group: order, Type: "order.paid", Body: `{"order":"` + order + `"}`})
	}
	for _, step := range []func(context.Context, *sql.Tx, string) error{place, paid} {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			log.Fatal(err)
		}
		if err := step(ctx, tx, "ord-42"); err != nil {
			log.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			log.Fatal(err)
		}
		scheduled, err := box.Scheduled(ctx, 10)
		groups, _, groupsErr := box.Groups(ctx, "", 10)
		fmt.Println(len(scheduled), "scheduled,", len(groups), "group with events", err, groupsErr)
	}
	// Output:
	// 1 scheduled, 0 group with events <nil> <nil>
	// 0 scheduled, 1 group with events <nil> <nil>
}
