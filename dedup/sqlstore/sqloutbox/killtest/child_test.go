//go:build unix

package killtest_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/sqloutbox"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/proof/process"
	"github.com/sqsonce/sqsonce/internal/testaws"
)

// The environment variables of a child.
const (
	envRole   = "OUTBOXKILL_ROLE"
	envSQS    = "OUTBOXKILL_SQS"
	envQueue  = "OUTBOXKILL_QUEUE"
	envKind   = "OUTBOXKILL_KIND"
	envDriver = "OUTBOXKILL_DRIVER"
	envDSN    = "OUTBOXKILL_DSN"
	// envDefect makes the relays delete what they read, if it is [earlyDelete]: the test must be able to fail.
	envDefect = "OUTBOXKILL_DEFECT"
)

// source is the namespace of the events.
const source = "shop"

// earlyDelete is a relay that deletes before SQS has confirmed.
const earlyDelete = "delete before confirm"

const (
	relayRole    = "relay"
	producerRole = "producer"
)

// The points at which a child kills itself.
const (
	beforeRead, beforeSend, afterSend, beforeDelete, afterDelete = "before read", "before send", "after send", "before delete", "after delete"
	beforeCommit, afterCommit                                    = "before commit", "after commit"
)

var points = map[string][]string{
	relayRole:    {beforeRead, beforeSend, afterSend, beforeDelete, afterDelete},
	producerRole: {beforeCommit, afterCommit},
}

// runChild runs the child, if this process is one, and does not return then.
func runChild() {
	role := os.Getenv(envRole)
	if role == "" {
		return
	}
	process.EndWithParent()
	c, err := open()
	if err == nil && role == relayRole {
		err = c.relay()
	} else if err == nil {
		err = c.produce()
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
	os.Exit(1)
}

func open() (child, error) {
	db, err := sql.Open(os.Getenv(envDriver), os.Getenv(envDSN))
	if err != nil {
		return child{}, err
	}
	dialect := sqlbed.KindOf(os.Getenv(envKind)).Dialect
	box, err := sqloutbox.New(db, sqlstore.Dialect(dialect), "orders", source)
	return child{db, dialect, box}, err
}

// child is a process with the outbox.
type child struct {
	db      *sql.DB
	dialect sqldb.Dialect
	box     *sqloutbox.Outbox
}

// commit takes the next version and writes its event. The version's row excludes other transactions of the group.
func (c child) commit(ctx context.Context, group string, next func(version int) fifo.Event) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	result, err := tx.ExecContext(ctx, c.dialect.SQL("UPDATE versions SET version = version + 1 WHERE id = ?"), group)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil {
		return err
	} else if n == 0 { // of two producers one gets an error
		if _, err := tx.ExecContext(ctx, c.dialect.SQL("INSERT INTO versions (id, version) VALUES (?, 1)"), group); err != nil {
			return err
		}
	}
	var version int
	err = tx.QueryRowContext(ctx, c.dialect.SQL("SELECT version FROM versions WHERE id = ?"), group).Scan(&version)
	if err != nil {
		return err
	}
	if err := c.box.Add(ctx, tx, next(version)); err != nil {
		return err
	}
	return tx.Commit()
}

// relay publishes until it is killed.
func (c child) relay() error {
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(os.Getenv(envSQS)), Credentials: testaws.Credentials,
		HTTPClient: &http.Client{Transport: killing{http.DefaultTransport}},
	})
	p, err := fifo.NewPublisher(client, os.Getenv(envQueue), source)
	if err != nil {
		return err
	}
	r, err := outbox.NewRelay(doomed{c.box}, p, func(o *outbox.Options) {
		// A relay that dies leaves its claims behind: of few groups, for the least time there is.
		o.Groups, o.Poll, o.LeaseDuration, o.Logger = 4, 20*time.Millisecond, 10*time.Second, slog.New(slog.DiscardHandler)
	})
	if err != nil {
		return err
	}
	return r.Run(context.Background())
}

// produce commits events of random groups until it is killed.
func (c child) produce() error {
	for {
		process.At(beforeCommit)
		group := fmt.Sprint("g", rand.IntN(groups))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := c.commit(ctx, group, func(version int) fifo.Event { return event(group, version) })
		cancel()
		if err != nil { // another producer was first, or the server is busy
			time.Sleep(20 * time.Millisecond)
			continue
		}
		process.At(afterCommit)
		time.Sleep(10 * time.Millisecond)
	}
}

// event returns an event whose body is its ID.
func event(group string, version int) fifo.Event {
	id := fmt.Sprintf("%s/v%d", group, version)
	return fifo.Event{ID: id, Group: group, Body: id}
}

// killing is the network to SQS.
type killing struct{ http.RoundTripper }

func (k killing) RoundTrip(r *http.Request) (*http.Response, error) {
	process.At(beforeSend)
	defer process.At(afterSend)
	return k.RoundTripper.RoundTrip(r)
}

type doomed struct{ outbox.Store }

func (d doomed) Read(ctx context.Context, g outbox.Group, known outbox.Known, limit int) ([]outbox.Entry, error) {
	process.At(beforeRead)
	es, err := d.Store.Read(ctx, g, known, limit)
	if os.Getenv(envDefect) == earlyDelete && len(es) > 0 {
		_, _ = d.Store.Delete(ctx, es)
	}
	return es, err
}

func (d doomed) Delete(ctx context.Context, es []outbox.Entry) ([]outbox.Entry, error) {
	process.At(beforeDelete)
	defer process.At(afterDelete)
	return d.Store.Delete(ctx, es)
}
