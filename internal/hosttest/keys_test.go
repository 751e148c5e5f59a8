package hosttest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// keySource is a message whose key comes from one place.
type keySource struct {
	name       string
	body       string // "": {}
	attributes map[string]string
	fifo       bool
	opt        func(*dedup.Options)
	want       string // the key; "": that of the message ID
	lost       bool   // SQS's own move gives the message another key
}

var keySources = []keySource{
	{name: "event-key", attributes: map[string]string{"event-key": "k"}, want: "k"},
	{name: "event-id with event-source", attributes: map[string]string{"event-id": "1", "event-source": "orders"}, want: "orders|1"},
	{name: "event-id", attributes: map[string]string{"event-id": "1"}, want: "sqs-event|" + queueARN + "|1"},
	{name: "CloudEvent in attributes", attributes: map[string]string{"ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t"}, want: "s|1"},
	{name: "CloudEvent", body: cloudEventBody, want: "s|1"},
	{name: "SNS", body: inSNS("{}"), want: "sns-message|arn:aws:sns:eu-west-1:123456789012:orders|m-1"},
	{name: "EventBridge", body: eventBridgeBody, want: "eventbridge-event|shop|e-1"},
	{name: "EventBridge in SNS", body: inSNS(eventBridgeBody), want: "eventbridge-event|shop|e-1"},
	{name: "CloudEvent in SNS", body: inSNS(cloudEventBody), want: "s|1"},
	{name: "S3", body: s3Body, want: "s3-notification|photos|a+b.jpg||0055AED6DCD90281E5|ObjectCreated:Put"},
	{name: "S3 in SNS", body: inSNS(s3Body), want: "s3-notification|photos|a+b.jpg||0055AED6DCD90281E5|ObjectCreated:Put"},
	{name: "function", body: "text", opt: func(o *dedup.Options) {
		o.Key = func(m *sqsonce.Message) (string, error) { return "f-" + m.Body, nil }
	}, want: "f-text"},
	{name: "MessageDeduplicationId", fifo: true, opt: trustDedupID, want: "sqs-dedup|" + queueARN + ".fifo|g|d"},
	{name: "SNS and a trusted MessageDeduplicationId", body: inSNS("{}"), fifo: true, opt: trustDedupID, want: "sqs-dedup|" + queueARN + ".fifo|g|d"},
	{name: "message ID", lost: true},
	{name: "message ID on a FIFO queue", fifo: true},
}

const (
	s3Body          = `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"photos"},"object":{"key":"a+b.jpg","sequencer":"0055AED6DCD90281E5"}}}]}`
	cloudEventBody  = `{"specversion":"1.0","id":"1","source":"s","type":"t","data":{}}`
	eventBridgeBody = `{"version":"0","id":"e-1","detail-type":"placed","source":"shop","account":"123456789012","time":"2026-11-23T06:00:00Z","region":"eu-west-1","resources":[],"detail":{}}`
)

func inSNS(body string) string {
	return fmt.Sprintf(`{"Type":"Notification","MessageId":"m-1","TopicArn":"arn:aws:sns:eu-west-1:123456789012:orders","Message":%q,"Timestamp":"2026-11-23T06:00:00.000Z"}`, body)
}

func trustDedupID(o *dedup.Options) { o.TrustDedupID = true }

// An event keeps its key when it is dead-lettered and redriven: after a reject always; after SQS's own move where the message
// has the key in it. The hosts dead-letter a FIFO message themselves before SQS would.
func TestKeysSurviveARedrive(t *testing.T) {
	t.Parallel()
	for _, s := range keySources {
		for _, host := range []string{worker, function} {
			for way, failure := range map[string]error{"reject": sqsonce.Reject(errCard), "own move": errCard} {
				must.RunParallel(t, s.name+"/"+host+"/"+way, func(t *testing.T) {
					keys := redriven(t, s, host, failure)
					switch {
					case len(keys) != 2:
						t.Fatalf("keys %q, want one before and one after the redrive", keys)
					case s.want != "" && keys[0] != consumer+"#"+s.want:
						t.Errorf("key %q, want %q", keys[0], s.want)
					case (keys[0] != keys[1]) != (s.lost && way == "own move"):
						t.Errorf("keys %q before and after the redrive: lost %t, want %t", keys, keys[0] != keys[1], !s.lost)
					}
				})
			}
		}
	}
}

// redriven sends a message, whose handler returns failure until it is in the dead-letter queue, and redrives it. It returns its
// keys, each once.
func redriven(t *testing.T, s keySource, host string, failure error) (keys []string) {
	w := newFixture(t, setup{fifo: s.fifo, visibility: 30 * time.Second, maxReceives: 3, quiet: true})
	var mu sync.Mutex
	moved := false
	var opts []func(*dedup.Options)
	if s.opt != nil {
		opts = append(opts, s.opt)
	}
	once := must.Get(dedup.New(memstore.New(), consumer, append(opts, func(o *dedup.Options) { o.Logger = w.log })...))(t)
	h := sqsonce.OpenEnvelope(sqsonce.S3(once.Handler(func(_ context.Context, m *sqsonce.Message) error {
		key, err := once.Key(m)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if moved || len(keys) == 0 {
			keys = append(keys, key)
		}
		if moved {
			return nil
		}
		return failure
	})))
	stop := w.start(host, h)
	in := &sqs.SendMessageInput{QueueUrl: &w.url, MessageBody: aws.String(s.body), MessageAttributes: map[string]sqstypes.MessageAttributeValue{}}
	if s.body == "" {
		in.MessageBody = aws.String("{}")
	}
	for name, value := range s.attributes {
		in.MessageAttributes[name] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	}
	if s.fifo {
		in.MessageGroupId, in.MessageDeduplicationId = aws.String("g"), aws.String("d")
	}
	must.Get(w.admin.sqs.SendMessage(t.Context(), in))(t)
	time.Sleep(time.Hour)
	mu.Lock()
	moved = true
	want := "" // the record of a key function is in a host's copy, for who looks at it without the function
	if sqsonce.OutcomeOf(failure).Reject && s.name == "function" {
		want = keys[0]
	}
	mu.Unlock()
	if copies := w.sqs.Messages(w.dlq); len(copies) != 1 || copies[0].Attributes[sqsonce.AttrRecordKey] != want {
		t.Errorf("in the dead-letter queue: %+v, want the record's key %q", copies, want)
	}
	w.redrive()
	time.Sleep(time.Hour)
	stop()
	return keys
}

// start runs a handler in a host.
func (w *fixture) start(host string, h sqsonce.Handler, hooks ...sqsonce.Hooks) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	p := w.newProcess()
	if host == worker {
		k := must.Get(sqsworker.New(p.sqs, w.url, h, func(o *sqsworker.Options) {
			o.Logger = w.log
			for _, h := range hooks {
				o.Hooks = append(o.Hooks, sqsworker.Hooks{Hooks: h})
			}
		}))(w)
		go func() { stopped <- k.Run(ctx) }()
	} else {
		e := &pool{newEnvironment: func() *environment {
			return newEnvironment(w.T, p, h, func(o *lambda.Options) {
				o.Logger, o.Client = w.log, p.sqs
				for _, h := range hooks {
					o.Hooks = append(o.Hooks, lambda.Hooks{Hooks: h})
				}
			})
		}}
		go func() {
			stopped <- esm.Run(ctx, w.admin.sqs, esm.Config{
				QueueURL: w.url, FunctionTimeout: functionTimeout, ReportBatchItemFailures: true, Logger: w.log,
			}, e.invoke)
			e.kill()
		}()
	}
	return func() {
		cancel()
		must.Do(w, <-stopped)
		p.kill()
	}
}

// S3 may send two notifications of one change. The handler runs once, and not for the test event. Two changes are two
// events.
func TestS3NotificationsRunOnce(t *testing.T) {
	t.Parallel()
	for _, host := range []string{worker, function} {
		must.RunParallel(t, host, func(t *testing.T) {
			w := newFixture(t, setup{visibility: 30 * time.Second, maxReceives: 3, quiet: true})
			once := must.Get(dedup.New(memstore.New(), consumer, func(o *dedup.Options) { o.Logger = w.log }))(t)
			var runs atomic.Int64
			stop := w.start(host, sqsonce.S3(once.Handler(func(context.Context, *sqsonce.Message) error { runs.Add(1); return nil })))
			for _, body := range []string{
				`{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"photos"}`, s3Body, s3Body, strings.Replace(s3Body, "0055", "0056", 1),
			} {
				must.Get(w.admin.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &w.url, MessageBody: &body}))(t)
			}
			time.Sleep(time.Hour)
			stop()
			if left := len(w.sqs.Messages(w.url)) + len(w.sqs.Messages(w.dlq)); runs.Load() != 2 || left != 0 {
				t.Errorf("%d runs, %d messages left, want 2 and none", runs.Load(), left)
			}
		})
	}
}

// A message that was rejected before dedup saw it keeps the ID in its body: its copy and the producer's second send are one
// event.
func TestRejectBeforeDedupKeepsTheID(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		for _, host := range []string{worker, function} {
			for name, body := range map[string]string{"CloudEvent in SNS": inSNS(cloudEventBody), "EventBridge": eventBridgeBody} {
				must.RunParallel(t, fmt.Sprintf("%s/%s/fifo=%t", name, host, fifo), func(t *testing.T) {
					w := newFixture(t, setup{fifo: fifo, visibility: 30 * time.Second, maxReceives: 3, quiet: true})
					once := must.Get(dedup.New(memstore.New(), consumer, func(o *dedup.Options) { o.Logger = w.log }))(t)
					var accepts atomic.Bool
					var runs atomic.Int64
					guarded := once.Handler(func(context.Context, *sqsonce.Message) error { runs.Add(1); return nil })
					stop := w.start(host, sqsonce.OpenEnvelope(func(ctx context.Context, m *sqsonce.Message) error {
						if !accepts.Load() {
							return sqsonce.Reject(errCard)
						}
						return guarded(ctx, m)
					}))
					send := func(dedupID string) {
						in := &sqs.SendMessageInput{QueueUrl: &w.url, MessageBody: aws.String(body)}
						if fifo {
							in.MessageGroupId, in.MessageDeduplicationId = aws.String("g"), &dedupID
						}
						must.Get(w.admin.sqs.SendMessage(t.Context(), in))(t)
					}
					send("1")
					time.Sleep(time.Hour)
					accepts.Store(true)
					w.redrive()
					send("2")
					time.Sleep(time.Hour)
					stop()
					if s := once.Stats(); runs.Load() != 1 || s.Completed != 1 {
						t.Errorf("%d runs, %d duplicates, want one of each", runs.Load(), s.Completed)
					}
				})
			}
		}
	}
}
