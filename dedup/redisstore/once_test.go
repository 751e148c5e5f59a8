package redisstore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// consumer is a process of its own as far as the store can see: it remembers nothing of other deliveries.
func consumer(t *testing.T, s *redisstore.Store, h sqsonce.Handler) sqsonce.Handler {
	t.Helper()
	once, err := dedup.New(s, "billing", func(o *dedup.Options) { o.CacheSize, o.Wait, o.Lease = -1, -1, time.Second })
	if err != nil {
		t.Fatal(err)
	}
	return once.Handler(h)
}

func message(receive int) *sqsonce.Message {
	return &sqsonce.Message{
		ID: "m-1", QueueARN: "arn:aws:sqs:us-east-1:000000000000:orders", Body: "{}", ReceiveCount: receive,
		Attributes: map[string]sqsonce.Attribute{sqsonce.AttrEventID: {Type: "String", String: "ord-1/paid"}, sqsonce.AttrEventSource: {Type: "String", String: "orders"}},
	}
}

func TestSameMessage(t *testing.T) {
	t.Parallel()
	for _, deliveries := range []int{1, 2, 10} {
		s := newStore(t, connect(t, testserver.Redis.Shared(t)))
		effects := 0
		for i := range deliveries {
			err := consumer(t, s, func(context.Context, *sqsonce.Message) error { effects++; return nil })(t.Context(), message(i+1))
			if err != nil {
				t.Errorf("delivery %d of %d: %v, want it acknowledged", i+1, deliveries, err)
			}
		}
		if effects != 1 {
			t.Errorf("%d deliveries had %d effects, want 1", deliveries, effects)
		}
	}
}

// The handler takes longer than the lease, which is renewed; the message comes back to everybody until it is acknowledged.
func TestFiveConsumersAndASlowHandler(t *testing.T) {
	t.Parallel()
	s := newStore(t, connect(t, testserver.Redis.Shared(t)))
	var effects, refused atomic.Int64
	var wg sync.WaitGroup
	for range 5 {
		h := consumer(t, s, func(context.Context, *sqsonce.Message) error {
			time.Sleep(1500 * time.Millisecond)
			effects.Add(1)
			return nil
		})
		wg.Go(func() {
			for receive := 1; ; receive++ {
				err := h(t.Context(), message(receive))
				if err == nil {
					return
				}
				if !errors.Is(err, sqsonce.ErrInProgress) {
					t.Errorf("got %v, want in progress", err)
					return
				}
				refused.Add(1)
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	if effects.Load() != 1 || refused.Load() < 4 {
		t.Errorf("%d effects and %d refusals, want 1 and at least one of each of the other four", effects.Load(), refused.Load())
	}
}

func TestHandlerError(t *testing.T) {
	t.Parallel()
	s := newStore(t, connect(t, testserver.Redis.Shared(t)))
	declined := errors.New("card declined")
	err := consumer(t, s, func(context.Context, *sqsonce.Message) error { return declined })(t.Context(), message(1))
	if !errors.Is(err, declined) {
		t.Fatalf("got %v, want the handler's error", err)
	}
	effects := 0
	for receive := 2; receive < 4; receive++ { // at once: a release needs no wait
		if err := consumer(t, s, func(context.Context, *sqsonce.Message) error { effects++; return nil })(t.Context(), message(receive)); err != nil {
			t.Fatal(err)
		}
	}
	if effects != 1 {
		t.Errorf("%d effects after a failure and two deliveries, want 1", effects)
	}
	if r, err := s.Inspect(t.Context(), "billing#"+eventKey(t)); err != nil || !r.Completed || r.LastError != "card declined" {
		t.Errorf("record %+v, %v, want it completed with the last error", r, err)
	}
}

func eventKey(t *testing.T) string {
	t.Helper()
	key, err := sqsonce.EventKey("orders", "ord-1/paid")
	if err != nil {
		t.Fatal(err)
	}
	return key
}
