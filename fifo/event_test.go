package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// An event that SQS would refuse fails before any call, with all bad fields at once. Check says the same.
func TestEventCheck(t *testing.T) {
	t.Parallel()
	attr := func(name, typ, value string) func(*fifo.Event) {
		return func(e *fifo.Event) {
			e.Attributes = map[string]sqsonce.Attribute{name: {Type: typ, String: value}}
		}
	}
	field := func(name string) []string { return []string{`Event.Attributes["` + name + `"]`} }
	tests := []struct {
		name   string
		change func(*fifo.Event)
		want   []string // nil: sent
	}{
		{"empty", func(e *fifo.Event) { *e = fifo.Event{} }, []string{"Event.ID", "Event.Group", "Event.Body"}},
		{"ID of any legal text", func(e *fifo.Event) { e.ID = "ord 42\t\u00e9\U0001f600" + strings.Repeat("x", 500) }, nil},
		{"ID not UTF-8", func(e *fifo.Event) { e.ID = "a\xff" }, []string{"Event.ID"}},
		{"ID with a zero", func(e *fifo.Event) { e.ID = "a\x00" }, []string{"Event.ID"}},
		{"group of 128", func(e *fifo.Event) { e.Group = strings.Repeat("~", 128) }, nil},
		{"group of 129", func(e *fifo.Event) { e.Group = strings.Repeat("~", 129) }, []string{"Event.Group"}},
		{"group of the first and the last legal character", func(e *fifo.Event) { e.Group = "!~" }, nil},
		{"group with a space", func(e *fifo.Event) { e.Group = "a b" }, []string{"Event.Group"}},
		{"group not ASCII", func(e *fifo.Event) { e.Group = "é" }, []string{"Event.Group"}},
		{"group with DEL", func(e *fifo.Event) { e.Group = "a\x7f" }, []string{"Event.Group"}},
		{"type of 256", attr("a", "String."+strings.Repeat("x", 249), "v"), nil},
		{"smallest number", attr("a", "Number", "1e-128"), nil},
		{"largest number", attr("a", "Number", "1E126"), nil},
		{"body not UTF-8", func(e *fifo.Event) { e.Body = "ok\xff\xfe" }, []string{"Event.Body"}},
		{"body with a replacement character", func(e *fifo.Event) { e.Body = "\ufffd" }, nil},
		{"body with U+FFFE", func(e *fifo.Event) { e.Body = "\ufffe" }, []string{"Event.Body"}},
		{"body with U+FFFF", func(e *fifo.Event) { e.Body = "\uffff" }, []string{"Event.Body"}},
		{"body with a surrogate", func(e *fifo.Event) { e.Body = "\xed\xa0\x80" }, []string{"Event.Body"}},
		{"body with a control character", func(e *fifo.Event) { e.Body = "\x1f" }, []string{"Event.Body"}},
		{"body of rare legal characters", func(e *fifo.Event) { e.Body = "\t\n\r\u0085\u2028\ue000\U0010ffff\x7f" }, nil},
		{"type", func(e *fifo.Event) { e.Type = "a\x00" }, []string{"Event.Type"}},
		{"trace header", func(e *fifo.Event) { e.TraceHeader = "\xff" }, []string{"Event.TraceHeader"}},

		{"7 attributes", attributes(7), nil},
		{"8 attributes", attributes(8), []string{"Event.Attributes"}},
		{"name of 256", attr(strings.Repeat("x", 256), "String", "v"), nil},
		{"name of 257", attr(strings.Repeat("x", 257), "String", "v"), field(strings.Repeat("x", 256))},
		{"no name", attr("", "String", "v"), field("")},
		{"name with a space", attr("a b", "String", "v"), field("a b")},
		{"name with a leading period", attr(".a", "String", "v"), field(".a")},
		{"name with a last period", attr("a.", "String", "v"), field("a.")},
		{"name with two periods", attr("a..b", "String", "v"), field("a..b")},
		{"name with a period", attr("a.b", "String", "v"), nil},
		{"name of AWS's", attr("aws.x", "String", "v"), field("aws.x")},
		{"name of Amazon's", attr("AMAZON.x", "String", "v"), field("AMAZON.x")},
		{"name like AWS's", attr("awsome", "String", "v"), nil},
		{"event-id", attr("event-id", "String", "v"), field("event-id")},
		{"event-source", attr("event-source", "String", "v"), field("event-source")},
		{"event-type", attr("event-type", "String", "v"), field("event-type")},
		{"event-key", attr("event-key", "String", "v"), field("event-key")},
		{"reject-reason", attr("reject-reason", "String", "v"), field("reject-reason")},
		{"dead-letter-source", attr("dead-letter-source", "String", "v"), field("dead-letter-source")},
		{"record-key", attr("record-key", "String", "v"), field("record-key")},
		{"no type", attr("a", "", "v"), field("a")},
		{"unknown type", attr("a", "Bool", "true"), field("a")},
		{"type in lower case", attr("a", "string", "v"), field("a")},
		{"type with a label", attr("a", "String.uuid", "v"), nil},
		{"type with a label of any legal text", attr("a", "String.a b\t\n\u00e9\U0001f600", "v"), nil},
		{"type with a label not UTF-8", attr("a", "String.a\xff", "v"), field("a")},
		{"type with a label with a zero", attr("a", "String.a\x00", "v"), field("a")},
		{"type with an empty label", attr("a", "String.", "v"), field("a")},
		{"type of 257", attr("a", "String."+strings.Repeat("x", 250), "v"), field("a")},
		{"no value", attr("a", "String", ""), field("a")},
		{"value with a zero", attr("a", "String", "\x00"), field("a")},
		{"number", attr("a", "Number.int", "-12.50e+3"), nil},
		{"no number", attr("a", "Number", "twelve"), field("a")},
		{"number in hexadecimal", attr("a", "Number", "0x10"), field("a")},
		{"number not a number", attr("a", "Number", "NaN"), field("a")},
		{"number of 38 digits", attr("a", "Number", strings.Repeat("9", 38)), nil},
		{"number of 39 digits", attr("a", "Number", strings.Repeat("9", 39)), field("a")},
		{"number of 39 digits without its last zeros", attr("a", "Number", strings.Repeat("9", 38)+strings.Repeat("0", 80)), nil},
		{"number too large", attr("a", "Number", "1e127"), field("a")},
		{"number too small", attr("a", "Number", "1e-129"), field("a")},
		{"zero", attr("a", "Number", "0.00"), nil},
		{"binary", func(e *fifo.Event) {
			e.Attributes = map[string]sqsonce.Attribute{"a": {Type: "Binary", Binary: []byte{0, 0xff}}}
		}, nil},
		{"binary without value", attr("a", "Binary", ""), field("a")},
		{"binary with a string", attr("a", "Binary", "v"), field("a")},
		{"string with a binary", func(e *fifo.Event) {
			e.Attributes = map[string]sqsonce.Attribute{"a": {Type: "String", String: "v", Binary: []byte{1}}}
		}, field("a")},
		{"1 MiB", func(e *fifo.Event) { *e = sized("g", mebibyte) }, nil},
		{"over 1 MiB", func(e *fifo.Event) { *e = sized("g", mebibyte+1) }, []string{"Event.Body"}},
	}
	for _, tt := range tests {
		runIn(t, tt.name, orders, func(x *fixture) {
			e := event("g", 1)
			tt.change(&e)
			_, err := x.publisher().Publish(x.Context(), e)
			checked := e.Check("orders")
			for _, reason := range []error{fifo.ErrNotSent, fifo.ErrRefused, errCancelled} {
				if fmt.Sprint(checked) != fmt.Sprint(err) || errors.Is(checked, reason) != errors.Is(err, reason) {
					x.Errorf("Check: %v\nPublish: %v", checked, err)
				}
			}
			if diff := cmp.Diff(tt.want, testaws.Fields(err)); diff != "" {
				x.Errorf("fields (-want +got):\n%s\n%v", diff, err)
			}
			pe, ok := errors.AsType[*fifo.PublishError](err)
			if sent := tt.want == nil; ok == sent || ok && (pe.EventID != e.ID || pe.Group != e.Group) {
				x.Errorf("Publish: %v, want a PublishError that names the event, for bad ones only", err)
			}
			if calls := len(x.sizes()); (calls > 0) != (err == nil) {
				x.Errorf("%d calls", calls)
			}
		})
	}
}

func TestCheckOfABadNamespace(t *testing.T) {
	t.Parallel()
	if got := testaws.Fields(event("g", 1).Check("or ders")); !cmp.Equal(got, []string{"namespace"}) {
		t.Errorf("bad fields %v, want namespace", got)
	}
}

func attributes(n int) func(*fifo.Event) {
	return func(e *fifo.Event) {
		e.Type = "t" // so the event has all attributes that a publisher adds
		e.Attributes = make(map[string]sqsonce.Attribute)
		for i := range n {
			e.Attributes[string(rune('a'+i))] = sqsonce.Attribute{Type: "String", String: "v"}
		}
	}
}

// FuzzEventCheck compares the check with the in-memory SQS, whose rules were written independently from AWS's
// documentation: SQS accepts an event that passes the check, and refuses one that does not.
func FuzzEventCheck(f *testing.F) {
	f.Add("1", "g", "body", "name", "String", "value")
	f.Add("a b", "g h", "\x00", "aws.x", "Number", "1e5")
	f.Add("é", "~", "\ufffd", "a..b", "Number.x", "nan")
	f.Add("\u2028", "!", "\ufffe", ".a", "Binary", "\xff")
	f.Add("\xff", "", "\xed\xa0\x80", "", "String.", "")
	f.Fuzz(func(t *testing.T, id, group, body, name, typ, value string) {
		srv := memsqs.New()
		defer srv.Close()
		x := &fixture{T: t, srv: srv, sqs: testaws.SQS(srv)}
		url := testaws.Queue(x, x.sqs, orders, nil)
		p := must.Get(fifo.NewPublisher(x.sqs, url, "orders", func(o *fifo.Options) { o.Linger = -1 }))(t)
		a := sqsonce.Attribute{Type: typ, String: value}
		wire := sqstypes.MessageAttributeValue{DataType: &typ, StringValue: &value}
		if typ == "Binary" {
			a = sqsonce.Attribute{Type: typ, Binary: []byte(value)}
			wire = sqstypes.MessageAttributeValue{DataType: &typ, BinaryValue: []byte(value)}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // else a failure that looks transient would be repeated for minutes
		defer cancel()
		_, err := p.Publish(ctx, fifo.Event{
			ID: id, Group: group, Body: body, Attributes: map[string]sqsonce.Attribute{name: a},
		})
		refused := testaws.Fields(err)
		if err != nil && refused == nil {
			t.Fatalf("SQS refuses an event that passes the check: %v", err)
		}
		for _, field := range refused {
			if field == "Event.ID" {
				return // empty or not legal text: a body or an attribute value cannot have it either
			}
		}
		_, err = x.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: &url, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: aws.String("raw"),
			MessageAttributes: map[string]sqstypes.MessageAttributeValue{name: wire},
		})
		if _, byServer := errors.AsType[smithy.APIError](err); refused != nil && err == nil && !stricter(body, name, typ, value) {
			t.Errorf("the check refuses %v, and SQS accepts it", refused)
		} else if err != nil && refused == nil {
			t.Errorf("SQS refuses an event that passes the check (by the server: %v): %v", byServer, err)
		}
	})
}

// stricter reports whether the check refuses more than SQS: text that the SDK would change, and reserved names.
func stricter(body, name, typ, value string) bool {
	for _, s := range []string{body, name, typ, value} {
		if s != string([]rune(s)) { // not UTF-8: the SDK sends U+FFFD instead
			return true
		}
	}
	switch name {
	case "event-id", "event-source", "event-type", "event-key", "reject-reason", "dead-letter-source", "record-key":
		return true
	}
	return false
}

// A consumer's key is the publisher's deduplication ID in every delivery: the first one, in the dead-letter queue, where SQS
// replaces the MessageDeduplicationId, and after a redrive with a new message ID.
func TestKeyInEveryDelivery(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"ord-42/v3", "legal text, but no dedup ID", "é", strings.Repeat("x", 300)} {
		t.Run(id[:min(len(id), 20)], func(t *testing.T) {
			bubble(t, orders, func(x *fixture) {
				dlq := testaws.Queue(x, x.sqs, "orders-dlq.fifo", nil)
				x.setRedrivePolicy("orders-dlq.fifo")
				r := must.Get(x.publisher().Publish(x.Context(), fifo.Event{ID: id, Group: "g", Body: "{}"}))(x)
				want, err := fifo.DedupID("orders", id)
				if err != nil || r.DedupID != want {
					x.Errorf("receipt has %q, want %q (%v)", r.DedupID, want, err)
				}
				check := func(where, url string, dedupID func(m *sqsonce.Message) string) {
					x.Helper()
					m := message(url, x.receive(url, 1)[0])
					key, source, err := m.Key()
					if key != want || source != sqsonce.KeyFromAttribute || err != nil {
						x.Errorf("%s: Key() = %q, %v, %v, want %q", where, key, source, err, want)
					}
					if d := dedupID(m); m.DedupID != d {
						x.Errorf("%s: MessageDeduplicationId is %q, want %q", where, m.DedupID, d)
					}
				}

				check("first delivery", x.url, func(*sqsonce.Message) string { return want })
				time.Sleep(time.Minute)
				x.receive(x.url, 0) // the second receive moves it
				check("in the dead-letter queue", dlq, func(*sqsonce.Message) string { return r.MessageID })
				time.Sleep(time.Minute)
				x.redrive("orders-dlq.fifo")
				time.Sleep(time.Minute)
				m := message(x.url, x.receive(x.url, 1)[0])
				if key, _, err := m.Key(); key != want || err != nil || m.ID == r.MessageID {
					x.Errorf("after a redrive: Key() = %q, %v of message %s, want %q of a new message", key, err, m.ID, want)
				}
			})
		})
	}
}

func (x *fixture) setRedrivePolicy(dlq string) {
	x.Helper()
	must.Get(x.sqs.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: &x.url,
		Attributes: map[string]string{
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:` + dlq + `","maxReceiveCount":"1"}`,
		},
	}))(x)
}

func (x *fixture) redrive(dlq string) {
	x.Helper()
	must.Get(x.sqs.StartMessageMoveTask(x.Context(), &sqs.StartMessageMoveTaskInput{
		SourceArn: aws.String("arn:aws:sqs:us-east-1:000000000000:" + dlq),
	}))(x)
}
