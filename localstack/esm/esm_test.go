package esm_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/internal/testlog"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// fixture is a queue in memory with a mapping, inside a bubble.
type fixture struct {
	*testing.T
	srv    *memsqs.Server
	client *sqs.Client
	url    string
	start  time.Time
	log    testlog.Book
	stop   func() error // set by run: ends the mapping and returns its error
}

const visibility = 60 * time.Second // of every fixture's queue

func onQueue(t *testing.T, name string, f func(x *fixture), optFns ...func(*memsqs.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := memsqs.New(optFns...)
		defer srv.Close()
		x := &fixture{T: t, srv: srv, client: testaws.SQS(srv), start: time.Now()}
		x.url = testaws.Queue(t, x.client, name, map[string]string{"VisibilityTimeout": strconv.Itoa(int(visibility.Seconds()))})
		f(x)
		if x.stop != nil {
			x.mustStop()
		}
	})
}

// runOnQueue is a subtest of onQueue.
func runOnQueue(t *testing.T, name, queue string, f func(x *fixture)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { onQueue(t, queue, f) })
}

// send sends to a standard queue.
func (x *fixture) send(bodies ...string) {
	x.Helper()
	for _, b := range bodies {
		x.sendInput(&sqs.SendMessageInput{MessageBody: aws.String(b)})
	}
}

// sendGroup sends to a FIFO queue. Each body is its deduplication ID.
func (x *fixture) sendGroup(group string, bodies ...string) {
	x.Helper()
	for _, b := range bodies {
		x.sendInput(&sqs.SendMessageInput{
			MessageBody: aws.String(b), MessageGroupId: aws.String(group),
			MessageDeduplicationId: aws.String(b[:min(len(b), 20)]),
		})
	}
}

func (x *fixture) sendInput(in *sqs.SendMessageInput) string {
	x.Helper()
	in.QueueUrl = aws.String(x.url)
	return *must.Get(x.client.SendMessage(x.Context(), in))(x).MessageId
}

// run starts a mapping. It ends with the test, or when the test calls x.stop.
func (x *fixture) run(cfg esm.Config, invoke esm.Invoker) {
	x.Helper()
	cfg.QueueURL = x.url
	cfg.Logger = slog.New(slog.NewTextHandler(&x.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, cancel := context.WithCancel(x.Context())
	ended := make(chan error, 1)
	go func() { ended <- esm.Run(ctx, x.client, cfg, invoke) }()
	x.stop = func() error {
		x.stop = nil
		cancel()
		return <-ended
	}
}

// during runs a mapping for a while.
func (x *fixture) during(d time.Duration, cfg esm.Config, invoke esm.Invoker) {
	x.Helper()
	x.run(cfg, invoke)
	time.Sleep(d)
	x.mustStop()
}

func (x *fixture) mustStop() {
	x.Helper()
	must.Do(x, x.stop())
}

// bodies returns the bodies of the messages in the queue.
func (x *fixture) bodies() []string {
	var out []string
	for _, m := range x.srv.Messages(x.url) {
		out = append(out, m.Body)
	}
	return out
}

// wantEmpty fails the test if the queue has messages.
func (x *fixture) wantEmpty() {
	x.Helper()
	if remaining := x.bodies(); len(remaining) != 0 {
		x.Errorf("still in the queue: %q", remaining)
	}
}

// inFlight returns how many messages are hidden.
func (x *fixture) inFlight() (n int) {
	for _, m := range x.srv.Messages(x.url) {
		if m.InFlight {
			n++
		}
	}
	return n
}

// since returns the virtual time since the bubble began.
func (x *fixture) since() time.Duration { return time.Since(x.start) }

func (x *fixture) calls(op string) (n int) {
	for _, c := range x.srv.Calls() {
		if c.Op == op {
			n++
		}
	}
	return n
}

func (x *fixture) inject(rules ...fault.Rule) { x.srv.Set(fault.Plan{Rules: rules}) }

func (x *fixture) makeVisible(handle string) {
	x.Helper()
	must.Get(x.client.ChangeMessageVisibility(x.Context(), &sqs.ChangeMessageVisibilityInput{
		QueueUrl: aws.String(x.url), ReceiptHandle: aws.String(handle), VisibilityTimeout: 0,
	}))(x)
}

// function is an Invoker that records its invocations.
type function struct {
	t *testing.T
	f func(ctx context.Context, e events.SQSEvent) (any, error)

	mu      sync.Mutex
	batches [][]string // bodies, by invocation
	sizes   []int      // bytes of the events
	at      []time.Time
	running int
	most    int
}

// always returns a function with the same result for every event.
func always(t *testing.T, response any, err error) *function {
	return &function{t: t, f: func(context.Context, events.SQSEvent) (any, error) { return response, err }}
}

func (f *function) invoke(ctx context.Context, event []byte) ([]byte, error) {
	var e events.SQSEvent
	must.Do(f.t, json.Unmarshal(event, &e))
	var bodies []string
	for _, r := range e.Records {
		bodies = append(bodies, r.Body)
	}
	f.mu.Lock()
	f.batches, f.at, f.sizes = append(f.batches, bodies), append(f.at, time.Now()), append(f.sizes, len(event))
	f.running++
	f.most = max(f.most, f.running)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.running--
		f.mu.Unlock()
	}()
	response, err := f.f(ctx, e)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(response)
	if err != nil {
		f.t.Errorf("response: %v", err)
	}
	return b, nil
}

func (f *function) got() [][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([][]string(nil), f.batches...)
}

func (f *function) wantBatches(want ...[]string) {
	f.t.Helper()
	if d := cmp.Diff(want, f.got()); d != "" {
		f.t.Errorf("batches (-want +got):\n%s", d)
	}
}

func failing(records ...events.SQSMessage) events.SQSEventResponse {
	r := events.SQSEventResponse{}
	for _, m := range records {
		r.BatchItemFailures = append(r.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
	}
	return r
}

func text(v string) sqstypes.MessageAttributeValue {
	return sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(v)}
}
