package deadletter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	standardDLQ = "https://sqs.us-east-1.amazonaws.com/000000000000/jobs-dlq"
	fifoDLQ     = standardDLQ + ".fifo"
	sourceARN   = "arn:aws:sqs:us-east-1:000000000000:jobs"
)

var errBad = errors.New("bad order")

func message() *sqsonce.Message {
	return &sqsonce.Message{ID: "id-1", Body: "body", QueueARN: sourceARN, ReceiveCount: 1}
}

// texts returns each attribute as type and value.
func texts(attrs map[string]sqstypes.MessageAttributeValue) map[string]string {
	out := map[string]string{}
	for name, a := range attrs {
		out[name] = aws.ToString(a.DataType) + ":" + aws.ToString(a.StringValue) + string(a.BinaryValue)
	}
	return out
}

func TestCopyKeepsTheMessage(t *testing.T) {
	t.Parallel()
	m := message()
	m.Group, m.TraceHeader = "g", "Root=1-2-3"
	m.Attributes = map[string]sqsonce.Attribute{
		"text":   {Type: "String", String: "x"},
		"number": {Type: "Number.int", String: "3"},
		"bytes":  {Type: "Binary.png", Binary: []byte{1, 2}},
	}
	in, dropped := Copy(fifoDLQ, m, keyOf(t, m), "", sqsonce.Reject(errBad))
	if dropped != nil {
		t.Errorf("dropped: got %v, want none", dropped)
	}
	want := map[string]string{
		"text": "String:x", "number": "Number.int:3", "bytes": "Binary.png:\x01\x02",
		"event-key":          "String:sqs-message|" + sourceARN + "|id-1",
		"reject-reason":      "String:sqsonce: rejected: bad order",
		"dead-letter-source": "String:" + sourceARN,
	}
	if diff := cmp.Diff(want, texts(in.MessageAttributes)); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	got := []string{*in.QueueUrl, *in.MessageBody, *in.MessageGroupId, *in.MessageDeduplicationId, *in.MessageSystemAttributes["AWSTraceHeader"].StringValue}
	if diff := cmp.Diff([]string{fifoDLQ, "body", "g", "id-1", "Root=1-2-3"}, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestCopyToAStandardQueue(t *testing.T) {
	t.Parallel()
	in, _ := Copy(standardDLQ, message(), "", "", nil)
	if in.MessageDeduplicationId != nil || in.MessageGroupId != nil || in.MessageSystemAttributes != nil {
		t.Errorf("got dedup ID %v, group %v, system attributes %v; want none", in.MessageDeduplicationId, in.MessageGroupId, in.MessageSystemAttributes)
	}
}

// TestCopyKeepsTheKey: a redrive gives the message a new ID and may move it to another queue, so a key that is made from the
// old ones must be in the copy. Any other key is in the message.
func TestCopyKeepsTheKey(t *testing.T) {
	t.Parallel()
	nine := map[string]sqsonce.Attribute{"traceparent": {Type: "String", String: parent}}
	for i := range 9 {
		nine[fmt.Sprint(i)] = sqsonce.Attribute{Type: "String", String: "x"}
	}
	for name, attrs := range map[string]map[string]sqsonce.Attribute{
		"message ID":                        nil,
		"nine attributes and a traceparent": nine,
		"event ID without source":           {sqsonce.AttrEventID: {Type: "String", String: "ord-1"}},
		"event ID": {
			sqsonce.AttrEventID: {Type: "String", String: "ord-1"}, sqsonce.AttrEventSource: {Type: "String", String: "orders"},
		},
		"event key": {sqsonce.AttrEventKey: {Type: "String", String: "orders|ord-1"}},
		"CloudEvents": {
			"ce-specversion": {Type: "String", String: "1.0"}, "ce-id": {Type: "String", String: "1"},
			"ce-source": {Type: "String", String: "s"}, "ce-type": {Type: "String", String: "t"},
		},
	} {
		m := message()
		m.Attributes = attrs
		want := keyOf(t, m)
		in, _ := Copy(standardDLQ, m, want, "", nil)
		redriven := &sqsonce.Message{ID: "id-2", Body: m.Body, QueueARN: sourceARN + "-2", Attributes: map[string]sqsonce.Attribute{}}
		for n, a := range in.MessageAttributes {
			redriven.Attributes[n] = sqsonce.Attribute{Type: *a.DataType, String: *a.StringValue}
		}
		if got, _, err := redriven.Key(); got != want || err != nil {
			t.Errorf("%s: key after the redrive: got %q, %v; want %q", name, got, err, want)
		}
	}
}

// Without middleware a message without an ID of its own has no key yet: one of the message ID would hide the ID that is in its
// body or behind a pointer. An event-id alone is an ID, whose key holds the queue's ARN.
func TestCopyWithoutMiddleware(t *testing.T) {
	t.Parallel()
	for want, attrs := range map[string]map[string]sqsonce.Attribute{
		"":                              nil,
		"sqs-event|" + sourceARN + "|1": {sqsonce.AttrEventID: {Type: "String", String: "1"}},
	} {
		m := message()
		m.Attributes = attrs
		in, _ := Copy(standardDLQ, m, "", "", nil)
		if got := aws.ToString(in.MessageAttributes[sqsonce.AttrEventKey].StringValue); got != want {
			t.Errorf("event-key: got %q, want %q", got, want)
		}
	}
}

// keyOf is the key that middleware tells the host.
func keyOf(t *testing.T, m *sqsonce.Message) string {
	t.Helper()
	key, _, err := m.Key()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A key that middleware made of the MessageDeduplicationId is not in the copy, whose ID SQS or the host chooses anew.
func TestCopyHasTheKeyOfMiddleware(t *testing.T) {
	t.Parallel()
	for name, attrs := range map[string]map[string]sqsonce.Attribute{
		"message ID": nil,
		"event ID":   {sqsonce.AttrEventID: {Type: "String", String: "ord-1"}, sqsonce.AttrEventSource: {Type: "String", String: "orders"}},
	} {
		m := message()
		m.Attributes = attrs
		in, dropped := Copy(fifoDLQ, m, "sqs-dedup|q|g|d", "", nil)
		if got := aws.ToString(in.MessageAttributes[sqsonce.AttrEventKey].StringValue); got != "sqs-dedup|q|g|d" || dropped != nil {
			t.Errorf("%s: event-key %q, dropped %v, want middleware's key", name, got, dropped)
		}
	}
}

func TestCopyAtTheLimits(t *testing.T) {
	t.Parallel()
	full := func(n int) map[string]sqsonce.Attribute {
		attrs := map[string]sqsonce.Attribute{}
		for i := range n {
			attrs[fmt.Sprint(i)] = sqsonce.Attribute{Type: "String", String: "x"}
		}
		return attrs
	}
	for _, tt := range []struct {
		name  string
		attrs map[string]sqsonce.Attribute
		body  int
		want  []string
	}{
		{"8 attributes", full(8), 1, nil},
		{"9 attributes", full(9), 1, []string{sqsonce.AttrRejectReason}},
		{"10 attributes", full(10), 1, []string{sqsonce.AttrEventKey, sqsonce.AttrRejectReason}},
		{"full body", nil, maxSize, []string{sqsonce.AttrEventKey, sqsonce.AttrRejectReason}},
		{"space for the reason only", nil, maxSize - 60, []string{sqsonce.AttrEventKey}},
		{"an old reason is replaced", map[string]sqsonce.Attribute{sqsonce.AttrRejectReason: {Type: "String", String: "old"}}, 1, nil},
	} {
		m := message()
		m.Attributes, m.Body = tt.attrs, strings.Repeat("x", tt.body)
		in, dropped := Copy(standardDLQ, m, keyOf(t, m), "", sqsonce.Reject(errBad))
		if diff := cmp.Diff(tt.want, dropped); diff != "" {
			t.Errorf("%s: dropped (-want +got):\n%s", tt.name, diff)
		}
		n := len(*in.MessageBody)
		for name, a := range in.MessageAttributes {
			n += len(name) + len(*a.DataType) + len(*a.StringValue)
		}
		if n > maxSize || len(in.MessageAttributes) > host.MaxAttributes {
			t.Errorf("%s: %d bytes, %d attributes: more than SQS accepts", tt.name, n, len(in.MessageAttributes))
		}
		for name := range tt.attrs {
			if _, ok := in.MessageAttributes[name]; !ok {
				t.Errorf("%s: the sender's attribute %s is missing", tt.name, name)
			}
		}
	}
}

// The source of an earlier rejection says nothing any more, and takes no room. This one gives way to everything, without a word:
// where a dead-letter queue has one source SQS names it.
func TestSourceGivesWayFirst(t *testing.T) {
	t.Parallel()
	const stale = sourceARN + "-before"
	for _, tt := range []struct {
		name, arn, earlier string
		others, body       int
		want               string
	}{
		{"room", sourceARN, "", 7, 1, sourceARN},
		{"no attribute left", sourceARN, "", 8, 1, ""},
		{"no byte left", sourceARN, "", 0, maxSize - 150, ""},
		{"an earlier one is replaced", sourceARN, stale, 7, 1, sourceARN},
		{"an earlier one takes no room", sourceARN, stale, 0, maxSize - 170, sourceARN},
		{"an earlier one gives way", sourceARN, stale, 8, 1, ""},
		{"an earlier one of a queue that is not known", "", stale, 1, 1, ""},
	} {
		m := message()
		m.QueueARN, m.Body = tt.arn, strings.Repeat("x", tt.body)
		m.Attributes = map[string]sqsonce.Attribute{}
		for i := range tt.others {
			m.Attributes[fmt.Sprint(i)] = sqsonce.Attribute{Type: "String", String: "x"}
		}
		if tt.earlier != "" {
			m.Attributes[sqsonce.AttrDeadLetterSource] = sqsonce.Attribute{Type: "String", String: tt.earlier}
		}
		in, dropped := Copy(standardDLQ, m, "sqs-message|"+sourceARN+"|id-1", "", errBad)
		if dropped != nil || in.MessageAttributes[sqsonce.AttrEventKey].StringValue == nil || in.MessageAttributes[sqsonce.AttrRejectReason].StringValue == nil {
			t.Errorf("%s: dropped %v, want key and reason", tt.name, dropped)
		}
		if got := aws.ToString(in.MessageAttributes[sqsonce.AttrDeadLetterSource].StringValue); got != tt.want {
			t.Errorf("%s: source %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Trace context does not give way to the source.
func TestTraceContextBeforeTheSource(t *testing.T) {
	t.Parallel()
	m := message()
	m.Attributes = map[string]sqsonce.Attribute{"tracestate": {Type: "String", String: "a=b"}}
	for i := range 7 {
		m.Attributes[fmt.Sprint(i)] = sqsonce.Attribute{Type: "String", String: "x"}
	}
	in, _ := Copy(standardDLQ, m, "orders|1", "", errBad)
	_, source := in.MessageAttributes[sqsonce.AttrDeadLetterSource]
	if _, state := in.MessageAttributes["tracestate"]; !state || source {
		t.Errorf("tracestate left %t, source written %t; want the first only", state, source)
	}
}

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// Trace context that the sender's instrumentation adds as the ninth or tenth attribute gives way to the key, which would be
// another one after a redrive, and to the reason; no more of it than is needed.
func TestTraceContextGivesWay(t *testing.T) {
	t.Parallel()
	const header = "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736;Parent=00f067aa0ba902b7;Sampled=1"
	for _, tt := range []struct {
		name        string
		others      int
		body        int
		own, parent string
		left        []string // of trace context
		header      string
	}{
		{name: "room for all", others: 6, left: []string{"traceparent", "tracestate"}},
		{name: "room for one less", others: 7, left: []string{"traceparent"}},
		{name: "room for two less", others: 8, header: header},
		{name: "a trace header of its own", others: 8, own: "Root=1-2-3", header: "Root=1-2-3"},
		{name: "no traceparent", others: 8, parent: "what", header: ""},
		{name: "not sampled", others: 8, parent: strings.TrimSuffix(parent, "1") + "2", header: strings.TrimSuffix(header, "1") + "0"},
		{name: "a large body", others: 0, body: maxSize - 150, header: header},
	} {
		if tt.parent == "" {
			tt.parent = parent
		}
		m := message()
		m.TraceHeader, m.Body = tt.own, strings.Repeat("x", max(tt.body, 1))
		m.Attributes = map[string]sqsonce.Attribute{
			"traceparent": {Type: "String", String: tt.parent}, "tracestate": {Type: "String", String: "a=" + strings.Repeat("b", 40)},
		}
		for i := range tt.others {
			m.Attributes[fmt.Sprint(i)] = sqsonce.Attribute{Type: "String", String: "x"}
		}
		in, dropped := Copy(standardDLQ, m, keyOf(t, m), "", errBad)
		if dropped != nil {
			t.Errorf("%s: dropped %v", tt.name, dropped)
		}
		var left []string
		for _, name := range []string{"traceparent", "tracestate"} {
			if _, there := in.MessageAttributes[name]; there {
				left = append(left, name)
			}
		}
		if got := aws.ToString(in.MessageSystemAttributes["AWSTraceHeader"].StringValue); !slices.Equal(left, tt.left) || got != tt.header {
			t.Errorf("%s: left %v and header %q, want %v and %q", tt.name, left, got, tt.left, tt.header)
		}
		if key := aws.ToString(in.MessageAttributes[sqsonce.AttrEventKey].StringValue); key != keyOf(t, m) {
			t.Errorf("%s: key %q", tt.name, key)
		}
		if len(in.MessageAttributes) < tt.others+2 {
			t.Errorf("%s: %d attributes: one of the sender's is missing", tt.name, len(in.MessageAttributes))
		}
	}
}

func TestReasonIsLegal(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"plain", "a\x00b", "a\xffb", "a\ufffeb", "tab\tline\n", strings.Repeat("é", 1000), strings.Repeat("x", 1023) + "é", "\x01"} {
		got := reasonText(errors.New(s))
		legal := func(r rune) bool {
			return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000
		}
		if got == "" || len(got) > maxReason || !utf8.ValidString(got) || strings.IndexFunc(got, func(r rune) bool { return !legal(r) }) >= 0 {
			t.Errorf("reasonText(%.20q): got %.20q, %d bytes", s, got, len(got))
		}
	}
}
