package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// newLedger creates business data: a balance to which every run of the handler adds 10, so that a repetition is visible.
func newLedger(t testing.TB, b *Bed) {
	t.Helper()
	exec(t, b.DB, "CREATE TABLE ledger (account VARCHAR(64) PRIMARY KEY, balance BIGINT NOT NULL)")
	exec(t, b.DB, "INSERT INTO ledger (account, balance) VALUES ('alice', 0)")
}

func addTen(ctx context.Context, q sqldb.Queryer) error {
	_, err := q.ExecContext(ctx, "UPDATE ledger SET balance = balance + 10 WHERE account = 'alice'")
	return err
}

func book(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error { return addTen(ctx, tx) }

func balance(t testing.TB, db *sql.DB) (n int64) {
	t.Helper()
	must.Do(t, db.QueryRowContext(t.Context(), "SELECT balance FROM ledger WHERE account = 'alice'").Scan(&n))
	return n
}

func expectBalance(t testing.TB, db *sql.DB, want int64) {
	t.Helper()
	if got := balance(t, db); got != want {
		t.Errorf("balance: got %d, want %d", got, want)
	}
}

// order is a delivery of an order's event.
func order(id string, receive int) *sqsonce.Message {
	return &sqsonce.Message{
		ID: "m-" + id, Body: `{"order":"` + id + `"}`, ReceiveCount: receive, QueueARN: "arn:aws:sqs:us-east-1:1:orders",
		Attributes: map[string]sqsonce.Attribute{
			sqsonce.AttrEventSource: {Type: "String", String: "orders"},
			sqsonce.AttrEventID:     {Type: "String", String: id},
		},
	}
}

const (
	orderID  = "42"
	orderKey = "billing#orders|42"
)

// otherProcess returns a store with a pool of its own, like another consumer process's.
func otherProcess(t testing.TB, b *Bed) *Store {
	t.Helper()
	return storeOn(t, b.Open(t), b.Dialect)
}

func newInbox(t testing.TB, s *Store, optFns ...func(*dedup.Options)) *Inbox {
	t.Helper()
	return must.Get(NewInbox(s, "billing", optFns...))(t)
}

// way is one of the three ways to run a handler once on a database. Each consumer acts as a process: it has its own pool
// and shares no memory with the others.
type way struct {
	name string
	// consumer returns the handler that a host calls. The effect uses q.
	consumer func(t *testing.T, b *Bed, effect func(ctx context.Context, q sqldb.Queryer) error) sqsonce.Handler
	// finish returns when no handler runs any more.
	finish func(t *testing.T, b *Bed)
}

var ways = []way{
	{"Inbox", func(t *testing.T, b *Bed, effect func(context.Context, sqldb.Queryer) error) sqsonce.Handler {
		return newInbox(t, otherProcess(t, b)).Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
			return effect(ctx, tx)
		})
	}, func(*testing.T, *Bed) {}},

	{"Once", func(t *testing.T, b *Bed, effect func(context.Context, sqldb.Queryer) error) sqsonce.Handler {
		s := otherProcess(t, b)
		once := must.Get(dedup.New(s, "billing", func(o *dedup.Options) { o.LeaseDuration = 2 * time.Second }))(t)
		return once.Handler(func(ctx context.Context, _ *sqsonce.Message) error {
			// A transaction of the handler's own, so that a failure writes nothing.
			tx, err := s.db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if err := effect(ctx, tx); err != nil {
				return err
			}
			return tx.Commit()
		})
	}, func(*testing.T, *Bed) {}},

	{"Deferred", func(t *testing.T, b *Bed, effect func(context.Context, sqldb.Queryer) error) sqsonce.Handler {
		d := newDeferred(t, otherProcess(t, b))
		process(t, d, func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error { return effect(ctx, tx) })
		return d.Receive
	}, func(t *testing.T, b *Bed) { awaitCounts(t, newDeferred(t, newStore(t, b)), 0, 0) }},
}

// eachWay runs f for each way on each dialect.
func eachWay(t *testing.T, f func(t *testing.T, b *Bed, w way)) {
	t.Helper()
	t.Parallel()
	for _, name := range sqlbed.Names {
		for _, w := range ways {
			t.Run(name+"/"+w.name, func(t *testing.T) {
				t.Parallel()
				b := NewBed(t, name)
				newLedger(t, b)
				f(t, b, w)
			})
		}
	}
}

func newDeferred(t testing.TB, s *Store, optFns ...func(*dedup.Options)) *Deferred {
	t.Helper()
	return must.Get(NewDeferred(s, "billing", optFns...))(t)
}

// quick makes a processor poll and retry with short waits.
func quick(o *ProcessorOptions) {
	o.Poll = 10 * time.Millisecond
	o.Backoff = func(int) time.Duration { return time.Millisecond }
	o.LeaseDuration = time.Second
}

func newProcessor(t testing.TB, d *Deferred, optFns ...func(*ProcessorOptions)) *Processor {
	t.Helper()
	return must.Get(NewProcessor(d, append([]func(*ProcessorOptions){quick}, optFns...)...))(t)
}

// process runs a processor until the end of the test, or until the function that it returns is called.
func process(t testing.TB, d *Deferred, h func(context.Context, *sqsonce.Message, *sql.Tx) error, optFns ...func(*ProcessorOptions)) (*Processor, func()) {
	t.Helper()
	p := newProcessor(t, d, optFns...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, h) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: got error %v, want nil after a stop", err)
		}
	})
	t.Cleanup(stop)
	return p, stop
}

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not within five minutes: %s", what)
}

func awaitCounts(t testing.TB, d *Deferred, pending, parked int64) {
	t.Helper()
	var c Counts
	defer func() {
		if t.Failed() {
			t.Logf("counts: %+v", c)
		}
	}()
	eventually(t, "the inbox has the expected counts", func() bool {
		var err error
		c, err = d.Count(context.Background())
		return err == nil && c.Pending == pending && c.Parked == parked
	})
}

// redeliver delivers a message to a consumer as a queue does, until the consumer acknowledges it.
func redeliver(t testing.TB, h sqsonce.Handler, id string) {
	t.Helper()
	receive := 0
	eventually(t, "the message is acknowledged", func() bool {
		receive++
		err := h(t.Context(), order(id, receive))
		if err != nil && receive%100 == 0 {
			t.Logf("delivery %d: %v", receive, err)
		}
		return err == nil
	})
}

var errBoom = errors.New("boom")

// await waits for a channel, or ends the test with what did not happen.
func await[T any](t testing.TB, otherwise string, c <-chan T) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(5 * time.Minute):
		t.Fatal(otherwise)
	}
}
