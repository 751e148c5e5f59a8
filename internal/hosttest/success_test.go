package hosttest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/workerkit"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// successCase is workers with ten events, and what fails while their handlers run.
type successCase struct {
	workers    int           // 0: one
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
	away := map[string]func(*network, time.Duration){
		"store": (*network).storeUnavailableFor,
		"queue": (*network).queueUnavailableFor,
		"both":  func(n *network, d time.Duration) { n.storeUnavailableFor(d); n.queueUnavailableFor(d) },
	}
	takes2s := func(context.Context, int) error { time.Sleep(2 * time.Second); return nil }
	timesOut := func(ctx context.Context, run int) error {
		if run > 1 {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	cases := map[string]successCase{}
	for what, set := range away {
		for _, d := range []time.Duration{25 * time.Second, 45 * time.Second, 90 * time.Second} {
			fail := func(w *fixture) { set(&w.net, d) }
			for _, workers := range []int{1, 2} {
				for timeout, c := range map[string]successCase{
					"no timeout": {}, "Options.Timeout": {timeout: 10 * time.Second}, "a middleware's timeout": {middleware: 10 * time.Second},
				} {
					c.workers, c.handler, c.fail, c.runs = workers, takes2s, fail, 1
					cases[fmt.Sprintf("%s down for %s, %d workers, %s", what, d, workers, timeout)] = c
				}
			}
		}
	}
	for _, policy := range []dedup.CrashPolicy{dedup.OnCrashRerun, dedup.OnCrashDeadLetter, dedup.OnCrashBlock} {
		for _, d := range []time.Duration{7 * time.Second, 12 * time.Second} { // 5 and 10 s from the timeout on
			cases[fmt.Sprintf("a handler times out, store down for %s, policy %v", d, policy)] = successCase{
				timeout: 3 * time.Second, onCrash: policy, handler: timesOut, fail: func(w *fixture) { w.net.storeUnavailableFor(d) }, runs: 2,
			}
		}
	}
	for name, c := range cases {
		for _, fifo := range []bool{false, true} {
			must.RunParallel(t, fmt.Sprintf("%s/fifo=%t", name, fifo), func(t *testing.T) { c.play(t, fifo) })
		}
	}
}

func (c successCase) play(t *testing.T, fifo bool) {
	w := newFixture(t, setup{quiet: true, fifo: fifo, visibility: 30 * time.Second, maxReceives: maxReceives})
	const events = 10
	w.send(message{name: "first"}) // a worker begins with one message
	var mu sync.Mutex
	runs := map[string]int{}
	handler := func(ctx context.Context, m *sqsonce.Message) error {
		name := m.Attributes[sqsonce.AttrEventID].String
		if name == "first" {
			return nil
		}
		mu.Lock()
		runs[name]++
		n := runs[name]
		mu.Unlock()
		return c.handler(ctx, n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error)
	var workers []*sqsworker.Worker
	for range max(c.workers, 1) {
		k := c.newWorker(w, handler)
		workers = append(workers, k)
		go func() { stopped <- k.Run(ctx) }()
	}
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
		for _, k := range workers {
			if why := workerkit.NotLive(k); why != "" {
				t.Errorf("a worker that waits for its store is not live: %s", why)
			}
		}
	}
	time.Sleep(20 * time.Minute)
	cancel()
	for range workers {
		must.Do(t, <-stopped)
	}
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

// newWorker makes a worker in a process of its own.
func (c successCase) newWorker(w *fixture, handler sqsonce.Handler) *sqsworker.Worker {
	p := w.newProcess()
	w.Cleanup(p.kill)
	store := must.Get(dynamostore.New(p.ddb, table))(w)
	once := must.Get(dedup.New(store, consumer, func(o *dedup.Options) { o.OnCrash, o.Logger = c.onCrash, w.log }))(w)
	handler = once.Handler(handler)
	if c.middleware > 0 {
		inner := handler
		handler = func(ctx context.Context, m *sqsonce.Message) error {
			ctx, cancel := context.WithTimeout(ctx, c.middleware)
			defer cancel()
			return inner(ctx, m)
		}
	}
	k := must.Get(sqsworker.New(p.sqs, w.url, handler, func(o *sqsworker.Options) {
		o.Concurrency, o.Logger = 10, w.log
		if c.timeout > 0 {
			o.Timeout = func(*sqsonce.Message) time.Duration { return c.timeout }
		}
	}))(w)
	return k
}
