package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// newLedger makes business data: a balance that every run of the handler adds 10 to, so that a repetition shows.
func newLedger(t testing.TB, b *Bed) {
	t.Helper()
	exec(t, b.DB, "CREATE TABLE ledger (account VARCHAR(64) PRIMARY KEY, balance BIGINT NOT NULL)")
	exec(t, b.DB, "INSERT INTO ledger (account, balance) VALUES ('alice', 0)")
}

func addTen(ctx context.Context, q queryer) error {
	_, err := q.ExecContext(ctx, "UPDATE ledger SET balance = balance + 10 WHERE account = 'alice'")
	return err
}

func book(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error { return addTen(ctx, tx) }

func balance(t testing.TB, db *sql.DB) (n int64) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT balance FROM ledger WHERE account = 'alice'").Scan(&n); err != nil {
		t.Fatal(err)
	}
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

// otherProcess returns a store with a pool of its own, as another consumer process has.
func otherProcess(t testing.TB, b *Bed) *Store {
	t.Helper()
	return storeOn(t, b.Open(t), b.Dialect)
}

func newInbox(t testing.TB, s *Store, optFns ...func(*dedup.Options)) *Inbox {
	t.Helper()
	i, err := NewInbox(s, "billing", optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// way is one of the three ways to run a handler once on a database. Each consumer is a process: it has its own pool and
// nothing in memory of the others.
type way struct {
	name string
	// consumer returns what a host calls. The effect goes through q.
	consumer func(t *testing.T, b *Bed, effect func(ctx context.Context, q queryer) error) sqsonce.Handler
	// settle returns when nothing is at work any more.
	settle func(t *testing.T, b *Bed)
}

var ways = []way{
	{"Inbox", func(t *testing.T, b *Bed, effect func(context.Context, queryer) error) sqsonce.Handler {
		return newInbox(t, otherProcess(t, b)).Handler(func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
			return effect(ctx, tx)
		})
	}, func(*testing.T, *Bed) {}},

	{"Once", func(t *testing.T, b *Bed, effect func(context.Context, queryer) error) sqsonce.Handler {
		s := otherProcess(t, b)
		once, err := dedup.New(s, "billing", func(o *dedup.Options) { o.Lease = 2 * time.Second })
		if err != nil {
			t.Fatal(err)
		}
		return once.Handler(func(ctx context.Context, _ *sqsonce.Message) error {
			// A transaction of the handler's own: a failure leaves nothing behind.
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

	{"Deferred", func(t *testing.T, b *Bed, effect func(context.Context, queryer) error) sqsonce.Handler {
		d := newDeferred(t, otherProcess(t, b))
		process(t, d, func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error { return effect(ctx, tx) })
		return d.Receive
	}, func(t *testing.T, b *Bed) { awaitCounts(t, newDeferred(t, newStore(t, b)), 0, 0) }},
}

// eachWay runs f for each way on each dialect.
func eachWay(t *testing.T, f func(t *testing.T, b *Bed, w way)) {
	t.Helper()
	for _, k := range beds {
		for _, w := range ways {
			t.Run(k.name+"/"+w.name, func(t *testing.T) {
				t.Parallel()
				b := NewBed(t, k.name)
				newLedger(t, b)
				f(t, b, w)
			})
		}
	}
}

func newDeferred(t testing.TB, s *Store, optFns ...func(*dedup.Options)) *Deferred {
	t.Helper()
	d, err := NewDeferred(s, "billing", optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// quick polls and retries without the waits of production.
func quick(o *ProcessorOptions) {
	o.Poll = 10 * time.Millisecond
	o.Backoff = func(int) time.Duration { return time.Millisecond }
	o.Lease = time.Second
}

func newProcessor(t testing.TB, d *Deferred, optFns ...func(*ProcessorOptions)) *Processor {
	t.Helper()
	p, err := NewProcessor(d, append([]func(*ProcessorOptions){quick}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	return p
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

// eventually waits for what another goroutine or process does.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("after 30 s still not: %s", what)
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

// redeliver calls a consumer as a queue does, until it acknowledges.
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

// counter counts an effect's runs, those that were rolled back included.
type counter struct{ n atomic.Int64 }

func (c *counter) effect(f func(run int64) error) func(context.Context, queryer) error {
	return func(ctx context.Context, q queryer) error {
		run := c.n.Add(1)
		if err := addTen(ctx, q); err != nil {
			return err
		}
		return f(run)
	}
}

var errBoom = errors.New("boom")

// The same message once, twice, ten times.
func TestSameMessageAgain(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *Bed, w way) {
		for i, times := range []int{1, 2, 10} {
			id := fmt.Sprint("order-", times)
			h := w.consumer(t, b, addTen)
			for n := range times {
				if err := h(t.Context(), order(id, n+1)); err != nil {
					t.Errorf("delivery %d of %d: got error %v, want nil", n+1, times, err)
				}
			}
			w.settle(t, b)
			expectBalance(t, b.DB, int64(i+1)*10)
		}
	})
}

// Also in a process that remembers nothing.
func TestSameMessageElsewhere(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *Bed, w way) {
		for n := range 3 {
			if err := w.consumer(t, b, addTen)(t.Context(), order(orderID, n+1)); err != nil {
				t.Errorf("delivery %d: got error %v, want nil", n+1, err)
			}
		}
		w.settle(t, b)
		expectBalance(t, b.DB, 10)
	})
}

// Five consumers at once with a slow handler: one effect, and everybody's message is acknowledged in the end.
func TestFiveConsumersAtOnce(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *Bed, w way) {
		var (
			c     counter
			wg    sync.WaitGroup
			start = make(chan struct{})
		)
		slow := c.effect(func(int64) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		for range 5 {
			h := w.consumer(t, b, slow)
			wg.Go(func() {
				<-start
				redeliver(t, h, orderID)
			})
		}
		close(start)
		wg.Wait()
		w.settle(t, b)
		expectBalance(t, b.DB, 10)
		// A victim of a deadlock runs again, and was rolled back; there is none where there is nothing to lock but the record.
		if n := c.n.Load(); n != 1 {
			t.Errorf("the handler ran %d times, want 1", n)
		}
	})
}

// The effect has happened and the acknowledgement is lost: the process died, or its request did.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *Bed, w way) {
		h := w.consumer(t, b, addTen)
		if err := h(t.Context(), order(orderID, 1)); err != nil {
			t.Fatal(err)
		}
		w.settle(t, b)
		expectBalance(t, b.DB, 10)
		again := w.consumer(t, b, func(context.Context, queryer) error {
			t.Error("the handler ran again")
			return nil
		})
		if err := again(t.Context(), order(orderID, 2)); err != nil {
			t.Errorf("redelivery: got error %v, want nil", err)
		}
		w.settle(t, b)
		expectBalance(t, b.DB, 10)
	})
}

// A handler that fails is rolled back and its message redelivered.
func TestHandlerFails(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *Bed, w way) {
		var c counter
		h := w.consumer(t, b, c.effect(func(run int64) error {
			if run <= 2 {
				return errBoom
			}
			return nil
		}))
		redeliver(t, h, orderID)
		w.settle(t, b)
		expectBalance(t, b.DB, 10)
		if n := c.n.Load(); n != 3 {
			t.Errorf("the handler ran %d times, want 3", n)
		}
	})
}
