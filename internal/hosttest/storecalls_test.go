package hosttest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/lambda"
)

// brokenStore answers nothing but errors, and notes when it got the requests for each event.
type brokenStore struct {
	mode mode
	mu   sync.Mutex
	of   map[string][]time.Time
}

func (b *brokenStore) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	for n := range 10 {
		if event := fmt.Sprintf("event-%d", n); strings.Contains(string(body), event) {
			b.of[event] = append(b.of[event], time.Now())
		}
	}
	b.mu.Unlock()
	switch b.mode {
	case hangs:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case breaks:
		return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	return nil, errUnavailable
}

// While the store is down an event costs it about a request a second, of all layers together: the acquire, its release, their
// repeats. Three more find out that it is down.
func TestCallsOfABrokenStore(t *testing.T) {
	t.Parallel()
	for _, mode := range []mode{refuses, hangs, breaks} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(t, setup{maxReceives: maxReceives, visibility: 3 * time.Minute})
				p := w.newProcess()
				broken := &brokenStore{mode: mode, of: map[string][]time.Time{}}
				client := dynamodb.New(p.ddb.Options(), func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: broken} })
				store := must.Get(dynamostore.New(client, table, func(o *dynamostore.Options) { o.Logger = w.log }))(t)
				once := must.Get(dedup.New(store, consumer, func(o *dedup.Options) { o.Logger = w.log }))(t)
				f := must.Get(lambda.Wrap(once.Handler(func(context.Context, *sqsonce.Message) error { return nil }), func(o *lambda.Options) { o.Logger = w.log }))(t)
				var e events.SQSEvent
				for n := range 10 {
					id := fmt.Sprintf("event-%d", n)
					e.Records = append(e.Records, events.SQSMessage{
						MessageId: id, ReceiptHandle: id, EventSource: "aws:sqs", EventSourceARN: w.named(queueARN),
						Attributes: map[string]string{"ApproximateReceiveCount": "2"}, // each acquire is sent alone
					})
				}
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				begun := time.Now()
				if _, err := f(ctx, e); err == nil {
					t.Error("no error")
				}
				if took := time.Since(begun); mode != hangs && took > 2*time.Second {
					t.Errorf("the invocation took %s, want an early end", took)
				}
				time.Sleep(20 * time.Second)
				for event, at := range broken.of {
					took := at[len(at)-1].Sub(begun)
					if len(at) > int(took/time.Second)+4 {
						t.Errorf("%d requests for %s in %s", len(at), event, took)
					}
				}
				p.kill()
				w.admin.kill()
			})
		})
	}
}
