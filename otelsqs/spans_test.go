package otelsqs_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/granted"
	need "github.com/sqsonce/sqsonce/internal/must" // must is in the examples
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/otelsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

var update = flag.Bool("update", false, "write the golden files")

var errCard = errors.New("card refused")

// fixture is a queue in memory, in virtual time, and telemetry.
type fixture struct {
	*testing.T
	server *memsqs.Server
	sqs    *sqs.Client
	url    string
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
	tel    *otelsqs.Telemetry
	quiet  *slog.Logger
}

func newFixture(t *testing.T, queue string, optFns ...func(*otelsqs.Options)) *fixture {
	t.Helper()
	server := memsqs.New()
	t.Cleanup(server.Close)
	f := &fixture{T: t, server: server, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader(), quiet: slog.New(slog.DiscardHandler)}
	f.sqs = sqs.New(testaws.SQS(server).Options(), func(o *sqs.Options) {
		o.Region, o.BaseEndpoint = "eu-west-1", aws.String("https://sqs.eu-west-1.amazonaws.com")
	})
	f.url = f.create(queue, nil)
	f.tel = need.Get(otelsqs.New(append([]func(*otelsqs.Options){func(o *otelsqs.Options) {
		o.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(f.spans), sdktrace.WithSampler(sampler{t, sdktrace.AlwaysSample()}))
		o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(f.reader))
	}}, optFns...)...))(t)
	return f
}

// bubble runs a test beside the others, in virtual time.
func bubble(t *testing.T, queue string, test func(t *testing.T, f *fixture)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, newFixture(t, queue)) })
}

func (f *fixture) create(queue string, attrs map[string]string) (url string) {
	f.Helper()
	all := map[string]string{"VisibilityTimeout": "30"}
	maps.Copy(all, attrs)
	return testaws.Queue(f, f.sqs, queue, all)
}

// publish publishes events, without Publisher's spans in the golden file.
func (f *fixture) publish(ids ...string) {
	f.Helper()
	p := f.publisher()
	for _, id := range ids {
		need.Do(f, f.tryPublish(p, id))
	}
	need.Do(f, p.Close(context.Background()))
	f.spans.Reset()
}

// tryPublish publishes events at once.
func (f *fixture) tryPublish(p *fifo.Publisher, ids ...string) error {
	var events []fifo.Event
	for _, id := range ids {
		e := fifo.Event{ID: id, Body: "{}"}
		if strings.HasSuffix(f.url, ".fifo") {
			e.Group = "g"
		}
		events = append(events, e)
	}
	_, err := p.PublishAll(context.Background(), events)
	return err
}

func (f *fixture) publisher() *fifo.Publisher {
	f.Helper()
	return need.Get(fifo.NewPublisher(f.sqs, f.url, "shop", f.tel.Publisher, func(o *fifo.Options) { o.Logger = f.quiet }))(f)
}

// invoke runs a function with a message of each ID, all of which have the context of one producer.
func (f *fixture) invoke(h sqsonce.Handler, records ...events.SQSMessage) {
	f.Helper()
	call := need.Get(lambda.Wrap(h, f.tel.Lambda, func(o *lambda.Options) { o.Client, o.Logger = lambda.NoClient, f.quiet }))(f)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, _ = call(ctx, eventOf(records...)) // what fails is in the spans
}

func record(id, body string) events.SQSMessage {
	source := "shop"
	return events.SQSMessage{
		MessageId: id, Body: body, ReceiptHandle: "handle-" + id, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:orders",
		Attributes: map[string]string{
			"SentTimestamp": strconv.FormatInt(time.Now().Add(-2*time.Second).UnixMilli(), 10), "ApproximateReceiveCount": "1",
			"AWSTraceHeader": "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736;Parent=00f067aa0ba902b7;Sampled=1",
		},
		MessageAttributes: map[string]events.SQSMessageAttribute{
			"event-id": {DataType: "String", StringValue: &id}, "event-source": {DataType: "String", StringValue: &source},
		},
	}
}

// backoff is without chance.
func backoff(int) time.Duration { return 10 * time.Second }

// work runs a worker for a while.
func (f *fixture) work(d time.Duration, h sqsonce.Handler, optFns ...func(*sqsworker.Options)) {
	f.Helper()
	w := need.Get(sqsworker.New(f.sqs, f.url, h, append([]func(*sqsworker.Options){f.tel.Worker, func(o *sqsworker.Options) { o.Logger, o.Backoff = f.quiet, backoff }}, optFns...)...))(f)
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{9}, SpanID: trace.SpanID{9}}))
	_ = w.Run(ctx) // of a handler that never returns, whose span says so
}

func (f *fixture) once(optFns ...func(*dedup.Options)) *dedup.Once {
	return f.onceOn(memstore.New(), optFns...)
}

func (f *fixture) onceOn(s dedup.Store, optFns ...func(*dedup.Options)) *dedup.Once {
	f.Helper()
	return need.Get(dedup.New(s, "billing", append([]func(*dedup.Options){f.tel.Once, func(o *dedup.Options) { o.Logger = f.quiet }}, optFns...)...))(f)
}

// golden compares the spans with a file and with the conventions.
func (f *fixture) golden(name string) {
	f.Helper()
	spans := f.spans.GetSpans()
	for _, s := range spans {
		wantConventions(f.T, s)
	}
	compare(f.T, name, dump(spans))
}

// dump returns spans as text, in the order of their starts. IDs are numbers in the order of appearance.
func dump(spans tracetest.SpanStubs) string {
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	number := map[trace.SpanID]int{}
	traces := map[trace.TraceID]int{}
	name := func(sc trace.SpanContext) string {
		if number[sc.SpanID()] == 0 {
			number[sc.SpanID()] = len(number) + 1
		}
		if traces[sc.TraceID()] == 0 {
			traces[sc.TraceID()] = len(traces) + 1
		}
		return fmt.Sprintf("%d in trace %d", number[sc.SpanID()], traces[sc.TraceID()])
	}
	var b strings.Builder
	for _, s := range spans {
		name(s.SpanContext)
	}
	for _, s := range spans {
		fmt.Fprintf(&b, "%s %s: span %s, %s\n", s.SpanKind, s.Name, name(s.SpanContext), s.EndTime.Sub(s.StartTime))
		if s.Parent.IsValid() {
			fmt.Fprintf(&b, "  parent %s\n", name(s.Parent))
		}
		var links []string
		for _, l := range s.Links {
			links = append(links, name(l.SpanContext))
		}
		for _, link := range slices.Sorted(slices.Values(links)) {
			fmt.Fprintf(&b, "  link %s\n", link)
		}
		slices.SortFunc(s.Attributes, func(a, b attribute.KeyValue) int { return strings.Compare(string(a.Key), string(b.Key)) })
		for _, a := range s.Attributes {
			value := a.Value.String()
			if a.Key == "messaging.message.id" {
				value = "ID"
			}
			fmt.Fprintf(&b, "  %s=%s\n", a.Key, value)
		}
		for _, e := range s.Events {
			fmt.Fprintf(&b, "  event %s %v\n", e.Name, e.Attributes)
		}
		if s.Status.Code != 0 {
			fmt.Fprintf(&b, "  status %s %q\n", s.Status.Code, s.Status.Description)
		}
	}
	return b.String()
}

// takes returns a handler that fails with each of the errors in turn, and then succeeds. It ends with its context.
func takes(d time.Duration, errs ...error) sqsonce.Handler {
	var runs atomic.Int64
	return func(ctx context.Context, _ *sqsonce.Message) error {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if n := int(runs.Add(1)); n <= len(errs) {
			return errs[n-1]
		}
		return nil
	}
}

// failing is a store some of whose calls fail.
type failing struct {
	dedup.Store
	acquire, renew, complete error
}

func (s failing) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	if s.acquire != nil {
		return dedup.Grant{}, s.acquire
	}
	return s.Store.Acquire(ctx, c)
}

func (s failing) Renew(ctx context.Context, l dedup.Lease, d time.Duration) (dedup.Lease, error) {
	if s.renew != nil {
		return dedup.Lease{}, s.renew
	}
	return s.Store.Renew(ctx, l, d)
}

func (s failing) Complete(ctx context.Context, l dedup.Lease, r dedup.Result) error {
	if s.complete != nil {
		return s.complete
	}
	return s.Store.Complete(ctx, l, r)
}

// leased returns a store in which another owner has the record of event 1.
func (f *fixture) leased(d time.Duration) dedup.Store {
	f.Helper()
	store := memstore.New()
	need.Get(granted.Lease(store.Acquire(f.Context(), dedup.Claim{Key: "billing#shop|1", Owner: "other", Lease: d, Retention: time.Hour})))(f)
	return store
}

func TestSpans(t *testing.T) {
	t.Parallel()
	quick := 50 * time.Millisecond
	testSpans(t, "", map[string]func(f *fixture){
		"publisher": func(f *fixture) {
			p := f.publisher()
			f.server.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Nth: 1, Do: fault.FailEntries, Entries: []int{1}, Code: "InvalidMessageContents"}}})
			if f.tryPublish(p, "1", "2", "") == nil {
				f.Error("two events of three were to fail")
			}
		},
		"first":     func(f *fixture) { f.publish("1"); f.work(5*time.Second, f.once().Handler(takes(quick))) },
		"duplicate": func(f *fixture) { f.publish("1", "1"); f.work(5*time.Second, f.once().Handler(takes(quick))) },
		"duplicate of another process": func(f *fixture) {
			f.publish("1", "1")
			f.work(5*time.Second, f.once(func(o *dedup.Options) { o.CacheSize = -1 }).Handler(takes(quick)), func(o *sqsworker.Options) { o.Concurrency = 1 })
		},
		"in progress": func(f *fixture) {
			f.publish("1")
			f.work(time.Second, f.onceOn(f.leased(time.Minute)).Handler(takes(quick)))
		},
		"crashed": func(f *fixture) {
			store := f.leased(time.Second)
			time.Sleep(10 * time.Second)
			f.publish("1")
			f.work(5*time.Second, f.onceOn(store).Handler(takes(quick)))
		},
		"store away": func(f *fixture) {
			f.publish("1")
			f.work(500*time.Millisecond, f.onceOn(failing{Store: memstore.New(), acquire: sqsonce.Unavailable(errCard)}).Handler(takes(quick)))
		},
		"renewals fail": func(f *fixture) {
			f.publish("1")
			f.work(5*time.Second, f.onceOn(failing{Store: memstore.New(), renew: sqsonce.Unavailable(errCard)}, func(o *dedup.Options) { o.LeaseDuration = time.Second }).Handler(takes(3*time.Second)))
		},
		"taken over meanwhile": func(f *fixture) {
			f.publish("1")
			store := failing{Store: memstore.New(), renew: sqsonce.ErrLeaseLost}
			f.work(5*time.Second, f.onceOn(store, func(o *dedup.Options) { o.LeaseDuration = 3 * time.Second }).Handler(takes(3*time.Second)))
		},
		"visibility lost": func(f *fixture) {
			f.publish("1")
			f.server.Set(fault.Plan{Rules: []fault.Rule{{Op: "ChangeMessageVisibilityBatch", Nth: 1, Do: fault.FailEntries, Code: "ReceiptHandleIsInvalid"}}})
			f.work(20*time.Second, f.once().Handler(takes(time.Hour)))
		},
		"long": func(f *fixture) { f.publish("1"); f.work(time.Minute, f.once().Handler(takes(16*time.Second))) },
		"retry": func(f *fixture) {
			f.publish("1")
			f.work(30*time.Second, f.once().Handler(takes(quick, sqsonce.RetryAfter(2*time.Second, errCard))))
		},
		"retry.fifo": func(f *fixture) {
			f.publish("1")
			f.work(30*time.Second, f.once().Handler(takes(quick, sqsonce.RetryAfter(2*time.Second, errCard))))
		},
		"panic": func(f *fixture) {
			f.publish("1")
			f.work(5*time.Second, f.once().Handler(func(context.Context, *sqsonce.Message) error { panic("oops") }))
		},
		"timeout": func(f *fixture) {
			f.publish("1")
			f.work(5*time.Second, f.once().Handler(takes(time.Minute)), func(o *sqsworker.Options) {
				o.Timeout = func(*sqsonce.Message) time.Duration { return time.Second }
			})
		},
		"shutdown": func(f *fixture) {
			f.publish("1")
			f.work(5*time.Second, f.once().Handler(takes(time.Hour)), func(o *sqsworker.Options) { o.StopTimeout = -1 })
		},
		"abandoned": func(f *fixture) {
			f.publish("1")
			f.work(5*time.Second, func(context.Context, *sqsonce.Message) error { time.Sleep(time.Hour); return nil },
				func(o *sqsworker.Options) { o.StopTimeout = -1 })
			time.Sleep(2 * time.Hour) // the handler returns, and changes nothing
		},
		"rejected": func(f *fixture) {
			f.publish("1")
			dead := f.create("orders-dlq", nil)
			f.work(5*time.Second, f.once().Handler(takes(quick, sqsonce.Reject(errCard))), func(o *sqsworker.Options) { o.DeadLetterQueue = dead })
		},
		"rejected and not sent": func(f *fixture) {
			f.publish("1")
			dead := f.create("orders-dlq", nil)
			f.server.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessage", Prob: 1, Do: fault.Error, Code: "AccessDenied"}}})
			reject := sqsonce.Reject(errCard)
			f.work(30*time.Second, f.once().Handler(takes(quick, reject, reject)), func(o *sqsworker.Options) { o.DeadLetterQueue = dead })
		},
		"batch": func(f *fixture) {
			p := f.publisher() // of two messages that do not differ; the worker begins with another one
			need.Do(f, errors.Join(f.tryPublish(p, "1"), f.tryPublish(p, "2", "3"), p.Close(context.Background())))
			f.spans.Reset()
			h := sqsonce.Batch(func(_ context.Context, ms []*sqsonce.Message) []error {
				time.Sleep(quick)
				return slices.Repeat([]error{sqsonce.Skip("void")}, len(ms)) // a success
			}, f.tel.Batch, func(o *sqsonce.BatchOptions) { o.Size = 2 })
			f.work(5*time.Second, f.once().Handler(h))
		},
	})
}

// testSpans compares the spans of each run with a file.
func testSpans(t *testing.T, prefix string, runs map[string]func(f *fixture)) {
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				queue := "orders"
				if strings.HasSuffix(name, ".fifo") {
					queue = "orders.fifo"
				}
				f := newFixture(t, queue)
				run(f)
				f.golden(prefix + strings.ReplaceAll(name, " ", "-"))
			})
		})
	}
}

func eventOf(records ...events.SQSMessage) events.SQSEvent { return events.SQSEvent{Records: records} }
