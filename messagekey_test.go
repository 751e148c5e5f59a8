package sqsonce_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/eventkey"
)

const (
	queueARN = "arn:aws:sqs:eu-west-1:123456789012:orders"
	msgID    = "5fea7756-0ea4-451a-a703-a558b933e274"
	msgKey   = "sqs-message|" + queueARN + "|" + msgID
	idKey    = "sqs-event|" + queueARN + "|"
)

func text(pairs ...string) map[string]sqsonce.Attribute {
	m := make(map[string]sqsonce.Attribute, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = sqsonce.Attribute{Type: "String", String: pairs[i+1]}
	}
	return m
}

func with(m map[string]sqsonce.Attribute, name string, a sqsonce.Attribute) map[string]sqsonce.Attribute {
	m[name] = a
	return m
}

func TestMessageKey(t *testing.T) {
	t.Parallel()
	binary := sqsonce.Attribute{Type: "Binary", Binary: []byte("1")}
	cloudEvent := `{"specversion":"1.0","id":"A-1","source":"/orders","type":"created","data":{}}`
	tests := []struct {
		name   string
		m      sqsonce.Message
		want   string
		source sqsonce.KeySource
	}{
		{"event-key is taken as it is",
			sqsonce.Message{Attributes: text("event-key", "any text | at all", "event-id", "1"), Body: cloudEvent},
			"any text | at all", sqsonce.KeyFromAttribute},
		{"event-id with event-source",
			sqsonce.Message{Attributes: text("event-id", "1", "event-source", "orders"), Body: cloudEvent},
			"orders|1", sqsonce.KeyFromAttribute},
		{"event-id alone",
			sqsonce.Message{Attributes: text("event-id", "1"), Body: cloudEvent}, idKey + "1", sqsonce.KeyFromEventID},
		{"event-id alone, not legal in a key",
			sqsonce.Message{Attributes: text("event-id", "a b")}, "sqs-event|sha256|0fdea23b409e98cb4685f29014752cfb0b8985334c7583e76e25d5dd81b826b0", sqsonce.KeyFromEventID},
		{"event-id as a number",
			sqsonce.Message{Attributes: map[string]sqsonce.Attribute{"event-id": {Type: "Number", String: "7"}}},
			idKey + "7", sqsonce.KeyFromEventID},
		{"event-source alone is no ID",
			sqsonce.Message{Attributes: text("event-source", "orders")}, msgKey, sqsonce.KeyFromMessageID},
		{"attribute names are case-sensitive",
			sqsonce.Message{Attributes: text("Event-Id", "1", "EVENT-KEY", "k")}, msgKey, sqsonce.KeyFromMessageID},

		{"CloudEvents attributes, plain",
			sqsonce.Message{Attributes: text("specversion", "1.0", "id", "A-1", "source", "/orders", "type", "created")},
			"/orders|A-1", sqsonce.KeyFromCloudEvents},
		{"CloudEvents attributes, ce-",
			sqsonce.Message{Attributes: text("ce-specversion", "1.0", "ce-id", "A-1", "ce-source", "/orders", "ce-type", "created")},
			"/orders|A-1", sqsonce.KeyFromCloudEvents},
		{"CloudEvents attributes, ce_",
			sqsonce.Message{Attributes: text("ce_specversion", "1.0", "ce_id", "A-1", "ce_source", "/orders", "ce_type", "created")},
			"/orders|A-1", sqsonce.KeyFromCloudEvents},
		{"CloudEvents attributes of two spellings are none",
			sqsonce.Message{Attributes: text("ce-specversion", "1.0", "ce_id", "A-1", "source", "/orders", "ce-type", "created")},
			msgKey, sqsonce.KeyFromMessageID},
		{"CloudEvents attributes without type",
			sqsonce.Message{Attributes: text("specversion", "1.0", "id", "A-1", "source", "/orders")},
			msgKey, sqsonce.KeyFromMessageID},
		{"CloudEvents attributes with a binary id",
			sqsonce.Message{Attributes: with(text("specversion", "1.0", "source", "/orders", "type", "created"), "id", binary)},
			msgKey, sqsonce.KeyFromMessageID},
		{"CloudEvents attributes in upper case",
			sqsonce.Message{Attributes: text("Specversion", "1.0", "ID", "A-1", "Source", "/orders", "Type", "created")},
			msgKey, sqsonce.KeyFromMessageID},
		{"incomplete attributes, complete body",
			sqsonce.Message{Attributes: text("id", "other"), Body: cloudEvent}, "/orders|A-1", sqsonce.KeyFromCloudEvents},

		{"CloudEvents body", sqsonce.Message{Body: cloudEvent}, "/orders|A-1", sqsonce.KeyFromCloudEvents},
		{"CloudEvents body without specversion",
			sqsonce.Message{Body: `{"id":"A-1","source":"/orders","type":"created"}`}, msgKey, sqsonce.KeyFromMessageID},
		{"CloudEvents body with an empty id",
			sqsonce.Message{Body: `{"specversion":"1.0","id":"","source":"/orders","type":"created"}`}, msgKey, sqsonce.KeyFromMessageID},
		{"CloudEvents body with a number for id",
			sqsonce.Message{Body: `{"specversion":"1.0","id":1,"source":"/orders","type":"created"}`}, msgKey, sqsonce.KeyFromMessageID},
		{"CloudEvents body with null for source",
			sqsonce.Message{Body: `{"specversion":"1.0","id":"1","source":null,"type":"created"}`}, msgKey, sqsonce.KeyFromMessageID},
		{"CloudEvents body in upper case",
			sqsonce.Message{Body: `{"specversion":"1.0","ID":"A-1","Source":"/orders","type":"created"}`}, msgKey, sqsonce.KeyFromMessageID},
		{"CloudEvents body with half a surrogate pair",
			sqsonce.Message{Body: `{"specversion":"1.0","id":"\ud800","source":"/orders","type":"created"}`}, msgKey, sqsonce.KeyFromMessageID},
		{"CloudEvents batch", sqsonce.Message{Body: "[" + cloudEvent + "]"}, msgKey, sqsonce.KeyFromMessageID},
		{"truncated CloudEvent", sqsonce.Message{Body: cloudEvent[:60]}, msgKey, sqsonce.KeyFromMessageID},

		{"nothing but the message", sqsonce.Message{Body: "plain"}, msgKey, sqsonce.KeyFromMessageID},
		{"the MessageDeduplicationId is not a key source",
			sqsonce.Message{Group: "g", DedupID: "d"}, msgKey, sqsonce.KeyFromMessageID},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.m.ID, tt.m.QueueARN = msgID, queueARN
			got, source, err := tt.m.Key()
			if got != tt.want || source != tt.source || err != nil {
				t.Errorf("Key() = %q, %v, %v, want %q, %v", got, source, err, tt.want, tt.source)
			}
		})
	}
}

// Without the queue's ARN there is no key that needs it, rather than one without it: a worker that knows the ARN makes another.
func TestMessageKeyWithoutQueueARN(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]sqsonce.Message{
		"event-id without event-source": {ID: msgID, Attributes: text("event-id", "1")},
		"message ID":                    {ID: msgID, Body: "x"},
	} {
		key, _, err := m.Key()
		if key != "" || !errors.Is(err, sqsonce.ErrNoQueueARN) || sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeUnavailable {
			t.Errorf("%s: Key() = %q, %v, want no key and ErrNoQueueARN", name, key, err)
		}
	}
	if key, ok := eventkey.OfDedupID("", "", "d"); ok {
		t.Errorf("OfDedupID = %q, want none", key)
	}
}

// A message whose identity is damaged gets no key: the next key source's would not be the one its other copies have.
func TestMessageKeyRefuses(t *testing.T) {
	t.Parallel()
	binary := sqsonce.Attribute{Type: "Binary", Binary: []byte("1")}
	tests := []struct {
		name string
		m    sqsonce.Message
	}{
		{"empty event-key", sqsonce.Message{ID: msgID, Attributes: text("event-key", "", "event-id", "1")}},
		{"binary event-key", sqsonce.Message{ID: msgID, Attributes: with(text("event-id", "1"), "event-key", binary)}},
		{"empty event-id", sqsonce.Message{ID: msgID, Attributes: text("event-id", "", "event-source", "orders")}},
		{"binary event-id", sqsonce.Message{ID: msgID, Attributes: with(text("event-source", "orders"), "event-id", binary)}},
		{"binary event-source", sqsonce.Message{ID: msgID, Attributes: with(text("event-id", "1"), "event-source", binary)}},
		{"no message ID", sqsonce.Message{Body: "x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if key, _, err := tt.m.Key(); key != "" || !errors.Is(err, sqsonce.ErrNoEventID) {
				t.Errorf("Key() = %q, %v, want no key and ErrNoEventID", key, err)
			}
		})
	}
}

// An event-id is unique within its source. Without one, events of two queues stay apart, whatever their IDs are.
func TestEventIDWithoutSource(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, queue := range []string{queueARN, "arn:aws:sqs:eu-west-1:123456789012:refunds"} {
		for _, id := range []string{"7", "7|8", "7 8", "\xff", "\xfe", "é", strings.Repeat("x", 128), strings.Repeat("x", 129), strings.Repeat("x", 1<<18)} {
			m := sqsonce.Message{ID: msgID, QueueARN: queue, Attributes: text("event-id", id)}
			key, source, err := m.Key()
			if err != nil || source != sqsonce.KeyFromEventID || len(key) > 300 || !strings.HasPrefix(key, "sqs-event|") {
				t.Errorf("Key() of event-id %.20q = %.40q, %v, %v, want a key of the queue and the ID", id, key, source, err)
			}
			if prior, ok := seen[key]; ok {
				t.Errorf("%s and %s %.20q share the key %q", prior, queue, id, key)
			}
			seen[key] = queue + id
		}
	}
	// No source of that name can imitate such a key.
	forged := sqsonce.Message{Attributes: text("event-id", queueARN+"|7", "event-source", "sqs-event")}
	if key, _, err := forged.Key(); err != nil || seen[key] != "" {
		t.Errorf("Key() of a source named sqs-event = %q, %v, want another key", key, err)
	}
}

func TestDedupKey(t *testing.T) {
	t.Parallel()
	key := func(arn, group, dedup string) string {
		t.Helper()
		k, ok := eventkey.OfDedupID(arn, group, dedup)
		if ok != (dedup != "") {
			t.Errorf("OfDedupID of %q: ok = %v", dedup, ok)
		}
		return k
	}
	if got, want := key(queueARN, "g", "d"), "sqs-dedup|"+queueARN+"|g|d"; got != want {
		t.Errorf("OfDedupID = %q, want %q", got, want)
	}
	longest := strings.Repeat("d", 128) // what SQS accepts
	if got, want := key(queueARN, "g", longest), "sqs-dedup|"+queueARN+"|g|"+longest; got != want {
		t.Errorf("OfDedupID = %q, want %q", got, want)
	}
	if got := key(queueARN, "g", ""); got != "" {
		t.Errorf("OfDedupID without an ID = %q, want none", got)
	}
	// Groups and IDs may hold the separator.
	if a, b := key(queueARN, "g|x", "d"), key(queueARN, "g", "x|d"); a == b {
		t.Errorf("two groups share the key %q", a)
	}
	if a, b := key(queueARN, "g|", "d"), key(queueARN, "g", "|d"); a == b || !strings.HasPrefix(a, "sqs-dedup|sha256|") {
		t.Errorf("keys %q and %q, want two hashed ones", a, b)
	}
}

func TestRungString(t *testing.T) {
	t.Parallel()
	for r, want := range map[sqsonce.KeySource]string{
		0: "none", sqsonce.KeyFromAttribute: "attribute", sqsonce.KeyFromEventID: "event-id", sqsonce.KeyFromCloudEvents: "cloudevents",
		sqsonce.KeyFromMessageID: "message-id", sqsonce.KeyFromDedupID: "dedup-id", sqsonce.KeyFromFunction: "function", 10: "key source 10",
	} {
		if got := r.String(); got != want {
			t.Errorf("Rung(%d).String() = %q, want %q", r, got, want)
		}
	}
}

// FuzzMessageKey checks what no input may change: a key or an error, and that the message ID and the queue matter for their own key
// sources only: the ID is new after a redrive and a second send.
func FuzzMessageKey(f *testing.F) {
	f.Add("", "", "", "", "plain")
	f.Add("k", "", "", "", "")
	f.Add("", "1", "orders", "", `{"id":1}`)
	f.Add("", "", "", "1.0", `{"specversion":"1.0","id":"A","source":"s","type":"t"}`)
	f.Add("", "", "", "", `{"specversion":"1.0","id":"A","source":"s","type":"t"}`)
	f.Add("", "", "", "", `{"specversion":"1.0","id":"\udc00","source":"s","type":"t"}`)
	f.Add("", "", "", "", `{"specversion":"1.0","id":{"specversion":`)
	f.Add("\xff", "\x00", "\u2028", "", `"specversion"`)
	f.Fuzz(func(t *testing.T, key, id, source, spec, body string) {
		// An empty value stands for an absent attribute: SQS refuses empty ones.
		attrs := make(map[string]sqsonce.Attribute)
		for name, v := range map[string]string{
			"event-key": key, "event-id": id, "event-source": source,
			"ce-specversion": spec, "ce-id": id, "ce-source": source, "ce-type": "t",
		} {
			if v != "" {
				attrs[name] = sqsonce.Attribute{Type: "String", String: v}
			}
		}
		first := sqsonce.Message{ID: "m-1", QueueARN: queueARN, Attributes: attrs, Body: body}
		second := first
		second.ID, second.QueueARN = "m-2", queueARN+"-dlq"

		k1, r1, err := first.Key()
		if (k1 == "") != (err != nil) {
			t.Fatalf("Key() = %q, %v, want a key or an error", k1, err)
		}
		k2, r2, _ := second.Key()
		if r1 != r2 {
			t.Errorf("key source %v, and %v under another message ID", r1, r2)
		}
		if stable := r1 != sqsonce.KeyFromMessageID && r1 != sqsonce.KeyFromEventID; stable != (k1 == k2) {
			t.Errorf("key source %v: keys %q and %q of two message IDs", r1, k1, k2)
		}
	})
}
