package sqloutbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// queue is a FIFO queue in memory.
type queue struct {
	client *sqs.Client
	url    string
}

func newQueue(t testing.TB) *queue {
	t.Helper()
	srv := memsqs.New()
	t.Cleanup(srv.Close)
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"), HTTPClient: &http.Client{Transport: srv},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})
	out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("orders.fifo"), Attributes: map[string]string{"FifoQueue": "true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &queue{client, aws.ToString(out.QueueUrl)}
}

// relay returns a relay of its own publisher.
func (q *queue) relay(t testing.TB, s outbox.Store) *outbox.Relay {
	t.Helper()
	p, err := fifo.NewPublisher(q.client, q.url, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("closing the publisher: %v", err)
		}
	})
	r, err := outbox.NewRelay(s, p, func(o *outbox.Options) {
		o.Poll, o.Settle, o.Logger = 50*time.Millisecond, -1, slog.New(slog.DiscardHandler)
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// receive takes all messages from the queue.
func (q *queue) receive(t testing.TB) (all []sqstypes.Message) {
	t.Helper()
	for {
		out, err := q.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &q.url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return all
		}
		for _, m := range out.Messages {
			if _, err := q.client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &q.url, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, out.Messages...)
	}
}

// A lone event by a doorbell costs a relay at most four statements, and one by a sweep five with the sweep's own.
func TestRelayStatements(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		spy, db := spied(t, b)
		o := b.through(t, db, "box")
		q := newQueue(t)
		r := q.relay(t, o)
		if err := o.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.commit(t, b.outbox(t), event("g", "1"))
		spy.take()
		if err := r.Drain(t.Context(), "g"); err != nil {
			t.Fatal(err)
		}
		if all := spy.take(); len(all) > 4 {
			t.Errorf("Drain: %d statements, want at most 4:\n%s", len(all), strings.Join(all, "\n"))
		}
		b.commit(t, b.outbox(t), event("g", "2"))
		if _, err := r.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		sweep := spy.take()
		if _, err := r.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if idle := spy.take(); len(sweep) > 5+len(idle) || len(idle) > 2 {
			t.Errorf("Sweep: %d statements, and %d without an event, want at most %d and 2:\n%s", len(sweep), len(idle), 5+len(idle), strings.Join(sweep, "\n"))
		}
		if n := len(q.receive(t)); n != 2 {
			t.Errorf("%d messages, want 2", n)
		}
	})
}

// Writers of several groups, some rolled back, beside two relays with pools of their own that die and come back: all that was
// committed is in the queue, once, in the order of the commits, and nothing else.
func TestRelays(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		const groups, writers, each = 4, 4, 40
		b.exec(t, "CREATE TABLE aggregates (id VARCHAR(20) NOT NULL PRIMARY KEY, version BIGINT NOT NULL)")
		for g := range groups {
			b.exec(t, "INSERT INTO aggregates (id, version) VALUES (?, 0)", fmt.Sprint("g", g))
		}
		q := newQueue(t)
		writing, stop := context.WithCancel(t.Context())
		defer stop()
		var relays, writes sync.WaitGroup
		for range 2 {
			_, db := spied(t, b) // another pool
			r := q.relay(t, b.through(t, db, "box"))
			relays.Go(func() {
				for writing.Err() == nil {
					life, die := context.WithTimeout(writing, time.Duration(50+rand.N(300))*time.Millisecond)
					if err := r.Run(life); err != nil {
						t.Errorf("Run: %v", err)
					}
					die()
				}
			})
		}
		o := b.outbox(t)
		for range writers {
			writes.Go(func() {
				for range each {
					for err := errors.New("begin"); err != nil; {
						if err = write(t.Context(), b, o, fmt.Sprint("g", rand.N(groups))); err != nil && !errors.Is(err, sqsonce.ErrUnavailable) {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		writes.Wait()
		stop()
		relays.Wait()
		last := q.relay(t, b.outbox(t))
		b.exec(t, "UPDATE {outbox} SET lease_until = 0") // of relays that died
		if _, err := last.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		published := map[string]int64{}
		for _, m := range q.receive(t) {
			group := m.Attributes["MessageGroupId"]
			published[group]++
			if want := fmt.Sprintf("%s version %d", group, published[group]); aws.ToString(m.Body) != want {
				t.Fatalf("got message %q, want %q", aws.ToString(m.Body), want)
			}
		}
		for g := range groups {
			group, version := fmt.Sprint("g", g), int64(0)
			if err := b.db.QueryRowContext(t.Context(), b.Dialect.SQL("SELECT version FROM aggregates WHERE id = ?"), group).Scan(&version); err != nil {
				t.Fatal(err)
			}
			if published[group] != version {
				t.Errorf("group %s: %d events are published, %d were committed", group, published[group], version)
			}
		}
	})
}

// write is a business transaction: the next version of an aggregate, and its event. One in eight is rolled back.
func write(ctx context.Context, b *bed, o *Outbox, group string) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if _, err := tx.ExecContext(ctx, b.Dialect.SQL("UPDATE aggregates SET version = version + 1 WHERE id = ?"), group); err != nil {
		return err
	}
	var version int64
	if err := tx.QueryRowContext(ctx, b.Dialect.SQL("SELECT version FROM aggregates WHERE id = ?"), group).Scan(&version); err != nil {
		return err
	}
	if rand.N(8) == 0 {
		return tx.Rollback()
	}
	e := fifo.Event{ID: fmt.Sprintf("%s/v%d", group, version), Group: group, Body: fmt.Sprintf("%s version %d", group, version)}
	if err := o.Add(ctx, tx, e); err != nil {
		return err
	}
	return tx.Commit()
}
