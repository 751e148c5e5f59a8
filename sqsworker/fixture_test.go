package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/testlog"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// fixture is one queue with a dead-letter queue, under the real client, in a bubble of virtual time.
type fixture struct {
	*testing.T
	srv      *memsqs.Server
	c        *sqs.Client
	url, dlq string
	log      *logBook
	// slowStart starts workers as they start in production: with one message, until it is seen that it can be handled.
	slowStart bool
}

type setup struct {
	fifo        bool
	maxReceives int // 0: no dead-letter queue
	faults      []fault.Rule
	seed        uint64
	strict      bool // memsqs.Options.StrictHandles
}

func bubble(t *testing.T, s setup, f func(*fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := memsqs.New(func(o *memsqs.Options) {
			o.Faults = fault.Plan{Seed: s.seed, Rules: s.faults}
			o.Seed, o.StrictHandles = s.seed, s.strict
		})
		defer srv.Close()
		f(newFixture(t, srv, s))
	})
}

// run is a subtest in a bubble of its own.
func run(t *testing.T, name string, s setup, f func(*fixture)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, s, f) })
}

func runParallel(t *testing.T, name string, s setup, f func(*fixture)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		bubble(t, s, f)
	})
}

// bothKinds runs f with a standard and with a FIFO queue.
func bothKinds(t *testing.T, s setup, f func(*fixture)) {
	t.Helper()
	for _, s.fifo = range []bool{false, true} {
		run(t, fmt.Sprintf("fifo=%t", s.fifo), s, f)
	}
}

func newFixture(t *testing.T, srv *memsqs.Server, s setup) *fixture {
	t.Helper()
	x := &fixture{T: t, srv: srv, log: &logBook{}, c: sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"), HTTPClient: &http.Client{Transport: srv},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})}
	suffix, attrs := "", map[string]string{}
	if s.fifo {
		suffix, attrs = ".fifo", map[string]string{"FifoQueue": "true"}
	}
	x.dlq = x.create("jobs-dlq"+suffix, attrs)
	if s.maxReceives > 0 {
		attrs["RedrivePolicy"] = fmt.Sprintf(
			`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:jobs-dlq%s","maxReceiveCount":%d}`, suffix, s.maxReceives)
	}
	x.url = x.create("jobs"+suffix, attrs)
	return x
}

func (x *fixture) create(name string, attrs map[string]string) string {
	x.Helper()
	out := must.Get(x.c.CreateQueue(x.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attrs}))(x)
	return *out.QueueUrl
}

// send sends bodies; on FIFO a body is group:name.
func (x *fixture) send(bodies ...string) {
	x.Helper()
	for _, b := range bodies {
		in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: &b}
		if host.IsFIFO(x.url) {
			group, _, _ := strings.Cut(b, ":")
			in.MessageGroupId, in.MessageDeduplicationId = &group, &b
		}
		must.Get(x.c.SendMessage(x.Context(), in))(x)
	}
}

// sendMany sends 0 to n-1, ten in a call.
func (x *fixture) sendMany(n int) {
	x.Helper()
	for from := 0; from < n; from += host.MaxBatch {
		in := &sqs.SendMessageBatchInput{QueueUrl: &x.url}
		for i := range min(host.MaxBatch, n-from) {
			in.Entries = append(in.Entries, sqstypes.SendMessageBatchRequestEntry{
				Id: host.EntryID(i), MessageBody: aws.String(fmt.Sprint(from + i)),
			})
		}
		if out, err := x.c.SendMessageBatch(x.Context(), in); err != nil || len(out.Failed) > 0 {
			x.Fatalf("SendMessageBatch: %v, %v", err, out)
		}
	}
}

// newTestLoop is the loop of a worker that does not run.
func newTestLoop(t *testing.T, optFns ...func(*Options)) *loop {
	t.Helper()
	w := must.Get(New(stubClient{}, goodURL, ok, append([]func(*Options){func(o *Options) { o.Logger = slog.New(slog.DiscardHandler) }}, optFns...)...))(t)
	return newLoop(t.Context(), w, queue{})
}

// addTest adds a delivery, just received for the count-th time.
func (l *loop) addTest(id string, count int) *delivery {
	return l.addDelivery(incoming{m: &sqsonce.Message{ID: id}}, newLease("handle of "+id, count, receiveOrder{}, time.Now(), time.Minute, 0))
}

// job is a running worker of a test.
type job struct {
	*Worker
	x      *fixture
	ctx    context.Context
	cancel context.CancelFunc
	result chan error
}

func (x *fixture) start(h sqsonce.Handler, optFns ...func(*Options)) *job {
	x.Helper()
	return x.startWith(x.c, h, optFns...)
}

func (x *fixture) startWith(c Client, h sqsonce.Handler, optFns ...func(*Options)) *job {
	x.Helper()
	j := x.newJob(c, h, optFns...)
	j.run()
	return j
}

// newJob makes a worker that does not run yet.
func (x *fixture) newJob(c Client, h sqsonce.Handler, optFns ...func(*Options)) *job {
	x.Helper()
	optFns = append([]func(*Options){func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(x.log, nil)) }}, optFns...)
	w := must.Get(New(c, x.url, h, optFns...))(x)
	w.warm = !x.slowStart
	j := &job{Worker: w, x: x, result: make(chan error, 1)}
	j.ctx, j.cancel = context.WithCancel(context.Background()) // the context of the test is cancelled outside the bubble
	return j
}

func (j *job) run() { go func() { j.result <- j.Run(j.ctx) }() }

// startPrefetching starts a worker that takes its handlers for quick, so that it will receive more messages than it has
// slots: as many handlers as it wants to see have returned at once. It is paused, and no receive is under way.
func (x *fixture) startPrefetching(h sqsonce.Handler, optFns ...func(*Options)) *job {
	x.Helper()
	const first = "first"
	for i := range paceMin {
		x.send(fmt.Sprintf("%s%d:", first, i))
	}
	j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
		if strings.HasPrefix(m.Body, first) {
			return nil
		}
		return h(ctx, m)
	}, optFns...)
	for len(x.queued()) > 0 {
		time.Sleep(time.Millisecond)
	}
	j.Pause()
	time.Sleep(j.opts.WaitTime + time.Second)
	return j
}

// stop cancels the worker's context and returns what Run returns.
func (j *job) stop() error {
	j.cancel()
	return j.wait()
}

// wait returns what Run returns. The time of the bubble is virtual: if Run hangs, the test fails after a day of it.
func (j *job) wait() error {
	j.x.Helper()
	select {
	case err := <-j.result:
		return err
	case <-time.After(24 * time.Hour):
		j.x.Fatal("Run does not return")
		return nil
	}
}

func (j *job) stopClean() {
	j.x.Helper()
	if err := j.stop(); err != nil {
		j.x.Errorf("Run: got %v, want nil", err)
	}
}

// stopEmptyAfter stops the worker after d. The stop is clean, and the queue is empty then.
func (j *job) stopEmptyAfter(d time.Duration) {
	j.x.Helper()
	time.Sleep(d)
	j.stopClean()
	j.x.wantEmpty()
}

// calls counts requests of an operation that the server has answered.
func (x *fixture) calls(op string) (n int) {
	for _, c := range x.srv.Calls() {
		if c.Op == op {
			n++
		}
	}
	return n
}

func (x *fixture) queued() []memsqs.QueuedMessage { return x.srv.Messages(x.url) }
func (x *fixture) dead() []memsqs.QueuedMessage   { return x.srv.Messages(x.dlq) }

// inFlight counts the messages of the queue that are in flight.
func (x *fixture) inFlight() (n int) {
	for _, m := range x.queued() {
		if m.InFlight {
			n++
		}
	}
	return n
}

func (x *fixture) wantEmpty() {
	x.Helper()
	for _, m := range x.queued() {
		x.Errorf("left in the queue: %q, received %d times, in flight %t", m.Body, m.ReceiveCount, m.InFlight)
	}
}

// runs records the starts of a handler.
type runs struct {
	mu     sync.Mutex
	order  []string
	active map[string]int
	most   int // at once
	twice  []string
}

func (r *runs) begin(body string) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active == nil {
		r.active = map[string]int{}
	}
	r.order = append(r.order, body)
	r.active[body]++
	if r.active[body] > 1 {
		r.twice = append(r.twice, body)
	}
	n := 0
	for _, k := range r.active {
		n += k
	}
	r.most = max(r.most, n)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.active[body]--
	}
}

func (r *runs) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.order...)
}

func (r *runs) count(body string) (n int) {
	for _, b := range r.list() {
		if b == body {
			n++
		}
	}
	return n
}

// take returns a handler that takes d, or returns the cause when its context is cancelled.
func (r *runs) take(d time.Duration) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		defer r.begin(m.Body)()
		until(ctx, d)
		return context.Cause(ctx)
	}
}

// timeoutOf is an Options.Timeout.
func timeoutOf(d time.Duration) func(*sqsonce.Message) time.Duration {
	return func(*sqsonce.Message) time.Duration { return d }
}

func ok(context.Context, *sqsonce.Message) error { return nil }

type logBook struct{ testlog.Book }

func (b *logBook) has(s string) bool { return strings.Contains(b.String(), s) }

func (b *logBook) count(s string) int { return strings.Count(b.String(), s) }

var errTest = errors.New("it failed")

// receive is another consumer: it receives what is visible.
func (x *fixture) receive(visibility time.Duration) []sqstypes.Message {
	x.Helper()
	out := must.Get(x.c.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &x.url, MaxNumberOfMessages: 10, VisibilityTimeout: int32(visibility / time.Second),
	}))(x)
	return out.Messages
}

// stubClient panics when it is called.
type stubClient struct{ Client }

// receiveFunc is a client with a ReceiveMessage of its own.
type receiveFunc struct {
	Client
	receive func(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
}

func (c receiveFunc) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return c.receive(ctx, in, o...)
}
