package hosttest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// cable is a process's own connection, which can be pulled.
type cable struct {
	http.RoundTripper
	pulled atomic.Bool
}

func (c *cable) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.pulled.Load() {
		return nil, errUnreachable
	}
	resp, err := c.RoundTripper.RoundTrip(r)
	if err == nil && c.pulled.Load() {
		return nil, errUnreachable // a long poll that was under way; what it brings is nobody's until it expires
	}
	return resp, err
}

// TestOutageBeyondTheVisibilityTimeout: a worker is cut off from SQS for longer than the visibility timeout while its
// handler runs, and the handler does not listen. The message expires, as it must, and another worker receives it. No
// handle prevents a second run then; the record does.
func TestOutageBeyondTheVisibilityTimeout(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		for guarded, want := range map[bool]int32{false: 2, true: 1} {
			t.Run(fmt.Sprintf("fifo=%t guarded=%t", fifo, guarded), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { cutOff(t, fifo, guarded, want) })
			})
		}
	}
}

func cutOff(t *testing.T, fifo, guarded bool, want int32) {
	const visibility = 10 * time.Second
	w := newWorld(t, setup{fifo: fifo, visibility: visibility, maxReceives: maxReceives})
	w.send(message{name: "a1"})
	var runs atomic.Int32
	cause := make(chan error, 1)
	handler := func(ctx context.Context, _ *sqsonce.Message) error {
		if runs.Add(1) == 1 {
			time.Sleep(25 * time.Second)
			cause <- context.Cause(ctx)
		}
		return nil
	}
	begin := func(p *process, line http.RoundTripper) (stop func() sqsworker.Stats) {
		h := sqsonce.Handler(handler)
		if guarded {
			store, err := dynamostore.New(p.ddb, table)
			if err != nil {
				t.Fatal(err)
			}
			guard, err := dedup.New(store, consumer)
			if err != nil {
				t.Fatal(err)
			}
			h = guard.Handler(h)
		}
		client := sqs.New(p.sqs.Options(), func(o *sqs.Options) { o.HTTPClient = &http.Client{Transport: line} })
		k, err := sqsworker.New(client, w.url, h, func(o *sqsworker.Options) { o.Visibility, o.Logger = visibility, w.log })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		stopped := make(chan error, 1)
		go func() { stopped <- k.Run(ctx) }()
		return func() sqsworker.Stats {
			cancel()
			if err := <-stopped; err != nil {
				t.Errorf("Run: %v", err)
			}
			p.kill()
			return k.Stats()
		}
	}
	first, second := w.newProcess(), w.newProcess()
	c := &cable{RoundTripper: &line{p: first, to: w.sqs}}
	stopFirst := begin(first, c)
	time.Sleep(2 * time.Second)
	c.pulled.Store(true)
	stopSecond := begin(second, &line{p: second, to: w.sqs})
	if err := <-cause; !errors.Is(err, sqsonce.ErrLeaseLost) {
		t.Errorf("the handler's context ended with %v, want ErrLeaseLost", err)
	}
	time.Sleep(time.Minute)
	c.pulled.Store(false)
	time.Sleep(10 * time.Minute)

	cut, other := stopFirst(), stopSecond()
	w.admin.kill()
	if n := runs.Load(); n != want {
		t.Errorf("%d runs, want %d", n, want)
	}
	if left := w.sqs.Messages(w.url); len(left) != 0 {
		t.Errorf("left in the queue: %+v", left)
	}
	if cut.LeasesLost != 1 || cut.Done != 1 || other.Received == 0 || other.Deletes == 0 {
		t.Errorf("the one cut off: %+v; the other: %+v; want the lease lost by the first and the message deleted by the second", cut, other)
	}
	if guarded && !w.record("a1").completed() {
		t.Error("the record is not completed")
	}
}
