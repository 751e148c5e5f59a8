package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// received is the message of an event as a consumer receives it.
func received(e fifo.Event) *sqsonce.Message {
	return &sqsonce.Message{ID: "1", Body: e.Body, Group: e.Group, Attributes: map[string]sqsonce.Attribute{
		"event-id": {Type: "String", String: e.ID}, "event-source": {Type: "String", String: "orders"},
	}}
}

// xmlText draws a text that SQS accepts, of any of its characters.
func xmlText(rt *rapid.T, most int, what string) string {
	char := rapid.OneOf(
		rapid.SampledFrom([]rune("\t\n\r ~\x7f\u0085\u2028\ud7ff\ue000\ufffd\U00010000\U0010ffff")),
		rapid.Rune().Filter(func(r rune) bool { return r >= 0x20 && (r < 0xd800 || r > 0xdfff) && r != 0xfffe && r != 0xffff }),
	)
	return rapid.StringOfN(char, 1, most, -1).Draw(rt, what)
}

func drawAttribute(rt *rapid.T) sqstypes.MessageAttributeValue {
	kind := rapid.SampledFrom([]string{"String", "Number", "Binary"}).Draw(rt, "type")
	label := rapid.SampledFrom([]string{"", ".int", ".a b.é\t\U0010ffff"}).Draw(rt, "label")
	v := sqstypes.MessageAttributeValue{DataType: aws.String(kind + label)}
	switch kind {
	case "Binary":
		v.BinaryValue = rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(rt, "binary")
	case "Number":
		v.StringValue = aws.String(rapid.StringMatching(`[+-]?[0-9]{1,18}(\.[0-9]{0,18})?([eE][+-]?[0-9]{1,2})?`).Draw(rt, "number"))
	default:
		v.StringValue = aws.String(xmlText(rt, 40, "value"))
	}
	return v
}

// drawMessage draws what a producer may send, with up to ten attributes and at most 1 MiB.
func drawMessage(rt *rapid.T, ordered bool) *sqs.SendMessageInput {
	name := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9_-]{1,30}`).Filter(func(s string) bool { return s != "" }),
		rapid.SampledFrom([]string{"event-id", "event-source", "event-type", "event-key", "reject-reason", "traceparent", "a.b"}))
	in := &sqs.SendMessageInput{MessageAttributes: rapid.MapOfN(name, rapid.Custom(drawAttribute), 0, 10).Draw(rt, "attributes")}
	body := xmlText(rt, 50, "body")
	size := len(body)
	for name, a := range in.MessageAttributes {
		size += len(name) + len(*a.DataType) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	if rapid.IntRange(0, 9).Draw(rt, "longest") == 0 {
		body += strings.Repeat("x", mebibyte-size)
	}
	in.MessageBody = &body
	if ordered || rapid.Bool().Draw(rt, "tenant") {
		in.MessageGroupId = aws.String(rapid.StringMatching(`[!-~]{1,128}`).Draw(rt, "group"))
	}
	if ordered {
		in.MessageDeduplicationId = aws.String("sent")
	}
	if rapid.Bool().Draw(rt, "traced") {
		in.MessageSystemAttributes = map[string]sqstypes.MessageSystemAttributeValue{
			"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String(traceHeader)},
		}
	}
	return in
}

// seen is what a consumer sees of a message that does not differ by delivery or send.
type seen struct {
	Body, Group, TraceHeader string
	Attributes               map[string]sqsonce.Attribute
}

func seenOf(m *sqsonce.Message) seen { return seen{m.Body, m.Group, m.TraceHeader, m.Attributes} }

// Every message that SQS accepts arrives as it was, whatever hooks would send with an event. Its deduplication ID is the given one.
func TestForwardIsVerbatim(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		queue := rapid.SampledFrom([]string{orders, standard}).Draw(rt, "queue")
		in := drawMessage(rt, queue == orders)
		id := rapid.StringMatching(`[!-~]{1,128}`).Draw(rt, "dedup ID")
		var problem string
		synctest.Test(t, func(t *testing.T) { problem = forwardVerbatim(t, queue, in, id) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

func forwardVerbatim(t *testing.T, queue string, in *sqs.SendMessageInput, id string) string {
	x := newFixture(t, queue, nil)
	defer x.srv.Close()
	source := testaws.Queue(x, x.sqs, "dlq-"+queue, nil)
	in.QueueUrl = &source
	if _, err := x.sqs.SendMessage(x.Context(), in); err != nil {
		return fmt.Sprintf("SQS refuses what the test draws: %v", err)
	}
	m := sqsworker.MessageOf(x.receive(source, 1)[0], "arn")
	p, err := fifo.NewPublisher(x.sqs, x.url, "orders", carrying(allContext))
	if err != nil {
		return err.Error()
	}
	r, err := fifokit.Forward(p, x.Context(), m, id)
	if err != nil {
		return err.Error()
	}
	got := sqsworker.MessageOf(x.receive(x.url, 1)[0], "arn")
	if diff := cmp.Diff(seenOf(m), seenOf(got)); diff != "" {
		return "forwarded (-want +got):\n" + diff
	}
	if queue == standard {
		id = ""
	}
	want := fifo.Receipt{MessageID: got.ID, Sequence: got.Sequence, DedupID: id, Attempts: 1}
	if diff := cmp.Diff(want, r); diff != "" || got.DedupID != id {
		return fmt.Sprintf("deduplication ID %q, want %q; receipt (-want +got):\n%s", got.DedupID, id, diff)
	}
	return ""
}

// A message that SQS would refuse fails before any call, with all bad fields at once.
func TestForwardIsChecked(t *testing.T) {
	t.Parallel()
	attrs := func(n int) func(*sqsonce.Message) {
		return func(m *sqsonce.Message) {
			m.Attributes = map[string]sqsonce.Attribute{}
			for i := range n {
				m.Attributes[fmt.Sprint("a", i)] = sqsonce.Attribute{Type: "String", String: "v"}
			}
		}
	}
	nothing := func(*sqsonce.Message) {}
	for _, tt := range []struct {
		name   string
		id     string
		change func(*sqsonce.Message)
		want   []string // nil: sent
	}{
		{"empty", "", func(m *sqsonce.Message) { *m = sqsonce.Message{} }, []string{"dedupID", "Message.Group", "Message.Body"}},
		{"ID of 128", strings.Repeat("~", 128), nothing, nil},
		{"ID of 129", strings.Repeat("~", 129), nothing, []string{"dedupID"}},
		{"ID with a space", "a b", nothing, []string{"dedupID"}},
		{"ID not ASCII", "é", nothing, []string{"dedupID"}},
		{"ID with a zero", "\x00", nothing, []string{"dedupID"}},
		{"group with a space", "1", func(m *sqsonce.Message) { m.Group = "a b" }, []string{"Message.Group"}},
		{"body not UTF-8", "1", func(m *sqsonce.Message) { m.Body = "\xff" }, []string{"Message.Body"}},
		{"trace header", "1", func(m *sqsonce.Message) { m.TraceHeader = "\xff" }, []string{"Message.TraceHeader"}},
		{"10 attributes", "1", attrs(10), nil},
		{"11 attributes", "1", attrs(11), []string{"Message.Attributes"}},
		{"a bad attribute", "1", func(m *sqsonce.Message) { m.Attributes["aws.x"] = sqsonce.Attribute{Type: "String", String: "v"} },
			[]string{`Message.Attributes["aws.x"]`}},
		{"2 KiB", "1", func(m *sqsonce.Message) { m.Attributes, m.Body = nil, strings.Repeat("x", 2048) }, nil},
		{"more than 2 KiB", "1", func(m *sqsonce.Message) { m.Attributes, m.Body = nil, strings.Repeat("x", 2049) }, []string{"Message.Body"}},
	} {
		runIn(t, tt.name, "unused", func(x *fixture) {
			x.url = testaws.Queue(x, x.sqs, orders, map[string]string{"MaximumMessageSize": "2048"})
			p := must.Get(fifo.NewPublisher(x.sqs, x.url, "orders"))(x)
			fifokit.Fits(p, x.Context(), 2048) // the limit is read
			m := received(event("g", 1))
			tt.change(m)
			_, err := fifokit.Forward(p, x.Context(), m, tt.id)
			if diff := cmp.Diff(tt.want, testaws.Fields(err)); diff != "" {
				x.Errorf("fields (-want +got):\n%s\n%v", diff, err)
			}
			pe, ok := errors.AsType[*fifo.PublishError](err)
			if ok != (tt.want != nil) || ok && (pe.EventID != tt.id || pe.Group != m.Group || !errors.Is(err, fifo.ErrNotSent)) {
				x.Errorf("Forward: %v, want a PublishError with the deduplication ID, for bad messages only", err)
			}
			if calls := len(x.sizes()); (calls > 0) != (tt.want == nil) {
				x.Errorf("%d calls", calls)
			}
		})
	}
}

// Two calls with one deduplication ID are two of one event, which may be in flight or sent.
func TestForwardTwice(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		m, other := received(event("g", 1)), received(event("g", 1))
		other.Body = "another"
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if _, err := fifokit.Forward(p, x.Context(), m, "redrive|1"); err != nil {
					x.Error(err)
				}
			})
		}
		synctest.Wait()
		if _, err := fifokit.Forward(p, x.Context(), other, "redrive|1"); !errors.Is(err, fifo.ErrDedupConflict) {
			x.Errorf("another message in flight: %v, want ErrDedupConflict", err)
		}
		wg.Wait()
		if _, err := fifokit.Forward(p, x.Context(), other, "redrive|1"); !errors.Is(err, fifo.ErrDedupConflict) {
			x.Errorf("another message later: %v, want ErrDedupConflict", err)
		}
		// The event itself is another one for the queue: it is behind in the group, and no copy.
		x.sent.forget()
		must.Get(p.Publish(x.Context(), event("g", 1)))(x)
		x.expect("in the queue", []string{"g/v1", "g/v1"}, x.queued("g"))
	})
}

// What the caller changes after the call is not sent: an attempt may come later.
func TestForwardCopiesTheMessage(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		m := received(event("g", 1))
		m.Attributes["blob"] = sqsonce.Attribute{Type: "Binary", Binary: []byte{1}}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := fifokit.Forward(p, x.Context(), m, "1"); err != nil {
				x.Error(err)
			}
		})
		synctest.Wait()
		m.Attributes["blob"].Binary[0] = 9
		delete(m.Attributes, "event-source")
		wg.Wait()
		got := message(x.url, x.receive(x.url, 1)[0]).Attributes
		if len(got) != 3 || got["blob"].Binary[0] != 1 {
			x.Errorf("attributes %v, want those of the call", got)
		}
	})
}

// Forwarded messages and events share requests, hooks and counters.
func TestForwardIsSeenAsAnEvent(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		var w watched
		p := x.publisher(w.option)
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				_, _ = fifokit.Forward(p, x.Context(), received(event(fmt.Sprint("f", i), 1)), fmt.Sprint("redrive|", i))
			})
			wg.Go(func() { _, _ = p.Publish(x.Context(), event(fmt.Sprint("g", i), 1)) })
		}
		wg.Wait()
		if _, err := fifokit.Forward(p, x.Context(), received(event("g", 2)), ""); err == nil {
			x.Error("no deduplication ID, and no error")
		}
		want := []string{"g0/v1", "g1/v1", "g2/v1", "g3/v1", "g4/v1", "not sent", "redrive|0", "redrive|1", "redrive|2", "redrive|3", "redrive|4"}
		if diff := cmp.Diff(want, w.got()); diff != "" || len(w.problems) > 0 {
			x.Errorf("answered (-want +got):\n%s\n%v", diff, w.problems)
		}
		for _, a := range w.answers {
			if m := received(event(a.Event.Group, 1)); strings.HasPrefix(a.Event.ID, "redrive|") && !cmp.Equal(m.Attributes, a.Event.Attributes) {
				x.Errorf("hooks got %+v, want the message's attributes", a.Event)
			}
		}
		if s := p.Stats(); s.Published != 10 || s.Failed != 1 || s.Requests != 1 {
			x.Errorf("%+v, want 10 published and 1 failed in 1 request", s)
		}
	})
}

// TestForwardStorm is TestStorm with every second message of a group forwarded behind an event that is in flight.
func TestForwardStorm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) { drawStorm(rt, t, shortFault, &storm{forwards: true}) })
}

// forwarder forwards events with an odd number, and enqueues the others.
type forwarder struct{ *fifo.Publisher }

func (f forwarder) Enqueue(ctx context.Context, e fifo.Event) (*fifo.PublishResult, error) {
	if e.ID[len(e.ID)-1]%2 == 0 {
		return f.Publisher.Enqueue(ctx, e)
	}
	_, err := fifokit.Forward(f.Publisher, ctx, received(e), "redrive|"+e.ID)
	return nil, err
}

func (s *storm) forward(rng *rand.Rand, es []fifo.Event) []error {
	return s.enqueueTo(rng, forwarder{s.p}, es)
}
