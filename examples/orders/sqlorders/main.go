// Command sqlorders runs the orders handler with its records and its ledger in one relational database: as a Lambda
// function where Lambda starts it, else as a worker. Record and booking commit together.
//
//	sqlorders               runs the handler
//	sqlorders setup         creates the tables, unless they exist
//	sqlorders ledger        prints the ledger as JSON
//	sqlorders redrive FILE  redrives the dead-letter queue DLQ_URL; what it deletes is in FILE
//	sqlorders publish       places orders and commits their events with them; the command publish has its variables
//	sqlorders relay         publishes what is committed, until SIGTERM
//
// Environment variables: STORE (postgres, mariadb or sqlite), DATABASE_URL (the driver's data source name), and those of
// the commands worker and lambda except DEDUP_TABLE and LEDGER_TABLE.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/examples/orders/internal/redrive"
	"github.com/sqsonce/sqsonce/examples/orders/lambdahost"
	"github.com/sqsonce/sqsonce/examples/orders/publishing"
	"github.com/sqsonce/sqsonce/examples/orders/workerhost"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(log); err != nil {
		log.Error("sqlorders has failed", "error", err)
		os.Exit(1)
	}
}

func run(log *slog.Logger) error {
	l, err := openLedger(os.Getenv("STORE"), os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer l.db.Close()    // every call has returned
	if len(os.Args) > 1 { // no handlers
		l.limit(8)
	}
	newHandler := func(_ aws.Config, c orders.Config) (sqsonce.Handler, error) { return l.handler(c) }
	switch {
	case len(os.Args) > 1 && os.Args[1] == "setup":
		return l.setup(context.Background())
	case len(os.Args) > 1 && os.Args[1] == "ledger":
		accounts, err := l.read(context.Background())
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(accounts)
	case len(os.Args) > 1 && os.Args[1] == "redrive":
		store, err := l.store()
		if err != nil {
			return err
		}
		return redrive.RunFromEnv(store)
	case len(os.Args) > 1 && os.Args[1] == "publish":
		return publishing.Run(func(ctx context.Context, _ aws.Config) (publishing.Outbox, error) { return l.orders(ctx) })
	case len(os.Args) > 1 && os.Args[1] == "relay":
		return publishing.RunRelay(log, func(context.Context, aws.Config) (outbox.Store, error) { return l.outbox() })
	case len(os.Args) > 1:
		return fmt.Errorf("unknown argument %q: use setup, ledger, redrive, publish, relay or none", os.Args[1])
	case os.Getenv("AWS_LAMBDA_RUNTIME_API") != "":
		return lambdahost.Run(log, newHandler)
	}
	return workerhost.Run(log, newHandler)
}

func (l *ledger) store() (*sqlstore.Store, error) {
	store, err := sqlstore.New(l.db, l.dialect)
	if err != nil {
		return nil, err
	}
	return store, store.Check(context.Background())
}

func (l *ledger) handler(c orders.Config) (sqsonce.Handler, error) {
	store, err := l.store()
	if err != nil {
		return nil, err
	}
	inbox, err := sqlstore.NewInbox(store, c.Consumer, c.Dedup)
	if err != nil {
		return nil, err
	}
	c.Watched(c.Consumer, inbox)
	return orders.NewHandlerWithStore(store, c, inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
		o, err := sqsonce.Decode[orders.Order](m)
		if err != nil {
			return err
		}
		return l.book(ctx, tx, o)
	}))
}
