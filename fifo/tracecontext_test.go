package fifo_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

const (
	traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	traceState  = "congo=t61rcWkgMzE"
	traceHeader = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"

	// parentBytes and stateBytes are what the attributes add to a message.
	parentBytes = len("traceparent") + len("String") + len(traceParent)
	stateBytes  = len("tracestate") + len("String") + len(traceState)
)

var allContext = fifo.Carry{TraceHeader: traceHeader, TraceParent: traceParent, TraceState: traceState}

func carrying(cs ...fifo.Carry) func(*fifo.Options) {
	return func(o *fifo.Options) {
		for _, c := range cs {
			o.Hooks = append(o.Hooks, fifo.Hooks{Accept: func(ctx context.Context, _ fifo.Acceptance) (context.Context, fifo.Carry) { return ctx, c }})
		}
	}
}

// carriedBy returns the trace context of the last message that was sent for the event.
func (x *fixture) carriedBy(id string) (c fifo.Carry) {
	x.sent.mu.Lock()
	defer x.sent.mu.Unlock()
	m := x.sent.sent[id]
	text := func(name string) string {
		if a := m.MessageAttributes[name]; a.StringValue != nil {
			return *a.StringValue
		}
		return ""
	}
	c.TraceParent, c.TraceState = text("traceparent"), text("tracestate")
	if a := m.MessageSystemAttributes["AWSTraceHeader"]; a.StringValue != nil {
		c.TraceHeader = *a.StringValue
	}
	return c
}

// withAttributes returns an event whose message has n attributes without those of the hooks.
func withAttributes(n int, eventType string) fifo.Event {
	e := event("g", n)
	e.Type = eventType
	e.Attributes = map[string]sqsonce.Attribute{}
	if n -= 2; eventType != "" {
		n--
	}
	for i := range n {
		e.Attributes[fmt.Sprint("a", i)] = sqsonce.Attribute{Type: "String", String: "v"}
	}
	return e
}

// What is carried gives way to the event, to the limits of SQS, and to what SQS would refuse.
func TestCarry(t *testing.T) {
	t.Parallel()
	parentOnly := fifo.Carry{TraceHeader: traceHeader, TraceParent: traceParent}
	headerOnly := fifo.Carry{TraceHeader: traceHeader}
	own := func(name string) fifo.Event {
		e := event("g", 1)
		e.Attributes = map[string]sqsonce.Attribute{name: {Type: "String", String: "own"}}
		return e
	}
	ownHeader := event("g", 1)
	ownHeader.TraceHeader = "Root=own"
	for _, tt := range []struct {
		name  string
		event fifo.Event
		carry []fifo.Carry
		want  fifo.Carry
	}{
		{"nothing", event("g", 1), []fifo.Carry{{}}, fifo.Carry{}},
		{"all", event("g", 1), []fifo.Carry{allContext}, allContext},
		{"a header with more", event("g", 1), []fifo.Carry{{TraceHeader: "Self=1-5759e988-0;Root=1-5759e988-bd862e3fe1be46a994272793;Lineage=a:1|b:2"}},
			fifo.Carry{TraceHeader: "Self=1-5759e988-0;Root=1-5759e988-bd862e3fe1be46a994272793;Lineage=a:1|b:2"}},
		{"a state without a parent", event("g", 1), []fifo.Carry{{TraceState: traceState}}, fifo.Carry{}},
		{"8 attributes", withAttributes(8, ""), []fifo.Carry{allContext}, allContext},
		{"9 attributes", withAttributes(9, ""), []fifo.Carry{allContext}, parentOnly},
		{"8 attributes and a type", withAttributes(9, "created"), []fifo.Carry{allContext}, parentOnly},
		{"10 attributes", withAttributes(10, "created"), []fifo.Carry{allContext}, headerOnly},
		{"own header", ownHeader, []fifo.Carry{allContext}, fifo.Carry{TraceHeader: "Root=own", TraceParent: traceParent, TraceState: traceState}},
		{"own parent", own("traceparent"), []fifo.Carry{allContext}, fifo.Carry{TraceHeader: traceHeader, TraceParent: "own"}},
		{"own state", own("tracestate"), []fifo.Carry{allContext}, fifo.Carry{TraceHeader: traceHeader, TraceState: "own"}},
		{"not X-Ray's header", event("g", 1), []fifo.Carry{{TraceHeader: "Root=1-x", TraceParent: traceParent}}, fifo.Carry{TraceParent: traceParent}},
		{"a header that is no text", event("g", 1), []fifo.Carry{{TraceHeader: "Self=\xff;" + traceHeader}}, fifo.Carry{}},
		{"a parent that is no text", event("g", 1), []fifo.Carry{{TraceParent: "\x00", TraceState: traceState}}, fifo.Carry{}},
		{"a state that is no text", event("g", 1), []fifo.Carry{{TraceParent: traceParent, TraceState: "\xff"}}, fifo.Carry{TraceParent: traceParent}},
		{"two hooks", event("g", 1), []fifo.Carry{{TraceParent: "first"}, allContext}, fifo.Carry{TraceHeader: traceHeader, TraceParent: "first"}},
	} {
		for _, queue := range []string{orders, standard} {
			runIn(t, tt.name+" "+queue, queue, func(x *fixture) {
				must.Get(x.publisher(carrying(tt.carry...)).Publish(x.Context(), tt.event))(x)
				x.expect("carried", tt.want, x.carriedBy(tt.event.ID))
			})
		}
	}
}

// At the queue's longest message, and at 1 KiB while that is not known, attributes are left out one after the other, and the event
// is sent.
func TestCarryAtTheLongestMessage(t *testing.T) {
	t.Parallel()
	parentOnly := fifo.Carry{TraceHeader: traceHeader, TraceParent: traceParent}
	headerOnly := fifo.Carry{TraceHeader: traceHeader}
	for _, tt := range []struct {
		name  string
		attrs map[string]string
		known bool
		room  int
		most  int // of an event
	}{
		{"the queue's", map[string]string{"MaximumMessageSize": "2048"}, true, 2048, 2048},
		{"SQS's", nil, true, mebibyte, mebibyte},
		{"the smallest of a queue", map[string]string{"MaximumMessageSize": "1024"}, true, 1024, 1024},
		{"not known", map[string]string{"MaximumMessageSize": "2048"}, false, 1024, 2048},
	} {
		runIn(t, tt.name, "unused", func(x *fixture) {
			x.url = testaws.Queue(x, x.sqs, orders, tt.attrs)
			p := must.Get(fifo.NewPublisher(limitClient{x.sent, tt.known}, x.url, "orders", carrying(allContext)))(x)
			_, _ = p.Publish(x.Context(), sized("first", 1025)) // has the limit read
			time.Sleep(time.Second)
			for bytes, want := range map[int]fifo.Carry{
				tt.room - parentBytes - stateBytes - 1: allContext,
				tt.room - parentBytes - stateBytes:     allContext,
				tt.room - parentBytes - stateBytes + 1: parentOnly,
				tt.room - parentBytes - 1:              parentOnly,
				tt.room - parentBytes:                  parentOnly,
				tt.room - parentBytes + 1:              headerOnly,
				tt.most - 1:                            headerOnly,
				tt.most:                                headerOnly,
			} {
				e := sized(fmt.Sprint("g", bytes), bytes)
				if _, err := p.Publish(x.Context(), e); err != nil {
					x.Errorf("%d bytes: %v", bytes, err)
				}
				if diff := cmp.Diff(want, x.carriedBy(e.ID)); diff != "" {
					x.Errorf("%d bytes, carried (-want +got):\n%s", bytes, diff)
				}
			}
			if _, err := p.Publish(x.Context(), sized("h", tt.most+1)); tt.known == (len(testaws.Fields(err)) == 0) {
				x.Errorf("%d bytes: %v", tt.most+1, err)
			}
		})
	}
}

// limitClient may not read the queue's limit.
type limitClient struct {
	fifo.Client
	may bool
}

func (c limitClient) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, optFns ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if !c.may {
		return nil, errCancelled
	}
	return c.Client.GetQueueAttributes(ctx, in, optFns...)
}

// What is carried counts in a request, which may have 1 MiB.
func TestCarryCountsInARequest(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(carrying(allContext), func(o *fifo.Options) {
			o.Hooks = append(o.Hooks, fifo.Hooks{Send: func(ctx context.Context, s fifo.Send) (context.Context, func(fifo.SendResult)) {
				if s.Bytes > mebibyte {
					x.Errorf("a request of %d bytes", s.Bytes)
				}
				return ctx, nil
			}})
		})
		_, _ = p.Publish(x.Context(), sized("first", 1025))
		time.Sleep(time.Minute)
		// Two events fill a request but for its margin of 4 KiB.
		half := mebibyte/2 - 2048
		for _, less := range []int{parentBytes + stateBytes, 0} {
			es := []fifo.Event{sized(fmt.Sprint("g", less), half-less), sized(fmt.Sprint("h", less), half-less)}
			before := len(x.sizes())
			must.Get(p.PublishAll(x.Context(), es))(x)
			if got, want := len(x.sizes())-before, map[bool]int{true: 1, false: 2}[less > 0]; got != want {
				x.Errorf("events of half a request, less %d bytes: %d requests, want %d", less, got, want)
			}
		}
	})
}

// Every attempt of an event carries the same, and an event that is published again within the window is the same event whatever
// it carries: SQS drops the copy.
func TestCarryOfARepeatedEvent(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		n := 0
		p := x.publisher(func(o *fifo.Options) {
			o.Hooks = []fifo.Hooks{{Accept: func(ctx context.Context, _ fifo.Acceptance) (context.Context, fifo.Carry) {
				n++
				return ctx, fifo.Carry{TraceParent: fmt.Sprint("parent ", n)}
			}}}
		})
		var first string
		for range 2 {
			r, err := p.Publish(x.Context(), event("g", 1)) // the recorder compares the attempts
			if err != nil {
				x.Fatal(err)
			}
			if first == "" {
				first = r.Sequence
			} else if r.Sequence != first {
				x.Errorf("sequence %s, want that of the first one, %s", r.Sequence, first)
			}
			x.sent.forget()
		}
		must.Get(p.PublishAll(x.Context(), []fifo.Event{event("g", 1)}))(x)
		x.sent.forget()
		if ms := x.srv.Messages(x.url); len(ms) != 1 || ms[0].Attributes["traceparent"] != "parent 1" || x.sent.attemptsOf("g/v1") != 5 {
			x.Errorf("%d attempts, queue has %+v, want one message of 5 attempts, with the parent of the first", x.sent.attemptsOf("g/v1"), ms)
		}
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Times: 2, Do: fault.LoseReply})
}

// OnFailure gets the event as it was published: its caller may publish it again.
func TestFailedEventIsWithoutCarry(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		var failed fifo.Event
		p := x.publisher(carrying(allContext), func(o *fifo.Options) {
			o.OnFailure = func(e fifo.Event, _ *fifo.PublishError) { failed = e }
		})
		e := event("g", 1)
		_, _ = p.Publish(x.Context(), e)
		synctest.Wait()
		if diff := cmp.Diff(e, failed); diff != "" || !strings.HasPrefix(x.carriedBy(e.ID).TraceParent, "00-") {
			x.Errorf("the failed event (-want +got):\n%s", diff)
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Error, Code: "AccessDenied"})
}
