// Command postgres is the worker of docs/stores.md: an order's row and its event's record are in PostgreSQL.
package main

import (
	"context"
	"database/sql"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/sqsworker"
)

type Order struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

// book writes with tx, which commits its row and the event's record together.
func book(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
	o, err := sqsonce.Decode[Order](m)
	if err == nil {
		_, err = tx.ExecContext(ctx, "INSERT INTO ledger (order_id, cents) VALUES ($1, $2)", o.ID, o.Cents)
	}
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg := must(config.LoadDefaultConfig(ctx))
	db := must(sql.Open("pgx", os.Getenv("DATABASE_URL")))
	db.SetMaxOpenConns(20) // more than the worker's Concurrency, 10
	db.SetMaxIdleConns(20)
	check(sqlstore.Migrate(ctx, db, sqlstore.PostgreSQL)) // makes the tables of the records
	store := must(sqlstore.New(db, sqlstore.PostgreSQL))
	check(store.Check(ctx))
	go func() { check(store.SweepEvery(ctx, time.Hour)) }() // deletes expired records
	inbox := must(sqlstore.NewInbox(store, "billing"))      // the consumer's name, a part of every key
	worker := must(sqsworker.New(sqs.NewFromConfig(cfg), os.Getenv("QUEUE_URL"), inbox.Handler(book)))
	check(worker.Run(ctx))
}

func must[T any](v T, err error) T { check(err); return v }
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
