package ops_test

import (
	std "cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

const (
	table      = "dedup"
	consumer   = "billing"
	visibility = 30 * time.Second
	arnPrefix  = "arn:aws:sqs:us-east-1:000000000000:"
)

var errCard = errors.New("card declined")

// fixture is AWS in memory with a queue "jobs" and its dead-letter queue, in virtual time.
type fixture struct {
	*testing.T
	sqs      *memsqs.Server
	ddb      *memdynamodb.Server
	fifo     bool
	url, dlq string
	admin    *process
	quiet    *slog.Logger
}

type setup struct {
	fifo        bool
	maxReceives int           // default: 3
	strict      bool          // memsqs.Options.StrictHandles
	behind      time.Duration // the clock of the records' server
}

func bubble(t *testing.T, s setup, f func(x *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := &fixture{T: t, fifo: s.fifo, sqs: memsqs.New(func(o *memsqs.Options) { o.StrictHandles = s.strict }), ddb: memdynamodb.New(func(o *memdynamodb.Options) { o.Now = func() time.Time { return time.Now().Add(-s.behind) } }), quiet: slog.New(slog.DiscardHandler)}
		t.Cleanup(x.sqs.Close)
		t.Cleanup(x.ddb.Close)
		x.admin = x.newProcess()
		must.Do(t, dynamostore.CreateTable(t.Context(), x.admin.ddb, table))
		x.dlq = x.create("jobs-dlq", nil)
		x.url = x.create("jobs", x.redrive("jobs-dlq", std.Or(s.maxReceives, 3)))
		f(x)
	})
}

// run runs a subtest beside the others.
func run(t *testing.T, name string, s setup, f func(x *fixture)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		bubble(t, s, f)
	})
}

// eachKind runs a subtest with a standard queue, and one with a FIFO queue.
func eachKind(t *testing.T, name string, s setup, f func(x *fixture)) {
	t.Helper()
	for _, s.fifo = range []bool{false, true} {
		run(t, fmt.Sprintf("%s/fifo=%t", name, s.fifo), s, f)
	}
}

// named returns the name of a queue, with .fifo for a FIFO queue.
func (x *fixture) named(name string) string {
	if x.fifo {
		return name + ".fifo"
	}
	return name
}

func (x *fixture) redrive(dlqName string, maxReceives int) map[string]string {
	return map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, arnPrefix+x.named(dlqName), maxReceives)}
}

func (x *fixture) create(name string, attrs map[string]string) string {
	x.Helper()
	all := map[string]string{"VisibilityTimeout": strconv.Itoa(int(visibility / time.Second))}
	if x.fifo {
		all["FifoQueue"] = "true"
	}
	for name, value := range attrs {
		all[name] = value
	}
	out := must.Get(x.admin.sqs.CreateQueue(context.Background(), &sqs.CreateQueueInput{QueueName: aws.String(x.named(name)), Attributes: all}))(x)
	return *out.QueueUrl
}

func (x *fixture) set(url string, attrs map[string]string) {
	x.Helper()
	must.Get(x.admin.sqs.SetQueueAttributes(context.Background(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: attrs}))(x)
}

// send sends events with an ID, which is also the body. Their group is the ID up to a hyphen, else its first letter.
func (x *fixture) send(url string, ids ...string) {
	x.Helper()
	for _, id := range ids {
		x.sendWith(url, id, map[string]string{sqsonce.AttrEventID: id, sqsonce.AttrEventSource: "orders"})
	}
}

func (x *fixture) sendWith(url, body string, attrs map[string]string) {
	x.Helper()
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageAttributes: map[string]sqstypes.MessageAttributeValue{}}
	for name, value := range attrs {
		in.MessageAttributes[name] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	if x.fifo {
		group, _, found := strings.Cut(body, "-")
		if !found {
			group = body[:1]
		}
		in.MessageGroupId, in.MessageDeduplicationId = &group, aws.String("dedup-"+rand.Text())
	}
	must.Get(x.admin.sqs.SendMessage(context.Background(), in))(x)
}

// receive receives what there is and handles nothing, as a function that is throttled, or a consumer that is killed at once.
func (x *fixture) receive(url string) {
	x.Helper()
	must.Get(x.admin.sqs.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10}))(x)
}

// process is a process of a host: after the kill no request of it has an effect.
type process struct {
	dead atomic.Bool
	sqs  *sqs.Client
	ddb  *dynamodb.Client

	killAt int // before its n-th request if it is 2n, after it if 2n+1; 0: never

	mu  sync.Mutex
	ops []string // the operations of its requests
}

var errDead = errors.New("the process is dead")

type connection struct {
	p  *process
	to http.RoundTripper
}

func (c connection) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.p.dead.Load() {
		return nil, errDead
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c.p.mu.Lock()
	c.p.ops = append(c.p.ops, op)
	n := 2 * len(c.p.ops)
	c.p.mu.Unlock()
	if n == c.p.killAt {
		c.p.dead.Store(true)
		return nil, errDead
	}
	resp, err := c.to.RoundTrip(r)
	if n+1 == c.p.killAt {
		c.p.dead.Store(true)
		return nil, errDead
	}
	return resp, err
}

// requests returns how many requests of an operation the process has made.
func (p *process) requests(op string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.ops {
		if o == op {
			n++
		}
	}
	return n
}

func (x *fixture) newProcess() *process {
	p := &process{}
	credentials := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
	})
	p.sqs = sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"), Credentials: credentials,
		HTTPClient: &http.Client{Transport: connection{p, x.sqs}},
	})
	p.ddb = dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://dynamodb.local"), Credentials: credentials,
		HTTPClient: &http.Client{Transport: connection{p, x.ddb}},
	})
	return p
}

func (x *fixture) store(p *process) *dynamostore.Store {
	x.Helper()
	return must.Get(dynamostore.New(p.ddb, table, func(o *dynamostore.Options) { o.Logger = x.quiet }))(x)
}

func (x *fixture) once(p *process, optFns ...func(*dedup.Options)) *dedup.Once {
	x.Helper()
	return must.Get(dedup.New(x.store(p), consumer, append(optFns, func(o *dedup.Options) { o.Logger = x.quiet })...))(x)
}

// host is a running host. stop ends it as a deployment does, kill at once.
type host struct{ stop, kill func() }

func (p *process) host(cancel func(), stopped <-chan error) host {
	end := func() { cancel(); <-stopped; p.dead.Store(true) }
	return host{stop: end, kill: func() { p.dead.Store(true); end() }}
}

func (h host) stopAfter(d time.Duration) { time.Sleep(d); h.stop() }
func (h host) killAfter(d time.Duration) { time.Sleep(d); h.kill() }

// makeHandler makes the handler of a process.
type makeHandler func(p *process) sqsonce.Handler

// guarded returns handlers with dedup around h.
func (x *fixture) guarded(h sqsonce.Handler, optFns ...func(*dedup.Options)) makeHandler {
	return func(p *process) sqsonce.Handler { return sqsonce.OpenEnvelope(x.once(p, optFns...).Handler(h)) }
}

// bare returns h, without dedup: no record is written.
func bare(h sqsonce.Handler) makeHandler { return func(*process) sqsonce.Handler { return h } }

func fails(err error) sqsonce.Handler {
	return func(context.Context, *sqsonce.Message) error { return err }
}

// hangs runs until its context ends.
func hangs(ctx context.Context, _ *sqsonce.Message) error { <-ctx.Done(); return ctx.Err() }

func (x *fixture) worker(url string, h makeHandler) host {
	x.Helper()
	p := x.newProcess()
	w := must.Get(sqsworker.New(p.sqs, url, h(p), func(o *sqsworker.Options) {
		o.Logger, o.VisibilityTimeout = x.quiet, visibility
	}))(x)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- w.Run(ctx) }()
	return p.host(cancel, stopped)
}

// spy is a client whose calls go through a function.
type spy struct {
	ops.Client
	around func(in any, call call) (any, error)
}

type call func() (any, error)

type operation[I, O any] func(context.Context, I, ...func(*sqs.Options)) (O, error)

func spied[I, O any](ctx context.Context, s spy, do operation[I, O], in I, o []func(*sqs.Options)) (O, error) {
	out, err := s.around(in, func() (any, error) { return do(ctx, in, o...) })
	typed, _ := out.(O)
	return typed, err
}

func (s spy) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return spied(ctx, s, s.Client.ReceiveMessage, in, o)
}

func (s spy) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return spied(ctx, s, s.Client.SendMessageBatch, in, o)
}

func (s spy) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return spied(ctx, s, s.Client.DeleteMessageBatch, in, o)
}

func (s spy) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return spied(ctx, s, s.Client.ChangeMessageVisibilityBatch, in, o)
}

// received are the messages of a receive that was answered; of another call none.
func received(out any, err error) []sqstypes.Message {
	if r, ok := out.(*sqs.ReceiveMessageOutput); ok && err == nil {
		return r.Messages
	}
	return nil
}

// looker is a process that only looks: at the end of the test it has made no other call.
func (x *fixture) looker() *process {
	p := x.newProcess()
	x.Cleanup(func() {
		for _, op := range p.ops {
			if !slices.Contains(looks, op) {
				x.Errorf("looking called %s", op)
			}
		}
	})
	return p
}

// spend accepts that receives may move messages on.
func spend(o *ops.Options) { o.SpendReceives = true }

// hold hides messages for so long.
func hold(d time.Duration) func(*ops.Options) { return func(o *ops.Options) { o.Hold = d } }

// open opens the dead-letter queue, with the records of the consumer.
func (x *fixture) open(optFns ...func(*ops.Options)) *ops.DLQ {
	x.Helper()
	return x.openIn(x.looker(), optFns...)
}

func (x *fixture) openIn(p *process, optFns ...func(*ops.Options)) *ops.DLQ {
	x.Helper()
	d := must.Get(ops.Open(context.Background(), p.sqs, x.dlq, append([]func(*ops.Options){func(o *ops.Options) {
		o.Key, o.Store = x.once(p).Key, x.store(p)
	}}, optFns...)...))(x)
	return d
}

// list lists the queue, which must change nothing but what looking changes.
func (x *fixture) list(d *ops.DLQ, limit ...int) (ops.Listing, error) {
	x.Helper()
	defer x.watch()()
	return d.List(context.Background(), append(limit, 0)[0])
}

// mustList lists the queue by body.
func (x *fixture) mustList(d *ops.DLQ) map[string]*ops.Message {
	x.Helper()
	l := must.Get(x.list(d))(x)
	byBody := map[string]*ops.Message{}
	for _, m := range l.Messages {
		byBody[m.Body] = m
	}
	return byBody
}

// looks are the only calls of something that only looks.
var looks = []string{
	"GetQueueAttributes", "ListDeadLetterSourceQueues", "ListMessageMoveTasks", "ReceiveMessage", "ChangeMessageVisibilityBatch", "GetItem",
}

// watch returns a function that fails the test if anything but visibility and receive counts of the dead-letter queue's messages
// has changed meanwhile.
func (x *fixture) watch() func() {
	x.Helper()
	before, source := x.still(x.dlq), x.sqs.Messages(x.url)
	return func() {
		x.Helper()
		if diff := cmp.Diff(before, x.still(x.dlq)); diff != "" {
			x.Errorf("looking changed the dead-letter queue:\n%s", diff)
		}
		if diff := cmp.Diff(source, x.sqs.Messages(x.url)); diff != "" {
			x.Errorf("looking changed the source:\n%s", diff)
		}
	}
}

// still returns what looking leaves alone of a queue's messages.
func (x *fixture) still(url string) []memsqs.QueuedMessage {
	all := x.sqs.Messages(url)
	for i := range all {
		all[i].ReceiveCount, all[i].InFlight, all[i].VisibleAt = 0, false, time.Time{}
	}
	return all
}

// hidden returns how many messages of the dead-letter queue are hidden.
func (x *fixture) hidden() (n int) {
	for _, m := range x.sqs.Messages(x.dlq) {
		if m.InFlight {
			n++
		}
	}
	return n
}

// attributes returns attributes as they are sent.
func attributes(attrs map[string]sqsonce.Attribute) map[string]sqstypes.MessageAttributeValue {
	out := map[string]sqstypes.MessageAttributeValue{}
	for name, a := range attrs {
		v := sqstypes.MessageAttributeValue{DataType: &a.Type, BinaryValue: a.Binary}
		if a.Binary == nil {
			v.StringValue = &a.String
		}
		out[name] = v
	}
	return out
}

// sqsonceAttributes returns attributes as they are received.
func sqsonceAttributes(attrs map[string]sqstypes.MessageAttributeValue) map[string]sqsonce.Attribute {
	return messageOf(sqstypes.Message{MessageAttributes: attrs}).Attributes
}

func messageOf(m sqstypes.Message) *sqsonce.Message { return sqsworker.MessageOf(m, "") }

func traceHeader(header string) map[string]sqstypes.MessageSystemAttributeValue {
	return map[string]sqstypes.MessageSystemAttributeValue{"AWSTraceHeader": {DataType: aws.String("String"), StringValue: &header}}
}

// receiveOne receives the only message of a queue.
func (x *fixture) receiveOne(url string) sqstypes.Message {
	x.Helper()
	out, err := x.admin.sqs.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{
		QueueUrl: &url, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
	})
	if err != nil || len(out.Messages) != 1 {
		x.Fatalf("%d messages, %v", len(out.Messages), err)
	}
	return out.Messages[0]
}
