package outbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/outboxtest/refstore"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/internal/testlog"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// fixture is SQS and an outbox in memory.
type fixture struct {
	*testing.T
	srv   *memsqs.Server
	sqs   *sqs.Client
	url   string
	table *refstore.Table
	ops   *operations
	log   *logBook
}

// bubble runs a test in virtual time, beside other tests.
func bubble(t *testing.T, f func(x *fixture), faults ...fault.Rule) {
	t.Helper()
	t.Parallel()
	inBubble(t, f, faults...)
}

// inBubble runs a part of a test in virtual time.
func inBubble(t *testing.T, f func(x *fixture), faults ...fault.Rule) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, "orders.fifo")
		x.srv.Set(fault.Plan{Rules: faults})
		f(x)
		x.srv.Close()
	})
}

func newFixture(t *testing.T, queue string) *fixture {
	t.Helper()
	srv := memsqs.New()
	x := &fixture{T: t, srv: srv, sqs: testaws.SQS(srv), table: refstore.NewTable(), ops: &operations{}, log: &logBook{}}
	x.table.Before = x.ops.before
	x.url = testaws.Queue(x, x.sqs, queue, nil)
	return x
}

func (x *fixture) publisher(optFns ...func(*fifo.Options)) *fifo.Publisher {
	x.Helper()
	p := must.Get(fifo.NewPublisher(x.sqs, x.url, refstore.Source, append([]func(*fifo.Options){func(o *fifo.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
	}}, optFns...)...))(x)
	return p
}

// relay returns a relay with a store and a publisher of its own, as that of another process.
func (x *fixture) relay(optFns ...func(*outbox.Options)) *outbox.Relay {
	x.Helper()
	return x.relayOf(x.table.Open(), optFns...)
}

func (x *fixture) relayOf(s outbox.Store, optFns ...func(*outbox.Options)) *outbox.Relay {
	x.Helper()
	r := must.Get(outbox.NewRelay(s, x.publisher(), append([]func(*outbox.Options){func(o *outbox.Options) {
		o.Logger = slog.New(slog.NewTextHandler(x.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}}, optFns...)...))(x)
	return r
}

// commit commits n events of each group, one transaction each, with numbers that go on.
func (x *fixture) commit(n int, groups ...string) {
	for range n {
		for _, g := range groups {
			x.table.Commit(event(g, x.ops.next(g)))
		}
	}
}

// event returns an event whose body is its ID.
func event(group string, n int) fifo.Event {
	id := fmt.Sprintf("%s/v%d", group, n)
	return fifo.Event{ID: id, Group: group, Body: id}
}

// queued returns the bodies of a group's messages in the queue's order.
func (x *fixture) queued(group string) (bodies []string) {
	for _, m := range x.srv.Messages(x.url) {
		if m.Group == group {
			bodies = append(bodies, m.Body)
		}
	}
	return bodies
}

// wantQueued expects events 1 to n of a group in the queue, each once, and its outbox empty.
func (x *fixture) wantQueued(group string, n int) {
	x.Helper()
	var want []string
	for i := range n {
		want = append(want, event(group, i+1).Body)
	}
	if got := x.queued(group); !slices.Equal(got, want) {
		x.Errorf("group %s: queue has %v, want %v", group, got, want)
	}
	if left := x.table.Events(group); len(left) > 0 {
		x.Errorf("group %s: outbox has %d events from %d, want none", group, len(left), left[0].Seq)
	}
}

// requests returns the number of SendMessageBatch requests that reached the queue.
func (x *fixture) requests() (n int) {
	for _, c := range x.srv.Calls() {
		if c.Op == "SendMessageBatch" {
			n++
		}
	}
	return n
}

// operations counts the calls of the store, and can make them fail.
type operations struct {
	mu      sync.Mutex
	counts  map[string]int
	numbers map[string]int
	fail    func(op string) error // nil: none fails
}

func (o *operations) before(op string) error {
	o.mu.Lock()
	if o.counts == nil {
		o.counts = make(map[string]int)
	}
	o.counts[op]++
	fail := o.fail
	o.mu.Unlock()
	if fail != nil {
		return fail(op)
	}
	return nil
}

func (o *operations) next(group string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.numbers == nil {
		o.numbers = make(map[string]int)
	}
	o.numbers[group]++
	return o.numbers[group]
}

// failing has f decide of each call from now on; nil: none fails.
func (o *operations) failing(f func(op string) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail = f
}

// of returns how often an operation was called, and forgets it.
func (o *operations) of(op string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.counts[op]
	delete(o.counts, op)
	return n
}

func (o *operations) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.counts)
}

// logBook is a log that a test reads.
type logBook struct{ testlog.Book }

// lines returns how many lines have the text.
func (b *logBook) lines(text string) (n int) {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// run starts Run; stop ends it and returns how long that took, and its error.
func (x *fixture) run(r *outbox.Relay) (stop func() (time.Duration, error)) {
	ctx, cancel := context.WithCancel(x.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return func() (time.Duration, error) {
		start := time.Now()
		cancel()
		err := <-done
		return time.Since(start), err
	}
}

func groupNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("g%03d", i))
	}
	return names
}
