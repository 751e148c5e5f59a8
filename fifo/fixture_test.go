package fifo_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

const (
	orders   = "orders.fifo" // the FIFO queue of most tests
	standard = "orders"      // the standard one
)

// fixture is SQS in memory with one queue, a real client, and a recorder of what a Publisher sends.
type fixture struct {
	*testing.T
	srv  *memsqs.Server
	sqs  *sqs.Client
	sent *recorder
	url  string
}

// bubble runs a test in virtual time, beside other tests.
func bubble(t *testing.T, queue string, f func(x *fixture), faults ...fault.Rule) {
	t.Helper()
	t.Parallel()
	inBubble(t, queue, f, faults...)
}

// runIn is a subtest in virtual time, beside other tests.
func runIn(t *testing.T, name, queue string, f func(x *fixture), faults ...fault.Rule) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, queue, f, faults...) })
}

// inBubble runs a part of a test in virtual time.
func inBubble(t *testing.T, queue string, f func(x *fixture), faults ...fault.Rule) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, queue, nil)
		defer x.srv.Close()
		x.srv.Set(fault.Plan{Rules: faults})
		f(x)
		if err := x.sent.problem(); err != "" {
			t.Error(err)
		}
	})
}

func newFixture(t *testing.T, queue string, attrs map[string]string) *fixture {
	t.Helper()
	srv := memsqs.New()
	c := testaws.SQS(srv)
	x := &fixture{T: t, srv: srv, sqs: c, sent: &recorder{Client: c}}
	x.url = testaws.Queue(x, x.sqs, queue, attrs)
	return x
}

func (x *fixture) publisher(optFns ...func(*fifo.Options)) *fifo.Publisher {
	x.Helper()
	p := must.Get(fifo.NewPublisher(x.sent, x.url, "orders", optFns...))(x)
	return p
}

// queued returns the bodies of a group's messages in the queue's order.
func (x *fixture) queued(group string) []string {
	var bodies []string
	for _, m := range x.srv.Messages(x.url) {
		if m.Group == group {
			bodies = append(bodies, m.Body)
		}
	}
	return bodies
}

// sizes returns the number of entries of each request that the server answered, the largest first: concurrent requests are
// answered in any order.
func (x *fixture) sizes() []int {
	var n []int
	for _, c := range x.srv.Calls() {
		if c.Op == "SendMessageBatch" {
			n = append(n, c.Entries)
		}
	}
	slices.Sort(n)
	slices.Reverse(n)
	return n
}

// event returns an event whose body is its ID.
func event(group string, n int) fifo.Event {
	id := fmt.Sprintf("%s/v%d", group, n)
	return fifo.Event{ID: id, Group: group, Body: id}
}

// each returns an event with the number for each of the groups g0, g1 and so on.
func each(groups, n int) (es []fifo.Event) {
	for g := range groups {
		es = append(es, event(fmt.Sprint("g", g), n))
	}
	return es
}

// recorder is a client that checks what every attempt sends: at most one entry of a group at once, and the same message in
// every attempt.
type recorder struct {
	fifo.Client
	mu       sync.Mutex
	active   map[string]int // entries in flight, by group
	requests int            // in flight
	most     int            // requests at once
	sent     map[string]sqstypes.SendMessageBatchRequestEntry
	attempts map[string]int // by event ID
	problems []string
	onSend   func(context.Context) // before each request; nil: nothing
}

func (w *recorder) SendMessageBatch(
	ctx context.Context, in *sqs.SendMessageBatchInput, optFns ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	w.begin(in)
	defer w.end(in)
	if w.onSend != nil {
		w.onSend(ctx)
	}
	return w.Client.SendMessageBatch(ctx, in, optFns...)
}

func (w *recorder) begin(in *sqs.SendMessageBatchInput) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active == nil {
		w.active, w.attempts = make(map[string]int), make(map[string]int)
		w.sent = make(map[string]sqstypes.SendMessageBatchRequestEntry)
	}
	w.requests++
	w.most = max(w.most, w.requests)
	bytes := 0
	for i, e := range in.Entries {
		bytes += len(*e.MessageBody)
		id := *e.MessageAttributes["event-id"].StringValue
		w.attempts[id]++
		group := aws.ToString(e.MessageGroupId)
		if w.active[group]++; w.active[group] > 1 && strings.HasSuffix(*in.QueueUrl, ".fifo") {
			w.problems = append(w.problems, "two entries of group "+group+" in flight")
		}
		if want := fmt.Sprint(i); *e.Id != want {
			w.problems = append(w.problems, fmt.Sprintf("entry %s has ID %s", want, *e.Id))
		}
		e.Id, e.DelaySeconds = nil, 0 // a repeated attempt asks for what is left
		if first, ok := w.sent[id]; !ok {
			w.sent[id] = e
		} else if !reflect.DeepEqual(first, e) {
			w.problems = append(w.problems, "a later attempt sent another message: "+id)
		}
	}
	if len(in.Entries) < 1 || len(in.Entries) > 10 || bytes > 1<<20 {
		w.problems = append(w.problems, fmt.Sprintf("request of %d entries and %d bytes", len(in.Entries), bytes))
	}
}

func (w *recorder) end(in *sqs.SendMessageBatchInput) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests--
	for _, e := range in.Entries {
		w.active[aws.ToString(e.MessageGroupId)]--
	}
}

// forget allows another body for an ID that was sent.
func (w *recorder) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.sent)
}

func (w *recorder) inFlight() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests
}

func (w *recorder) attemptsOf(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.attempts[id]
}

func (w *recorder) problem() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.problems)
	return strings.Join(slices.Compact(w.problems), "\n")
}
