//go:build unix

package killtest_test

import (
	"context"
	"database/sql"
	"errors"
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
	// envDefect gives the children a defect: the test must be able to fail.
	envDefect = "OUTBOXKILL_DEFECT"
)

// source is the namespace of the events.
const source = "shop"

// The defects: a relay that deletes before SQS has confirmed, and a producer that cancels in a transaction of its own.
const (
	earlyDelete = "delete before confirm"
	cancelApart = "cancel apart"
)

const (
	relayRole    = "relay"
	producerRole = "producer"
)

// The points at which a child kills itself.
const (
	beforeRead, beforeSend, afterSend, beforeDelete, afterDelete = "before read", "before send", "after send", "before delete", "after delete"
	beforeMove, inMove, afterMove                                = "before move", "in a move", "after a move"
	beforeBegin, beforeCommit, afterCommit                       = "before begin", "before commit", "after commit"
)

var points = map[string][]string{
	relayRole:    {beforeRead, beforeSend, afterSend, beforeDelete, afterDelete, beforeMove, inMove, afterMove},
	producerRole: {beforeBegin, beforeCommit, afterCommit},
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

// commit takes the next version of a group and writes its event. The version's row excludes other transactions of the group. It also
// cancels a timer, and schedules one.
func (c child) commit(ctx context.Context, group string) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	n, err := c.exec(ctx, tx, "UPDATE versions SET version = version + 1 WHERE id = ?", group)
	if err == nil && n == 0 { // of two producers one gets an error
		_, err = c.exec(ctx, tx, "INSERT INTO versions (id, version) VALUES (?, 1)", group)
	}
	if err != nil {
		return err
	}
	var version int
	err = tx.QueryRowContext(ctx, c.dialect.SQL("SELECT version FROM versions WHERE id = ?"), group).Scan(&version)
	if err != nil {
		return err
	}
	if err := c.cancel(ctx, tx, group, version); err != nil { // before Add
		return err
	}
	if rand.IntN(2) == 0 {
		if err := c.schedule(ctx, tx, group, version); err != nil {
			return err
		}
	}
	if err := c.box.Add(ctx, tx, event(group, version)); err != nil {
		return err
	}
	process.At(beforeCommit)
	return tx.Commit()
}

func (c child) exec(ctx context.Context, tx *sql.Tx, text string, args ...any) (int64, error) {
	result, err := tx.ExecContext(ctx, c.dialect.SQL(text), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// schedule schedules the timer of a version, some of them for a time that has passed.
func (c child) schedule(ctx context.Context, tx *sql.Tx, group string, version int) error {
	e := timer(group, version)
	if err := c.box.AddAt(ctx, tx, time.Now().Add(time.Duration(rand.IntN(1000)-100)*time.Millisecond), e); err != nil {
		return err
	}
	_, err := c.exec(ctx, tx, "INSERT INTO timers (id, cancelled, missed) VALUES (?, 0, 0)", e.ID)
	return err
}

var errNever = errors.New("a timer was cancelled that was not scheduled, or twice")

// cancel cancels the timer of an earlier version, and notes the outcome: it is cancelled, or it was moved before this version.
func (c child) cancel(ctx context.Context, tx *sql.Tx, group string, version int) (err error) {
	id := timer(group, version-1-rand.IntN(3)).ID
	in := tx
	if os.Getenv(envDefect) == cancelApart {
		if in, err = c.db.BeginTx(ctx, nil); err != nil {
			return err
		}
		defer func() { _ = in.Rollback() }()
	}
	cancelled, err := c.box.Cancel(ctx, in, id)
	if err != nil {
		return err
	}
	if in != tx {
		if err := in.Commit(); err != nil {
			return err
		}
	}
	if len(cancelled) == 0 {
		_, err = c.exec(ctx, tx, "UPDATE timers SET missed = ? WHERE id = ? AND cancelled = 0 AND missed = 0", version, id)
		return err
	}
	n, err := c.exec(ctx, tx, "UPDATE timers SET cancelled = 1 WHERE id = ? AND cancelled = 0 AND missed = 0", id)
	if err == nil && n != 1 {
		return errNever
	}
	return err
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
		process.At(beforeBegin)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		of := groups
		if rand.IntN(2) == 0 {
			of = busy
		}
		err := c.commit(ctx, fmt.Sprint("g", rand.IntN(of)))
		cancel()
		if errors.Is(err, errNever) {
			return err
		}
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

// timer returns the event that a version schedules.
func timer(group string, version int) fifo.Event {
	id := fmt.Sprintf("%s/t%d", group, version)
	return fifo.Event{ID: id, Group: group, Body: id}
}

// killing is the network to SQS.
type killing struct{ http.RoundTripper }

func (k killing) RoundTrip(r *http.Request) (*http.Response, error) {
	process.At(beforeSend)
	defer process.At(afterSend)
	return k.RoundTripper.RoundTrip(r)
}

type doomed struct{ *sqloutbox.Outbox }

func (d doomed) Read(ctx context.Context, g outbox.Group, known outbox.Known, limit int) ([]outbox.Entry, error) {
	process.At(beforeRead)
	es, err := d.Outbox.Read(ctx, g, known, limit)
	if os.Getenv(envDefect) == earlyDelete && len(es) > 0 {
		_, _ = d.Outbox.Delete(ctx, es)
	}
	return es, err
}

func (d doomed) Delete(ctx context.Context, es []outbox.Entry) ([]outbox.Entry, error) {
	process.At(beforeDelete)
	defer process.At(afterDelete)
	return d.Outbox.Delete(ctx, es)
}

// Move dies at any time, also between two statements.
func (d doomed) Move(ctx context.Context) (moved int, overdue time.Duration, err error) {
	process.At(beforeMove)
	time.AfterFunc(time.Duration(rand.IntN(5000))*time.Microsecond, func() { process.At(inMove) })
	moved, overdue, err = d.Outbox.Move(ctx)
	if moved > 0 {
		process.At(afterMove)
	}
	return moved, overdue, err
}
