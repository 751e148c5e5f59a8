package hosttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// batchCase is one use of sqsonce.Batch inside dedup, in both hosts.
type batchCase struct {
	name    string
	send    int
	options sqsonce.BatchOptions
	handle  func(ctx context.Context, b *batches, bodies []string) []error
	worker  func(*sqsworker.Options)
	check   func(t *testing.T, b *batches)
	dead    int
}

// batches are the calls of a batch handler.
type batches struct {
	mu    sync.Mutex
	calls [][]string
	at    []time.Time
	runs  map[string]int
	cause []error
}

func (b *batches) add(bodies []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls, b.at = append(b.calls, bodies), append(b.at, time.Now())
	for _, body := range bodies {
		b.runs[body]++
	}
}

func (b *batches) count(body string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs[body]
}

func (b *batches) ended(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cause = append(b.cause, cause)
}

func (b *batches) wantRuns(t *testing.T, want func(body string) int) {
	t.Helper()
	for body, n := range b.runs {
		if n != want(body) {
			t.Errorf("%s: %d runs, want %d", body, n, want(body))
		}
	}
}

func oneEach(string) int { return 1 }

// twice wants two runs of the named events, whose first run fails, and one of the others.
func twice(names ...string) func(string) int {
	return func(body string) int {
		if slices.Contains(names, body) {
			return 2
		}
		return 1
	}
}

func event(n int) string { return fmt.Sprintf("a%d", n) }

var errBatch = errors.New("not this one")

var batchCases = []batchCase{
	{
		name: "full batches, none larger than Size", send: 100, options: sqsonce.BatchOptions{Size: 8},
		check: func(t *testing.T, b *batches) {
			b.wantRuns(t, oneEach)
			full := 0
			for _, c := range b.calls {
				if len(c) > 8 {
					t.Errorf("a batch of %d", len(c))
				}
				if len(c) == 8 {
					full++
				}
			}
			if full < 5 {
				t.Errorf("%d full batches of %d", full, len(b.calls))
			}
		},
	},
	{
		name: "a batch that does not fill waits for Linger", send: 3, options: sqsonce.BatchOptions{Linger: 300 * time.Millisecond},
		check: func(t *testing.T, b *batches) {
			b.wantRuns(t, oneEach)
			// A worker starts with one message alone.
			if last := b.calls[len(b.calls)-1]; len(b.calls) > 2 || len(last) < 2 {
				t.Errorf("batches: %v, want one of three, or of two after the first message", b.calls)
			}
		},
	},
	{
		name: "a failed message is delivered again by itself", send: 10,
		handle: func(_ context.Context, b *batches, bodies []string) []error {
			errs := make([]error, len(bodies))
			if i := slices.Index(bodies, "a3"); i >= 0 && b.count("a3") == 1 {
				errs[i] = errBatch
			}
			return errs
		},
		check: func(t *testing.T, b *batches) {
			b.wantRuns(t, twice("a3"))
			if last := b.calls[len(b.calls)-1]; len(last) != 1 {
				t.Errorf("the last batch: %v, want a3 only", last)
			}
		},
	},
	{
		name: "a rejected message goes to the dead-letter queue by itself", send: 10, dead: 1,
		handle: func(_ context.Context, _ *batches, bodies []string) []error {
			errs := make([]error, len(bodies))
			if i := slices.Index(bodies, "a3"); i >= 0 {
				errs[i] = sqsonce.Reject(errBatch)
			}
			return errs
		},
		check: func(t *testing.T, b *batches) { b.wantRuns(t, oneEach) },
	},
	{
		name: "a panic fails all messages of its batch and no others", send: 20, options: sqsonce.BatchOptions{Size: 5},
		handle: func(_ context.Context, b *batches, bodies []string) []error {
			if slices.Contains(bodies, "a3") && b.count("a3") == 1 {
				b.ended(nil) // counts the panics
				panic("batch")
			}
			return nil
		},
		check: func(t *testing.T, b *batches) {
			for _, c := range b.calls {
				if slices.Contains(c, "a3") {
					b.wantRuns(t, twice(c...))
					break
				}
			}
			if len(b.cause) != 1 {
				t.Errorf("%d panics", len(b.cause))
			}
		},
	},
	{
		name: "a wrong number of errors fails all messages of the batch", send: 4, options: sqsonce.BatchOptions{Linger: 300 * time.Millisecond},
		handle: func(_ context.Context, b *batches, bodies []string) []error {
			if b.count(bodies[0]) == 1 {
				return make([]error, len(bodies)+1)
			}
			return nil
		},
		check: func(t *testing.T, b *batches) { b.wantRuns(t, func(string) int { return 2 }) },
	},
	{
		name: "when the host cancels all messages, the batch's context ends", send: 5, options: sqsonce.BatchOptions{Linger: 300 * time.Millisecond},
		handle: func(ctx context.Context, b *batches, bodies []string) []error {
			errs := make([]error, len(bodies))
			if b.count(bodies[0]) > 1 {
				return nil
			}
			<-ctx.Done()
			b.ended(context.Cause(ctx))
			for i := range errs {
				errs[i] = context.Cause(ctx)
			}
			return errs
		},
		// Lambda's deadline is the function's timeout of 30 s.
		worker: func(o *sqsworker.Options) {
			o.Timeout = func(*sqsonce.Message) time.Duration { return 30 * time.Second }
		},
		check: func(t *testing.T, b *batches) {
			b.wantRuns(t, func(string) int { return 2 })
			if len(b.cause) == 0 || b.cause[0] == nil {
				t.Errorf("causes: %v", b.cause)
			}
		},
	},
}

func TestBatches(t *testing.T) {
	t.Parallel()
	for _, c := range batchCases {
		for _, host := range []string{worker, function} {
			must.RunParallel(t, c.name+"/"+host, func(t *testing.T) { c.play(t, host) })
		}
	}
}

func (c *batchCase) play(t *testing.T, host string) {
	w := newFixture(t, setup{visibility: 6 * functionTimeout, maxReceives: maxReceives})
	for n := range c.send {
		w.send(message{name: event(n), body: event(n)})
	}
	b := &batches{runs: map[string]int{}}
	p := w.newProcess()
	stop := c.start(w, host, p, w.batchHandler(p, c, b))
	time.Sleep(time.Hour)
	stop()
	p.kill()
	w.admin.kill()

	if len(b.runs) != c.send {
		t.Errorf("%d events handled, %d sent", len(b.runs), c.send)
	}
	if len(b.calls) > 0 {
		c.check(t, b)
	}
	if queued, dead := len(w.sqs.Messages(w.url)), len(w.sqs.Messages(w.dlq)); queued != 0 || dead != c.dead {
		t.Errorf("%d messages in the queue, %d in the dead-letter queue; want 0, %d", queued, dead, c.dead)
	}
	completed := 0
	for n := range c.send {
		if w.record(event(n)).completed() {
			completed++
		}
	}
	if completed != c.send-c.dead {
		t.Errorf("%d records completed, want %d", completed, c.send-c.dead)
	}
}

// batchHandler is dedup around a batch: each message has its own record.
func (w *fixture) batchHandler(p *process, c *batchCase, b *batches) sqsonce.Handler {
	store := must.Get(dynamostore.New(p.ddb, table))(w)
	once := must.Get(dedup.New(store, consumer))(w)
	return once.Handler(sqsonce.Batch(func(ctx context.Context, ms []*sqsonce.Message) []error {
		bodies := make([]string, len(ms))
		for i, m := range ms {
			bodies[i] = m.Body
		}
		b.add(bodies)
		if c.handle == nil {
			return nil
		}
		return c.handle(ctx, b, bodies)
	}, func(o *sqsonce.BatchOptions) { *o = c.options }))
}

func (c *batchCase) start(w *fixture, host string, p *process, h sqsonce.Handler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	if host == worker {
		k := must.Get(sqsworker.New(p.sqs, w.url, h, func(o *sqsworker.Options) {
			o.Logger, o.Concurrency = w.log, 40
			if c.worker != nil {
				c.worker(o)
			}
		}))(w)
		go func() { stopped <- k.Run(ctx) }()
	} else {
		e := newEnvironment(w.T, p, h, func(l *lambda.Options) {
			l.Logger, l.Concurrency, l.Client, l.DeadLetterQueue = w.log, 40, p.sqs, w.dlq
		})
		go func() {
			stopped <- esm.Run(ctx, w.admin.sqs, esm.Config{
				QueueURL: w.url, BatchSize: 40, BatchingWindow: time.Second, FunctionTimeout: functionTimeout,
				ReportBatchItemFailures: true, Logger: w.log,
			}, e.invoke)
		}()
	}
	return func() {
		cancel()
		must.Do(w, <-stopped)
	}
}
