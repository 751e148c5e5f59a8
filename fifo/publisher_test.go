package fifo_test

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestPublishSendsTheEvent(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		binary := []byte{0, 1}
		attributes := map[string]sqsonce.Attribute{
			"amount": {Type: "Number.cents", String: "700"},
			"blob":   {Type: "Binary", Binary: binary},
		}
		p := x.publisher()
		pending := must.Get(p.Enqueue(x.Context(), fifo.Event{
			ID: "ord-42/v3", Group: "ord-42", Type: "created", Body: "{}", TraceHeader: "Root=1-5e1b4151-5ac6c58f5b5dbd2f9ee0a7ce",
			Attributes: attributes,
		}))(x)
		clear(attributes) // they were copied when the event was accepted
		binary[0] = 9
		receipt := must.Get(pending.Get(x.Context()))(x)

		got := x.receive(x.url, 1)[0]
		want := fifo.Receipt{
			MessageID: *got.MessageId, Sequence: got.Attributes["SequenceNumber"], DedupID: "orders|ord-42/v3", Attempts: 1,
		}
		x.expect("receipt", want, receipt)
		if g, d := got.Attributes["MessageGroupId"], got.Attributes["MessageDeduplicationId"]; g != "ord-42" || d != "orders|ord-42/v3" {
			x.Errorf("group %q and dedup ID %q, want ord-42 and orders|ord-42/v3", g, d)
		}
		if tr := got.Attributes["AWSTraceHeader"]; tr != "Root=1-5e1b4151-5ac6c58f5b5dbd2f9ee0a7ce" {
			x.Errorf("trace header %q", tr)
		}
		m := message(x.url, got)
		wantAttributes := map[string]sqsonce.Attribute{
			"event-id":     {Type: "String", String: "ord-42/v3"},
			"event-source": {Type: "String", String: "orders"},
			"event-type":   {Type: "String", String: "created"},
			"amount":       {Type: "Number.cents", String: "700"},
			"blob":         {Type: "Binary", Binary: []byte{0, 1}},
		}
		x.expect("attributes", wantAttributes, m.Attributes)
		x.expectIdle(p)
	})
}

func TestBatching(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		groups, each int
		opts         fifo.Options
		sizes        []int
		took         time.Duration
		queue        string
	}{
		{name: "ten groups fill a request", groups: 10, each: 1, sizes: []int{10}},
		{name: "the others linger", groups: 12, each: 1, sizes: []int{10, 2}, took: 10 * time.Millisecond},
		{name: "one lingers", groups: 1, each: 1, sizes: []int{1}, took: 10 * time.Millisecond},
		{name: "own linger", groups: 2, each: 1, opts: fifo.Options{Linger: time.Second}, sizes: []int{2}, took: time.Second},
		{name: "no linger", groups: 1, each: 1, opts: fifo.Options{Linger: -1}, sizes: []int{1}},
		{name: "one of a group at a time", groups: 1, each: 3, sizes: []int{1, 1, 1}, took: 10 * time.Millisecond},
		{name: "next heads go together", groups: 10, each: 3, sizes: []int{10, 10, 10}},
		{name: "standard: one group fills a request", queue: standard, groups: 1, each: 20, sizes: []int{10, 10}},
	}
	for _, tt := range tests {
		runIn(t, tt.name, cmp.Or(tt.queue, orders), func(x *fixture) {
			p := x.publisher(func(o *fifo.Options) { *o = tt.opts })
			start := time.Now()
			var pending []*fifo.PublishResult
			for n := range tt.each {
				for g := range tt.groups {
					pd := must.Get(p.Enqueue(x.Context(), event(fmt.Sprint("g", g), n)))(x)
					pending = append(pending, pd)
				}
			}
			for _, pd := range pending {
				must.Get(pd.Get(x.Context()))(x)
			}
			if took := time.Since(start); took != tt.took {
				x.Errorf("took %v, want %v", took, tt.took)
			}
			x.expect("entries by request", tt.sizes, x.sizes())
		})
	}
}

func TestInFlightBoundsRequests(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.MaxRequests = 3 })
		start := time.Now()
		must.Get(p.PublishAll(x.Context(), each(100, 1)))(x)
		if x.sent.most != 3 {
			x.Errorf("%d requests at once, want 3", x.sent.most)
		}
		if took := time.Since(start); took != 4*time.Second {
			x.Errorf("took %v, want 4s: ten requests, three at once, of a second each", took)
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Delay, Delay: time.Second})
}

// On a standard queue the group is a tenant's name: its events share requests, and one that fails halts no other.
func TestStandardQueue(t *testing.T) {
	bubble(t, standard, func(x *fixture) {
		p := x.publisher()
		es := []fifo.Event{event("tenant", 1), event("tenant", 2), {ID: "bad", Group: "tenant"}, event("tenant", 3)}
		receipts, err := p.PublishAll(x.Context(), es)
		pe, ok := errors.AsType[*fifo.PublishError](err)
		if !ok || pe.Index != 2 || pe.EventID != "bad" {
			x.Errorf("error %v, want that of event 2 only", err)
		}
		for i, r := range receipts {
			if i != 2 && (r.MessageID == "" || r.DedupID != "" || r.Sequence != "") {
				x.Errorf("receipt %d: %+v, want a message ID only", i, r)
			}
		}
		x.expect("entries by request", []int{3}, x.sizes())
		for _, m := range x.srv.Messages(x.url) {
			if m.Group != "tenant" || m.DedupID != "" {
				x.Errorf("message %+v, want the group and no dedup ID", m)
			}
		}
	})
}

// A throttled request delays all events together, longer each time.
func TestThrottledQueue(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		x.outage(time.Minute, fault.Rule{Do: fault.Error, Code: "RequestThrottled"})
		start := time.Now()
		must.Get(x.publisher().PublishAll(x.Context(), each(40, 1)))(x)
		if took := time.Since(start); took < time.Minute || took > 66*time.Second {
			x.Errorf("took %v, want the minute of throttling and a delay", took)
		}
		// Four requests at first, then one after each delay, which is 2.5 s on average.
		if n := len(x.srv.Calls()); n > 4*100 {
			x.Errorf("%d requests in a minute of throttling", n)
		}
	})
}

// receive returns n messages of a queue.
func (x *fixture) receive(url string, n int) []sqstypes.Message {
	x.Helper()
	out := must.Get(x.sqs.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{
		QueueUrl:                    &url,
		MaxNumberOfMessages:         10,
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
	}))(x)
	if len(out.Messages) != n {
		x.Fatalf("received %d messages, want %d", len(out.Messages), n)
	}
	return out.Messages
}

// message converts a received message as a host does, with the fields that its key needs.
func message(queue string, m sqstypes.Message) *sqsonce.Message {
	out := &sqsonce.Message{
		ID: *m.MessageId, Body: *m.Body, QueueARN: queue, DedupID: m.Attributes["MessageDeduplicationId"],
		Attributes: make(map[string]sqsonce.Attribute),
	}
	for name, a := range m.MessageAttributes {
		v := sqsonce.Attribute{Type: *a.DataType, Binary: a.BinaryValue}
		if a.StringValue != nil {
			v.String = *a.StringValue
		}
		out.Attributes[name] = v
	}
	return out
}
