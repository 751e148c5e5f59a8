package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// ownFailures are handlers whose transaction fails because of what they did in it, by their names. The number is how often
// a delivery may call one: a connection that ends is no proof the first time.
func ownFailures(t *testing.T, b *Bed) (names []string, most map[string]int, handlers map[string]func(context.Context, *sql.Tx) error) {
	t.Helper()
	most, handlers = map[string]int{}, map[string]func(context.Context, *sql.Tx) error{}
	add := func(name string, calls int, h func(context.Context, *sql.Tx) error) {
		names, most[name], handlers[name] = append(names, name), calls, h
	}
	run := func(text string) func(context.Context, *sql.Tx) error {
		return func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, text)
			return err
		}
	}
	inTurn := func(all ...func(context.Context, *sql.Tx) error) func(context.Context, *sql.Tx) error {
		return func(ctx context.Context, tx *sql.Tx) (err error) {
			for n := 0; err == nil && n < len(all); n++ {
				err = all[n](ctx, tx)
			}
			return err
		}
	}
	idle := func(d time.Duration) func(context.Context, *sql.Tx) error {
		return func(context.Context, *sql.Tx) error { time.Sleep(d); return nil }
	}
	addHere := func(ctx context.Context, tx *sql.Tx) error { return addTen(ctx, tx) }
	kill := run(b.kind.EndSession)
	own := map[string]func(){"PostgreSQL": func() {
		role := "clerk_" + b.Name
		exec(t, b.DB, "CREATE ROLE "+role)
		t.Cleanup(func() { _, _ = b.DB.Exec("DROP ROLE " + role) })
		add("a role without rights", 1, run("SET LOCAL ROLE "+role))
		add("no such role", 1, run("SET LOCAL ROLE no_such_role"))
		add("read only", 1, run("SET TRANSACTION READ ONLY"))
		add("statement_timeout", 2, inTurn(run("SET LOCAL statement_timeout = 20"), run("SELECT pg_sleep(5)")))
		add("idle_in_transaction_session_timeout", 2, inTurn(run("SET LOCAL idle_in_transaction_session_timeout = 20"), idle(200*time.Millisecond), addHere))
	}, "MariaDB": func() {
		add("max_statement_time", 2, run("SET STATEMENT max_statement_time = 0.02 FOR SELECT SLEEP(5)"))
		add("wait_timeout", 2, inTurn(run("SET SESSION wait_timeout = 1"), idle(1200*time.Millisecond), addHere))
	}}[b.kind.Label]
	if own != nil {
		own()
	}
	add("no such table", 1, run("INSERT INTO no_such_table VALUES (1)"))
	add("cut, and returned", 2, kill)
	add("cut, and found by the next statement", 2, func(ctx context.Context, tx *sql.Tx) error {
		_ = kill(ctx, tx)
		return addTen(ctx, tx)
	})
	add("cut, and ignored", 2, func(ctx context.Context, tx *sql.Tx) error {
		_ = kill(ctx, tx)
		return nil
	})
	return names, most, handlers
}

// What a handler does in its transaction fails its own event, attempt by attempt, and the healthy events behind it are done.
// It is no outage of the database, also where the database's answer, or its silence, comes at the commit.
func TestOwnFailures(t *testing.T) {
	t.Parallel()
	const healthy, attempts = 100, 5
	for _, name := range servers {
		for _, host := range []struct {
			name string
			run  func(t *testing.T, b *Bed, bodies []string, attempts int, h func(context.Context, *sqsonce.Message, *sql.Tx) error) func() []string
		}{{"Inbox", inQueue}, {"Processor", inTable}} {
			t.Run(name+"/"+host.name, func(t *testing.T) {
				t.Parallel()
				b := NewBed(t, name)
				newLedger(t, b)
				bodies, most, handlers := ownFailures(t, b)
				bad := len(bodies)
				for n := range healthy {
					bodies = append(bodies, fmt.Sprint("healthy ", n))
				}
				var mu sync.Mutex
				runs := map[string]int{}
				given := host.run(t, b, bodies, attempts, func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
					mu.Lock()
					runs[m.Body]++
					mu.Unlock()
					if h := handlers[m.Body]; h != nil {
						return h(ctx, tx)
					}
					return addTen(ctx, tx)
				})
				eventually(t, "the failing events are given up, and the others done", func() bool {
					return len(given()) >= bad && balance(t, b.DB) >= 10*healthy
				})
				expectBalance(t, b.DB, 10*healthy)
				if got := given(); len(got) != bad || strings.Contains(strings.Join(got, "\n"), "healthy") {
					t.Errorf("given up: got %q, want the %d failing events", got, bad)
				}
				mu.Lock()
				defer mu.Unlock()
				for name, calls := range most {
					if n := runs[name]; n < attempts || n > calls*attempts {
						t.Errorf("%s: the handler ran %d times, want %d to %d", name, n, attempts, calls*attempts)
					}
				}
			})
		}
	}
}

// inQueue runs the handler in an inbox of a worker, and returns what is in the dead-letter queue.
func inQueue(t *testing.T, b *Bed, bodies []string, attempts int, h func(context.Context, *sqsonce.Message, *sql.Tx) error) func() []string {
	t.Helper()
	srv := memsqs.New()
	t.Cleanup(srv.Close)
	client := testaws.SQS(srv)
	testaws.Queue(t, client, "orders-dlq", nil)
	url := testaws.Queue(t, client, "orders", map[string]string{"RedrivePolicy": fmt.Sprintf(
		`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:orders-dlq","maxReceiveCount":"%d"}`, attempts)})
	for _, body := range bodies {
		must.Get(client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}))(t)
	}
	w := must.Get(sqsworker.New(client, url, newInbox(t, newStore(t, b)).Handler(h), func(o *sqsworker.Options) {
		o.Backoff = func(int) time.Duration { return 10 * time.Millisecond }
		o.WaitTime = time.Second
	}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: got error %v, want nil after a stop", err)
		}
	})
	return func() (bodies []string) {
		for _, m := range srv.Messages("orders-dlq") {
			bodies = append(bodies, m.Body)
		}
		return bodies
	}
}

// inTable runs the handler in a deferred inbox, and returns what is parked.
func inTable(t *testing.T, b *Bed, bodies []string, attempts int, h func(context.Context, *sqsonce.Message, *sql.Tx) error) func() []string {
	t.Helper()
	d := newDeferred(t, newStore(t, b))
	for _, body := range bodies {
		m := order(body, 1)
		m.Body = body
		receive(t, d, m)
	}
	process(t, d, h, func(o *ProcessorOptions) { o.MaxAttempts, o.LeaseDuration = attempts, 30*time.Second })
	return func() (bodies []string) {
		all, err := d.Parked(t.Context(), 2*len(bodies)+200)
		if err != nil {
			t.Error(err)
		}
		for _, e := range all {
			bodies = append(bodies, string(e.Message.Body))
		}
		return bodies
	}
}
