package coexist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.opentelemetry.io/contrib/instrumentation/github.com/aws/aws-lambda-go/otellambda"

	//lint:ignore SA1019 no longer supported, and used all the same
	"go.opentelemetry.io/contrib/instrumentation/github.com/aws/aws-sdk-go-v2/otelaws"
	"go.opentelemetry.io/contrib/propagators/aws/xray"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/otelsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// program is a program with all instrumentation. The clients sqs and dynamodb have otelaws, those of stack do not.
type program struct {
	*testing.T
	stack    *localstack.Stack
	url      string
	sqs      *sqs.Client
	dynamodb *dynamodb.Client
	spans    *tracetest.InMemoryExporter
	traces   *sdktrace.TracerProvider
	tel      *otelsqs.Telemetry
}

// service is the resource of spans and metrics.
var service = resource.NewSchemaless(semconv.ServiceName("billing"))

func newProgram(t *testing.T, optFns ...func(*otelsqs.Options)) *program {
	t.Helper()
	stack := must.Get(localstack.Start(context.Background(), func(o *localstack.Options) {
		o.Queues, o.Tables = []localstack.Queue{{Name: "orders"}}, []string{"dedup", "stock"}
	}))(t)
	t.Cleanup(func() { must.Do(t, stack.Close(context.Background())) })
	p := &program{T: t, stack: stack, url: stack.QueueURL["orders"], spans: tracetest.NewInMemoryExporter()}
	p.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(p.spans), sdktrace.WithResource(service))
	instrument := []otelaws.Option{otelaws.WithTracerProvider(p.traces), otelaws.WithTextMapPropagator(xray.Propagator{})}
	p.sqs = sqs.New(stack.SQS.Options(), func(o *sqs.Options) { otelaws.AppendMiddlewares(&o.APIOptions, instrument...) })
	p.dynamodb = dynamodb.New(stack.DynamoDB.Options(), func(o *dynamodb.Options) { otelaws.AppendMiddlewares(&o.APIOptions, instrument...) })
	p.tel = must.Get(otelsqs.New(append(optFns, func(o *otelsqs.Options) { o.TracerProvider = p.traces })...))(t)
	return p
}

// publish publishes an event of each ID in a span of the program.
func (p *program) publish(ids ...string) {
	p.Helper()
	publisher := must.Get(fifo.NewPublisher(p.sqs, p.url, "shop", p.tel.Publisher))(p)
	ctx, span := p.traces.Tracer("program").Start(context.Background(), "checkout")
	var all []fifo.Event
	for _, id := range ids {
		all = append(all, fifo.Event{ID: id, Body: id})
	}
	_, err := publisher.PublishAll(ctx, all)
	must.Do(p, errors.Join(err, publisher.Close(ctx)))
	span.End()
}

// handler makes a call of the program's own. Its records are in store's table.
func (p *program) handler(store dynamostore.Client) sqsonce.Handler {
	p.Helper()
	s := must.Get(dynamostore.New(store, "dedup"))(p)
	once := must.Get(dedup.New(s, "billing", p.tel.Once))(p)
	return once.Handler(func(ctx context.Context, m *sqsonce.Message) error {
		if m.Body == "bad" {
			return sqsonce.Reject(errors.New("no such order"))
		}
		_, err := p.dynamodb.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: aws.String("stock"), Key: map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: m.ID}},
		})
		return err
	})
}

func (p *program) work(ctx context.Context, client *sqs.Client, h sqsonce.Handler) {
	p.Helper()
	w := must.Get(sqsworker.New(client, p.url, h, p.tel.Worker, func(o *sqsworker.Options) { o.WaitTime = time.Second }))(p)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	must.Do(p, w.Run(ctx))
}

// receive returns the queue's messages as an event of Lambda.
func (p *program) receive(url string) (e events.SQSEvent) {
	p.Helper()
	out := must.Get(p.stack.SQS.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
	}))(p)
	for _, m := range out.Messages {
		r := events.SQSMessage{
			MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes, EventSource: "aws:sqs",
			EventSourceARN: "arn:aws:sqs:us-east-1:000000000000:orders", MessageAttributes: map[string]events.SQSMessageAttribute{},
		}
		for name, a := range m.MessageAttributes {
			r.MessageAttributes[name] = events.SQSMessageAttribute{StringValue: a.StringValue, BinaryValue: a.BinaryValue, DataType: *a.DataType}
		}
		e.Records = append(e.Records, r)
	}
	return e
}

// tree returns the spans below one another, with the module that made each, and the spans that it links to.
func (p *program) tree() string {
	spans := p.spans.GetSpans()
	names := map[trace.SpanID]string{}
	for _, s := range spans {
		names[s.SpanContext.SpanID()] = s.Name
	}
	var below func(parent trace.SpanID, indent string) string
	below = func(parent trace.SpanID, indent string) string {
		var children []string
		for _, s := range spans {
			if s.Parent.SpanID() != parent {
				continue
			}
			text := fmt.Sprintf("%s%s (%s, %s)", indent, s.Name, s.SpanKind, path.Base(s.InstrumentationScope.Name))
			for _, l := range s.Links {
				text += " -> " + names[l.SpanContext.SpanID()]
			}
			children = append(children, text+"\n"+below(s.SpanContext.SpanID(), indent+"  "))
		}
		slices.Sort(children)
		return strings.Join(children, "")
	}
	return below(trace.SpanID{}, "")
}

func (p *program) want(tree string) {
	p.Helper()
	if got := p.tree(); got != tree[1:] {
		p.Errorf("spans:\n%swant:%s", got, tree)
	}
}

// TestWorker: with otelaws on the clients of the handler and of the publisher, every span is made once and is below what caused it.
func TestWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		p.publish("1", "2")
		ctx, span := p.traces.Tracer("program").Start(context.Background(), "main") // which no message is part of
		p.work(ctx, p.stack.SQS, p.handler(p.stack.DynamoDB))
		span.End()
		p.want(`
checkout (internal, program)
  create orders (producer, otelsqs)
  create orders (producer, otelsqs)
main (internal, program)
process orders (consumer, otelsqs) -> create orders
  DynamoDB.GetItem (client, otelaws)
process orders (consumer, otelsqs) -> create orders
  DynamoDB.GetItem (client, otelaws)
send orders (client, otelsqs) -> create orders -> create orders
  SQS.SendMessageBatch (client, otelaws)
`)
	})
}

// TestFunction: the batch's span is a child of otellambda's, and the host's own calls are below it. What it sends to the dead-letter
// queue keeps the publisher's context.
func TestFunction(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "billing")
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		p.publish("1", "bad")
		f := must.Get(lambda.NewHandler(p.handler(p.stack.DynamoDB), p.tel.Lambda, func(o *lambda.Options) { o.Client = p.sqs }))(t)
		h := otellambda.WrapHandler(f, otellambda.WithTracerProvider(p.traces))
		payload := must.Get(json.Marshal(p.receive(p.url)))(t)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		answer, err := h.Invoke(lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{}), payload)
		if err != nil || string(answer) != `{"batchItemFailures":[]}` {
			t.Errorf("answer %s, %v", answer, err)
		}
		p.want(`
billing (server, otellambda)
  process orders (consumer, otelsqs) -> create orders -> create orders
    SQS.GetQueueAttributes (client, otelaws)
    SQS.GetQueueUrl (client, otelaws)
    SQS.GetQueueUrl (client, otelaws)
    SQS.SendMessage (client, otelaws)
    process orders (consumer, otelsqs) -> create orders
    process orders (consumer, otelsqs) -> create orders
      DynamoDB.GetItem (client, otelaws)
checkout (internal, program)
  create orders (producer, otelsqs)
  create orders (producer, otelsqs)
send orders (client, otelsqs) -> create orders -> create orders
  SQS.SendMessageBatch (client, otelaws)
`)
		dead := p.receive(p.stack.QueueURL["orders-dlq"])
		if got := p.contexts(dead.Records[0]); got != "create orders" {
			t.Errorf("the dead-letter copy has the context of %q, want create orders", got)
		}
	})
}

// TestOtelawsEverywhere: on a worker's client of SQS each call is a root, and on the store's client each batch. The other spans are as
// they would be without.
func TestOtelawsEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		p.publish("1", "2", "3", "4", "5", "6", "7", "8", "9", "10")
		p.spans.Reset()
		p.work(context.Background(), p.sqs, p.handler(p.dynamodb))
		tree := "\n" + p.tree()
		for line, want := range map[string]int{
			"otelsqs": 10, "\nprocess orders (consumer, otelsqs)": 10, "DynamoDB.GetItem": 10, " -> \n  DynamoDB.GetItem (client, otelaws)": 10,
		} {
			if n := strings.Count(tree, line); n != want {
				t.Errorf("%d times %q, want %d:%s", n, line, want, tree)
			}
		}
	})
}

// TestContextOfTheMessage: SQS takes the request's header for messages that have no AWSTraceHeader, and otelaws sets it. The events of
// a publisher keep their own.
func TestContextOfTheMessage(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(*otelsqs.Options)
		want string
	}{
		"create spans":    {func(*otelsqs.Options) {}, "create orders"},
		"no create spans": {func(o *otelsqs.Options) { o.NoCreateSpans = true }, "checkout"},
		"no traceparent":  {func(o *otelsqs.Options) { o.NoTraceParent = true }, "create orders"},
	} {
		must.Run(t, name, func(t *testing.T) {
			p := newProgram(t, test.set)
			p.publish("1", "2")
			plain := &sqs.SendMessageInput{QueueUrl: &p.url, MessageBody: aws.String("plain")}
			must.Get(p.sqs.SendMessage(context.Background(), plain))(t)
			for _, r := range p.receive(p.url).Records {
				want := test.want
				if r.Body == "plain" {
					want = "SQS.SendMessage"
				}
				if got := p.contexts(r); got != want {
					t.Errorf("the message %s has the context of %q, want %s", r.Body, got, want)
				}
			}
		})
	}
}

// contexts returns the names of the spans whose context a message has.
func (p *program) contexts(r events.SQSMessage) string {
	var names []string
	for _, c := range p.tel.Extract(lambda.MessageOf(r)) {
		for _, s := range p.spans.GetSpans() {
			if s.SpanContext.SpanID() == c.SpanID() {
				names = append(names, s.Name)
			}
		}
	}
	return strings.Join(names, ", ")
}
