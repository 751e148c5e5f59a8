package lambda

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// deaf is a network that does not answer the calls whose target ends in op. They ignore the end of their context for an hour.
type deaf struct {
	http.RoundTripper
	op string
}

func (d deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), d.op) {
		time.Sleep(time.Hour)
	}
	return d.RoundTripper.RoundTrip(r)
}

func byID(o *dedup.Options) {
	o.Key = func(m *sqsonce.Message) (string, error) { return m.ID, nil }
}

// TestCommitsWithoutAnAnswer: a handler that has succeeded is not a hanging one while its inbox commits, or while its record is completed
// after a run without a record. Neither its message nor those behind it go to the dead-letter queue.
func TestCommitsWithoutAnAnswer(t *testing.T) {
	for name, wrap := range map[string]func(*testing.T) sqsonce.Handler{
		"an inbox's transaction": func(t *testing.T) sqsonce.Handler {
			db := memdynamodb.New()
			t.Cleanup(db.Close)
			must.Do(t, dynamostore.CreateTable(t.Context(), testaws.DynamoDB(db), "dedup"))
			s := must.Get(dynamostore.New(testaws.DynamoDB(deaf{db, "TransactWriteItems"}), "dedup"))(t)
			return must.Get(dynamostore.NewInbox(s, "billing", byID))(t).Handler(func(_ context.Context, m *sqsonce.Message, tx *dynamostore.Tx) error {
				tx.Put(&ddbtypes.Put{TableName: aws.String("dedup"), Item: map[string]ddbtypes.AttributeValue{
					"id": &ddbtypes.AttributeValueMemberS{Value: "effect of " + m.Body},
				}})
				return nil
			})
		},
		"no record": func(t *testing.T) sqsonce.Handler {
			return must.Get(dedup.New(brokenStore{memstore.New()}, "billing", byID, func(o *dedup.Options) {
				o.OnStoreDown = dedup.OnStoreDownRunAnyway
			}))(t).Handler(takes(0))
		},
	} {
		runWithQueue(t, name, true, nil, func(x *fixture) {
			x.redrive(1)
			x.send("a1", "a2")
			if got := x.failed(x.wrap(wrap(x.T)), 30*time.Second, x.receive()); got != "a1 a2" {
				x.Errorf("failed %q, want a1 a2", got)
			}
			if got := x.dead(); got != "" {
				x.Errorf("in the dead-letter queue: %q", got)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

// brokenStore fails each acquire, and does not answer a complete.
type brokenStore struct{ *memstore.Store }

func (brokenStore) Acquire(context.Context, dedup.Claim) (dedup.Grant, error) {
	return dedup.Grant{}, errTest
}

func (brokenStore) Complete(context.Context, dedup.Lease, dedup.Result) error {
	time.Sleep(time.Hour)
	return errTest
}

// TestHandlerHangsAfterDo: a call of Do that the handler makes is over when it has returned, whatever it says. Then the handler hangs, and its
// message leaves its group. While Do waits for its store, nothing is known of the message.
func TestHandlerHangsAfterDo(t *testing.T) {
	for name, c := range map[string]struct {
		outer, silent, done bool // a Once's Handler is around the handler; the store does not answer; an earlier call of Do has succeeded
		dead                bool
	}{
		"first call":                  {dead: true},
		"replay":                      {done: true, dead: true},
		"first call within a handler": {outer: true, dead: true},
		"replay within a handler":     {outer: true, done: true, dead: true},
		"no answer":                   {silent: true},
		"no answer within a handler":  {outer: true, silent: true},
	} {
		runWithQueue(t, name, true, nil, func(x *fixture) {
			once := must.Get(dedup.New(silentStore{memstore.New(), c.silent}, "charges"))(x)
			charge := func(ctx context.Context) error {
				_, err := dedup.Do(ctx, once, "charge", func(context.Context) (int, error) { return 1, nil })
				return err
			}
			if c.done {
				must.Do(x, charge(context.Background()))
			}
			h := func(ctx context.Context, m *sqsonce.Message) error {
				if m.Body == "a1" {
					_ = charge(ctx)
					time.Sleep(time.Hour)
				}
				return nil
			}
			if c.outer {
				h = must.Get(dedup.New(memstore.New(), "billing", byID))(x).Handler(h)
			}
			x.redrive(1)
			x.send("a1", "a2")
			want := "a1 a2"
			if c.dead {
				want = ""
			}
			if got := x.failed(x.wrap(h), 30*time.Second, x.receive()); got != want {
				x.Errorf("failed %q, want %q", got, want)
			}
			if got := x.dead(); strings.HasPrefix(got, "a1: ") != c.dead {
				x.Errorf("in the dead-letter queue: %q", got)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

// silentStore answers no acquire if it is silent.
type silentStore struct {
	*memstore.Store
	silent bool
}

func (s silentStore) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	if s.silent {
		time.Sleep(time.Hour)
	}
	return s.Store.Acquire(ctx, c)
}
