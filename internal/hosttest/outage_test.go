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

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// cutConnection is a connection that can be cut.
type cutConnection struct {
	http.RoundTripper
	cut atomic.Bool
}

func (c *cutConnection) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errUnavailable
	}
	resp, err := c.RoundTripper.RoundTrip(r)
	if err == nil && c.cut.Load() {
		return nil, errUnavailable // the response of a long poll is lost; its messages are hidden until their visibility timeout ends
	}
	return resp, err
}

// TestOutageLongerThanTheVisibilityTimeout: the connection of a worker to SQS is cut for longer than the visibility timeout,
// while a handler runs that ignores its context. The message becomes visible, and another worker receives it. No receipt
// handle prevents a second run then; the record does.
func TestOutageLongerThanTheVisibilityTimeout(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		for withDedup, want := range map[bool]int32{false: 2, true: 1} {
			t.Run(fmt.Sprintf("fifo=%t dedup=%t", fifo, withDedup), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { cutOff(t, fifo, withDedup, want) })
			})
		}
	}
}

func cutOff(t *testing.T, fifo, withDedup bool, want int32) {
	const visibility = 10 * time.Second
	w := newFixture(t, setup{fifo: fifo, visibility: visibility, maxReceives: maxReceives})
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
	begin := func(p *process, conn http.RoundTripper) (stop func() sqsworker.Stats) {
		h := sqsonce.Handler(handler)
		if withDedup {
			store := must.Get(dynamostore.New(p.ddb, table))(t)
			once := must.Get(dedup.New(store, consumer))(t)
			h = once.Handler(h)
		}
		client := sqs.New(p.sqs.Options(), func(o *sqs.Options) { o.HTTPClient = &http.Client{Transport: conn} })
		k := must.Get(sqsworker.New(client, w.url, h, func(o *sqsworker.Options) { o.VisibilityTimeout, o.Logger = visibility, w.log }))(t)
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
	c := &cutConnection{RoundTripper: &connection{p: first, to: w.sqs}}
	stopFirst := begin(first, c)
	time.Sleep(2 * time.Second)
	c.cut.Store(true)
	stopSecond := begin(second, &connection{p: second, to: w.sqs})
	if err := <-cause; !errors.Is(err, sqsonce.ErrLeaseLost) {
		t.Errorf("the handler's context ended with %v, want ErrLeaseLost", err)
	}
	time.Sleep(time.Minute)
	c.cut.Store(false)
	time.Sleep(10 * time.Minute)

	cut, other := stopFirst(), stopSecond()
	w.admin.kill()
	if n := runs.Load(); n != want {
		t.Errorf("%d runs, want %d", n, want)
	}
	if ms := w.sqs.Messages(w.url); len(ms) != 0 {
		t.Errorf("in the queue: %+v", ms)
	}
	if cut.LeasesLost != 1 || cut.Done != 1 || other.Received == 0 || other.Deletes == 0 {
		t.Errorf("the worker that was cut off: %+v; the other: %+v; want the lease lost by the first and the message deleted by the second", cut, other)
	}
	if withDedup && !w.record("a1").completed() {
		t.Error("the record is not completed")
	}
}
