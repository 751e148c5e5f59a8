package hosttest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// successCase is one worker with ten events, and what fails while their handlers run.
type successCase struct {
	timeout    time.Duration // Options.Timeout
	middleware time.Duration // of a middleware outside of dedup
	onCrash    dedup.CrashPolicy
	handler    func(ctx context.Context, run int) error
	fail       func(w *fixture) // 1 s after the events were sent, when all handlers run
	runs       int              // of each event
}

// A handler's own deadline ends the handler and nothing else, and a success outlives the lease of its message.
func TestWhatASuccessIsWorth(t *testing.T) {
	t.Parallel()
	store := func(d time.Duration) func(*fixture) { return func(w *fixture) { w.net.storeUnavailableFor(d) } }
	both := func(w *fixture) {
		w.net.storeUnavailableFor(45 * time.Second)
		w.net.queueUnavailableFor(45 * time.Second)
	}
	takes2s := func(context.Context, int) error { time.Sleep(2 * time.Second); return nil }
	timesOut := func(ctx context.Context, run int) error {
		if run > 1 {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	for name, c := range map[string]successCase{
		"Options.Timeout, store down for 45 s":           {timeout: 10 * time.Second, handler: takes2s, fail: store(45 * time.Second), runs: 1},
		"a middleware's timeout, store down for 45 s":    {middleware: 10 * time.Second, handler: takes2s, fail: store(45 * time.Second), runs: 1},
		"a handler times out, store down, Rerun":         {timeout: 3 * time.Second, handler: timesOut, fail: store(12 * time.Second), runs: 2},
		"a handler times out, store down, DeadLetter":    {timeout: 3 * time.Second, onCrash: dedup.OnCrashDeadLetter, handler: timesOut, fail: store(12 * time.Second), runs: 2},
		"a handler times out, store down, Block":         {timeout: 3 * time.Second, onCrash: dedup.OnCrashBlock, handler: timesOut, fail: store(12 * time.Second), runs: 2},
		"store and queue down for 45 s":                  {handler: takes2s, fail: both, runs: 1},
		"store and queue down for 45 s, Options.Timeout": {timeout: 10 * time.Second, handler: takes2s, fail: both, runs: 1},
	} {
		for _, fifo := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/fifo=%t", name, fifo), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { c.play(t, fifo) })
			})
		}
	}
}

func (c successCase) play(t *testing.T, fifo bool) {
	w := newFixture(t, setup{quiet: true, fifo: fifo, visibility: 30 * time.Second, maxReceives: maxReceives})
	const events = 10
	w.send(message{name: "first"}) // a worker begins with one message
	p := w.newProcess()
	s, err := dynamostore.New(p.ddb, table)
	if err != nil {
		t.Fatal(err)
	}
	once, err := dedup.New(s, consumer, func(o *dedup.Options) { o.OnCrash, o.Logger = c.onCrash, w.log })
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	runs := map[string]int{}
	handler := once.Handler(func(ctx context.Context, m *sqsonce.Message) error {
		name := m.Attributes[sqsonce.AttrEventID].String
		if name == "first" {
			return nil
		}
		mu.Lock()
		runs[name]++
		n := runs[name]
		mu.Unlock()
		return c.handler(ctx, n)
	})
	if c.middleware > 0 {
		inner := handler
		handler = func(ctx context.Context, m *sqsonce.Message) error {
			ctx, cancel := context.WithTimeout(ctx, c.middleware)
			defer cancel()
			return inner(ctx, m)
		}
	}
	k, err := sqsworker.New(p.sqs, w.url, handler, func(o *sqsworker.Options) {
		o.Concurrency, o.Logger = events, w.log
		if c.timeout > 0 {
			o.Timeout = func(*sqsonce.Message) time.Duration { return c.timeout }
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- k.Run(ctx) }()
	time.Sleep(time.Second)
	for i := range events {
		w.send(message{name: fmt.Sprintf("g%d-1", i)})
	}
	time.Sleep(time.Second)
	mu.Lock()
	if len(runs) != events {
		t.Errorf("%d handlers run, want %d", len(runs), events)
	}
	mu.Unlock()
	c.fail(w)
	for range 20 {
		time.Sleep(time.Second)
		if why := k.NotLive(); why != "" {
			t.Errorf("a worker that waits for its store is not live: %s", why)
		}
	}
	time.Sleep(20 * time.Minute)
	cancel()
	if err := <-stopped; err != nil {
		t.Errorf("Run: %v", err)
	}
	p.kill()
	w.admin.kill()
	for i := range events {
		name := fmt.Sprintf("g%d-1", i)
		if n := runs[name]; n != c.runs || !w.record(name).completed() {
			t.Errorf("%s: %d runs, completed %t, want %d and true", name, n, w.record(name).completed(), c.runs)
		}
	}
	if left, dead := len(w.sqs.Messages(w.url)), len(w.sqs.Messages(w.dlq)); left+dead > 0 {
		t.Errorf("%d messages left and %d dead-lettered, want none", left, dead)
	}
}
