package dynamostore

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/storetest"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		New: func(t *testing.T) dedup.Store { return newBed(t).store() },
		Away: func(t *testing.T) dedup.Store {
			b := newBed(t)
			s := b.store()
			b.faults(fault.Rule{Prob: 1, Do: fault.Reset})
			return s
		},
		Misconfigured: func(t *testing.T) dedup.Store {
			b := newBed(t)
			s := must.Get(New(b.client(b.srv), "missing"))(t)
			return s
		},
		Attributes: attributes,
		NoRecord:   noRecords,
		Inbox:      guardByInbox,
		Unlisted: func(t *testing.T) dedup.Store {
			b := newBed(t)
			s := b.store()
			b.faults(fault.Rule{Prob: 1, Do: fault.Error, Code: "SomethingNewException"})
			return s
		},
		ReadOnly: func(t *testing.T) dedup.Store {
			b := newBed(t)
			s := b.store()
			b.faults(fault.Rule{Op: "UpdateItem", Prob: 1, Do: fault.Error, Code: "ReadOnlyException"})
			return s
		},
	})
}

// attributes reads the items of a table, through the store's client.
var attributes = &storetest.Attributes{
	Of: func(ctx context.Context, s dedup.Store, key string) (map[string]string, error) {
		out, err := storeOf(s).client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: aws.String(testTable), Key: values{attrID: text(key)}, ConsistentRead: aws.Bool(true),
		})
		if err != nil || out.Item == nil {
			return nil, err
		}
		plain := map[string]string{}
		for name, v := range out.Item {
			plain[name] = fmt.Sprint(v)
			if t, ok := v.(*ddbtypes.AttributeValueMemberS); ok {
				plain[name] = t.Value
			}
		}
		return plain, nil
	},
	Commit: []string{"tx"},
	Foreign: left(values{
		attrStatus: text(inProgress), "validation": text("hash"), "data": text("{}"), TTLAttribute: number(1), attrUntil: number(1000),
	}),
}

// left puts another program's item under a key.
func left(item values) func(context.Context, dedup.Store, string) error {
	return func(ctx context.Context, s dedup.Store, key string) error {
		item := maps.Clone(item)
		item[attrID] = text(key)
		_, err := storeOf(s).client.(*dynamodb.Client).PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(testTable), Item: item})
		return err
	}
}

// noRecords are items that neither a store nor Powertools writes.
var noRecords = map[string]func(context.Context, dedup.Store, string) error{
	"another status":      left(values{attrStatus: text("EXPIRED"), TTLAttribute: number(1)}),
	"a text for a number": left(values{attrStatus: text(completed), TTLAttribute: text("soon")}),
}

func guardByInbox(s dedup.Store, consumer string, h sqsonce.Handler, optFns ...func(*dedup.Options)) (sqsonce.Handler, error) {
	inbox, err := NewInbox(storeOf(s), consumer, optFns...)
	if err != nil {
		return nil, err
	}
	return inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *Tx) error {
		write := &ddbtypes.Put{TableName: aws.String(testTable), Item: values{attrID: text("effect of " + m.Body)}}
		if m.Body == "refused" {
			write.TableName = aws.String("nosuch")
		}
		tx.Put(write)
		return h(ctx, m)
	}), nil
}

func storeOf(s dedup.Store) *Store {
	if c, ok := s.(withCompanion); ok {
		return c.Store
	}
	return s.(*Store)
}

// withCompanion sends every acquire and every complete in a batch with one of another event.
type withCompanion struct {
	*Store
	n *atomic.Int64
}

func (c withCompanion) Acquire(ctx context.Context, cl dedup.Claim) (dedup.Grant, error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		n := c.n.Add(1)
		companion := claim(fmt.Sprint("companion ", n))
		companion.Key, companion.Lease = fmt.Sprint("companion#", n), time.Second
		_, _ = c.Store.Acquire(context.WithoutCancel(ctx), companion) // its result is not part of the case
	}()
	g, err := c.Store.Acquire(ctx, cl)
	<-done
	return g, err
}

func (c withCompanion) Complete(ctx context.Context, l dedup.Lease, r dedup.Result) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		lost := dedup.Lease{Key: "companion#0", Owner: fmt.Sprint("companion ", c.n.Add(1))}
		_ = c.Store.Complete(context.WithoutCancel(ctx), lost, dedup.Result{}) // refused: it has no record
	}()
	err := c.Store.Complete(ctx, l, r)
	<-done
	return err
}

// The contract also holds where the record is written in a batch.
func TestConformanceInBatches(t *testing.T) {
	t.Parallel()
	var batches atomic.Int64
	t.Run("cases", func(t *testing.T) {
		storetest.Run(t, storetest.Harness{
			New: func(t *testing.T) dedup.Store {
				s := newBed(t).storeWithPeer(func(o *Options) { o.Linger = 20 * time.Millisecond })
				t.Cleanup(func() { batches.Add(s.Stats().Batches) })
				return withCompanion{s, new(atomic.Int64)}
			},
			Attributes: attributes,
			NoRecord:   noRecords,
			Inbox:      guardByInbox,
		})
	})
	if got := batches.Load(); got < 50 {
		t.Errorf("the cases sent %d batches, want at least 50", got)
	}
}

func TestMain(m *testing.M) { testserver.Main(m) }

// The conformance suite on dynoxide, by sockets and in real time.
func TestConformanceOnDynoxide(t *testing.T) {
	t.Parallel()
	b := &bed{T: t}
	client := b.clientOf(http.DefaultTransport, testserver.Dynoxide.Shared(t).URL)
	storetest.Run(t, storetest.Harness{
		New: func(t *testing.T) dedup.Store {
			table := "dedup-" + rand.Text()
			must.Do(t, CreateTable(t.Context(), client, table))
			s := must.Get(New(client, table))(t)
			return s
		},
		RealTime: true,
		Lease:    4 * time.Second, // longer than an attempt of a request
		Grace:    4 * time.Second, // the takeover margin, a Date's second, and the delay of a busy machine
	})
}
