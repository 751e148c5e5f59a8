package otelsqs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	need "github.com/sqsonce/sqsonce/internal/must" // must is in the examples
)

// consumers are the hosts: each handles the messages of a queue for a while.
var consumers = map[string]func(f *fixture, d time.Duration, h sqsonce.Handler){
	"worker":   func(f *fixture, d time.Duration, h sqsonce.Handler) { f.work(d, h) },
	"function": func(f *fixture, d time.Duration, h sqsonce.Handler) { f.mapped(d, h) },
}

// wantLinks checks the spans of n handlers, and begins anew.
func (f *fixture) wantLinks(when string, n int, links ...string) {
	f.Helper()
	for _, s := range f.spans.GetSpans() {
		if !strings.Contains(fmt.Sprint(s.Attributes), "messaging.message.id") {
			continue // of the batch
		}
		var got []string
		for _, l := range s.Links {
			got = append(got, l.SpanContext.TraceID().String()+"-"+l.SpanContext.SpanID().String())
		}
		if n--; fmt.Sprint(got) != fmt.Sprint(links) {
			f.Errorf("%s: links %v, want %v", when, got, links)
		}
	}
	if n != 0 {
		f.Errorf("%s: %d handlers missed", when, n)
	}
	f.spans.Reset()
}

// A handler's span links to the publisher's, also behind the dead-letter queue and a redrive: of a message that was rejected, whose
// copy is another message, and of one that SQS moved.
func TestLinksOnTheWholeWay(t *testing.T) {
	t.Parallel()
	for host, consume := range consumers {
		for name, failure := range map[string]error{"rejected": sqsonce.Reject(errCard), "moved by SQS": sqsonce.RetryAfter(time.Second, errCard)} {
			for _, attributes := range []int{0, 7} { // seven leave no room for traceparent
				t.Run(fmt.Sprint(host, " ", name, " ", attributes), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						f := newFixture(t, "orders")
						dead := f.create("orders-dlq", nil)
						f.set(f.url, "RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:orders-dlq","maxReceiveCount":2}`)
						e := fifo.Event{ID: "1", Body: "{}", Type: "paid", Attributes: map[string]sqsonce.Attribute{}}
						for i := range attributes {
							e.Attributes[fmt.Sprint("a", i)] = sqsonce.Attribute{Type: "String", String: "x"}
						}
						p := f.publisher()
						need.Get(p.Publish(context.Background(), e))(t)
						need.Do(t, p.Close(context.Background()))
						created := ""
						for _, s := range f.spans.GetSpans() {
							if s.SpanKind == trace.SpanKindProducer {
								created = s.SpanContext.TraceID().String() + "-" + s.SpanContext.SpanID().String()
							}
						}
						f.spans.Reset()
						// One delivery that is rejected, or two that fail; the third receive moves the message.
						runs := 1
						if name != "rejected" {
							runs = 2
						}
						consume(f, 20*time.Second, f.once().Handler(takes(0, failure, failure)))
						f.wantLinks("at first", runs, created)
						atDead := *f
						atDead.url = dead
						consume(&atDead, 10*time.Second, takes(0, sqsonce.RetryAfter(time.Hour, errCard)))
						f.wantLinks("in the dead-letter queue", 1, created)
						time.Sleep(2 * time.Hour)
						need.Get(f.sqs.StartMessageMoveTask(context.Background(), &sqs.StartMessageMoveTaskInput{
							SourceArn: aws.String("arn:aws:sqs:us-east-1:000000000000:orders-dlq"), DestinationArn: aws.String("arn:aws:sqs:us-east-1:000000000000:orders"),
						}))(t)
						time.Sleep(time.Minute)
						consume(f, 10*time.Second, f.once().Handler(takes(0)))
						f.wantLinks("after the redrive", 1, created)
					})
				})
			}
		}
	}
}

func (f *fixture) set(url, attribute, value string) {
	f.Helper()
	need.Get(f.sqs.SetQueueAttributes(context.Background(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{attribute: value}}))(f)
}

// Whatever other producers send, a message is handled as without it. [TestExtract] has what is read of it.
func TestForeignProducers(t *testing.T) {
	t.Parallel()
	const (
		one    = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"
		other  = "5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8"
		parent = "00-" + one + "-01"
		header = "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736;Parent=00f067aa0ba902b7;Sampled=1"
	)
	for host, consume := range consumers {
		for name, tt := range map[string]struct {
			parent, header string
			want           []string
		}{
			"both, of two":       {parent, "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0", []string{one, other}},
			"malformed":          {parent[1:], header[1:], nil},
			"1 KB with a parent": {"", header + strings.Repeat(";Self=1", 134), []string{one}},
		} {
			t.Run(host+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t, "orders")
					in := &sqs.SendMessageInput{
						QueueUrl: &f.url, MessageBody: aws.String("{}"), MessageAttributes: map[string]sqstypes.MessageAttributeValue{},
						MessageSystemAttributes: map[string]sqstypes.MessageSystemAttributeValue{},
					}
					for name, value := range map[string]string{sqsonce.AttrEventID: "1", sqsonce.AttrEventSource: "shop", "traceparent": tt.parent} {
						if value != "" {
							in.MessageAttributes[name] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
						}
					}
					if tt.header != "" {
						in.MessageSystemAttributes["AWSTraceHeader"] = sqstypes.MessageSystemAttributeValue{DataType: aws.String("String"), StringValue: aws.String(tt.header)}
					}
					need.Get(f.sqs.SendMessage(context.Background(), in))(t)
					consume(f, 30*time.Second, f.once().Handler(takes(0)))
					for _, s := range f.spans.GetSpans() {
						if s.Status.Code != 0 {
							t.Errorf("%s: %v", s.Name, s.Status)
						}
					}
					f.wantLinks(name, 1, tt.want...)
				})
			})
		}
	}
}
