package sqsonce_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
)

// envelope returns an envelope of AWS's documentation.
func envelope(t testing.TB, name string) string {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join("testdata", "envelopes", name+".json")))(t)
	return strings.TrimSpace(string(data))
}

// inSNS returns body as SNS sends it to a queue.
func inSNS(body string) string {
	return fmt.Sprintf(`{"Type":"Notification","MessageId":"m-1","TopicArn":"arn:aws:sns:eu-west-1:123456789012:orders","Message":%s,"Timestamp":"2026-11-23T06:00:00.000Z"}`, quoted(body))
}

// inEventBridge returns a JSON object as EventBridge sends it to a queue.
func inEventBridge(detail string) string {
	return `{"version":"0","id":"e-1","detail-type":"placed","source":"shop","account":"123456789012","time":"2026-11-23T06:00:00Z","region":"eu-west-1","resources":[],"detail":` + detail + `}`
}

// inCloudEvent returns JSON as the data of a CloudEvent.
func inCloudEvent(data string) string {
	return `{"specversion":"1.0","id":"A-1","source":"/orders","type":"created","data":` + data + `}`
}

func quoted(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}

const (
	snsMessageKey = "sns-message|arn:aws:sns:eu-west-1:123456789012:orders|m-1"
	eventKey      = "eventbridge-event|shop|e-1"
)

// unwrapped returns the message that the handler behind OpenEnvelope is called with, or nil.
func unwrapped(t testing.TB, m *sqsonce.Message) (got *sqsonce.Message, err error) {
	t.Helper()
	err = sqsonce.OpenEnvelope(func(ctx context.Context, inner *sqsonce.Message) error {
		got = inner
		if outer, ok := sqsonce.Original(ctx); !ok || outer != m {
			t.Errorf("Outer: %v, %t, want the delivery", outer, ok)
		}
		return nil
	})(t.Context(), m)
	return got, err
}

func TestUnwrap(t *testing.T) {
	t.Parallel()
	order := `{"id": "ord-1"}`
	elevenAttributes := strings.TrimSuffix(inSNS(order), "}") + `,"MessageAttributes":{`
	for i := range 11 {
		elevenAttributes += fmt.Sprintf(`%s"a%d":{"Type":"String","Value":"x"}`, strings.Repeat(",", min(i, 1)), i)
	}
	elevenAttributes += "}}"
	forged := strings.Replace(inSNS(order), `"Message"`, `"MessageAttributes":{"event-key":{"Type":"String","Value":"k"},"event-id":{"Type":"String","Value":"1"},"event-source":{"Type":"String","Value":"orders"}},"Message"`, 1)
	large := strings.Repeat("x", 3<<18) // a MiB in base64
	for _, tt := range []struct {
		name       string
		m          sqsonce.Message
		body       string
		attributes []string // their names; nil: not looked at
		typ        string
		key        string
		source     sqsonce.KeySource
	}{
		{"no envelope", sqsonce.Message{Body: order}, order, nil, "", msgKey, sqsonce.KeyFromMessageID},
		{"no JSON", sqsonce.Message{Body: `"TopicArn" "detail-type" "specversion"`}, `"TopicArn" "detail-type" "specversion"`, nil, "", msgKey, sqsonce.KeyFromMessageID},
		{"SNS", sqsonce.Message{Body: envelope(t, "sns")}, `{"id":"ord-1"}`, []string{"event-type", "photo", "tags"}, "order.placed",
			"sns-message|arn:aws:sns:us-west-2:123456789012:MyTopic|63a3f6b6-d533-4a47-aef9-fcf5cf758c76", sqsonce.KeyFromSNS},
		{"SNS FIFO", sqsonce.Message{Body: envelope(t, "sns-fifo")}, "Hello, World!", []string{}, "",
			"sns-message|arn:aws:sns:us-east-2:111122223333:MyTopic.fifo|dc1e94d9-56c5-5e96-808d-cc7f68faa162", sqsonce.KeyFromSNS},
		{"SNS, a message with eleven attributes", sqsonce.Message{Body: elevenAttributes}, order,
			[]string{"a0", "a1", "a10", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9"}, "", snsMessageKey, sqsonce.KeyFromSNS},
		{"SNS, a message that is not JSON", sqsonce.Message{Body: inSNS("{not JSON\n")}, "{not JSON\n", []string{}, "", snsMessageKey, sqsonce.KeyFromSNS},
		{"SNS, attributes of the delivery", sqsonce.Message{Body: inSNS(order), Attributes: text("event-id", "7", "event-source", "other", "reject-reason", "x")},
			order, []string{"event-id", "event-source"}, "", "other|7", sqsonce.KeyFromAttribute},
		{"SNS, whose message claims another ID", sqsonce.Message{Body: forged, Attributes: text("event-id", "7", "event-source", "other", "event-type", "note")},
			order, []string{"event-id", "event-source", "event-type"}, "note", "other|7", sqsonce.KeyFromAttribute},
		{"SNS, whose message has an ID", sqsonce.Message{Body: forged}, order, []string{"event-key", "event-id", "event-source"}, "", "k", sqsonce.KeyFromAttribute},
		{"EventBridge, with an ID of the delivery", sqsonce.Message{Body: inEventBridge(order), Attributes: text("event-id", "7", "event-source", "other", "event-type", "note")},
			order, []string{"event-id", "event-source", "event-type"}, "note", "other|7", sqsonce.KeyFromAttribute},
		{"EventBridge in SNS, whose message has an ID", sqsonce.Message{Body: strings.Replace(inSNS(inEventBridge(order)), `"Message"`, `"MessageAttributes":{"event-id":{"Type":"String","Value":"7"},"event-source":{"Type":"String","Value":"other"}},"Message"`, 1)},
			order, []string{"event-id", "event-source"}, "placed", "other|7", sqsonce.KeyFromAttribute},
		{"SNS as the data of a CloudEvent", sqsonce.Message{Body: inCloudEvent(inSNS(order))}, inSNS(order), nil, "created", "/orders|A-1", sqsonce.KeyFromCloudEvents},
		{"SNS as the data of a CloudEvent in binary mode", sqsonce.Message{Body: inSNS(order), Attributes: text("ce-specversion", "1.0", "ce-id", "B", "ce-source", "s", "ce-type", "t")},
			inSNS(order), nil, "t", "s|B", sqsonce.KeyFromCloudEvents},
		{"SNS, redriven with a key", sqsonce.Message{Body: inSNS(order), Attributes: text("event-key", "k")},
			order, []string{"event-key"}, "", "k", sqsonce.KeyFromAttribute},
		{"EventBridge", sqsonce.Message{Body: envelope(t, "eventbridge")}, "{\n    \"instance-id\": \"i-1234567890abcdef0\",\n    \"state\": \"terminated\"\n  }",
			[]string{}, "EC2 Instance State-change Notification", "eventbridge-event|aws.ec2|6a7e8feb-b491-4cf7-a9f1-bf3703467718", sqsonce.KeyFromEventBridge},
		{"EventBridge, redriven with a key", sqsonce.Message{Body: inEventBridge(order), Attributes: text("event-key", "k")},
			order, []string{"event-key"}, "placed", "k", sqsonce.KeyFromAttribute},
		{"EventBridge, a source that looks like a hash", sqsonce.Message{Body: strings.Replace(inEventBridge(order), `"shop"`, `"sha256"`, 1)},
			order, nil, "placed", "eventbridge-event|sha256|ec811e4cccb434f4bd2ddd1296551121a06fdd625c340b0c5c566a6a0672e2e8", sqsonce.KeyFromEventBridge},
		{"CloudEvent", sqsonce.Message{Body: envelope(t, "cloudevent"), Attributes: text("trace", "t")}, `{"xml":"why not"}`,
			[]string{"ce-comexampleextension1", "ce-comexampleothervalue", "ce-datacontenttype", "ce-id", "ce-source", "ce-specversion", "ce-time", "ce-type", "trace"},
			"com.example.someevent", "/mycontext/4|B234-1234-1234", sqsonce.KeyFromCloudEvents},
		{"CloudEvent of JSON", sqsonce.Message{Body: inCloudEvent(order)}, order, nil, "created", "/orders|A-1", sqsonce.KeyFromCloudEvents},
		{"CloudEvent of a JSON string", sqsonce.Message{Body: inCloudEvent(`"text"`)}, `"text"`, nil, "created", "/orders|A-1", sqsonce.KeyFromCloudEvents},
		{"CloudEvent of text", sqsonce.Message{Body: strings.Replace(inCloudEvent(`"text"`), `"data"`, `"datacontenttype":"text/plain; charset=utf-8","data"`, 1)},
			"text", nil, "created", "/orders|A-1", sqsonce.KeyFromCloudEvents},
		{"CloudEvent of another JSON type", sqsonce.Message{Body: strings.Replace(inCloudEvent(`"text"`), `"data"`, `"datacontenttype":"application/vnd.x+JSON; v=1","data"`, 1)},
			`"text"`, nil, "created", "/orders|A-1", sqsonce.KeyFromCloudEvents},
		{"CloudEvent without data", sqsonce.Message{Body: `{"specversion":"1.0","id":"A-1","source":"/orders","type":"created","subject":null}`}, "",
			[]string{"ce-id", "ce-source", "ce-specversion", "ce-type"}, "created", "/orders|A-1", sqsonce.KeyFromCloudEvents},
		{"CloudEvent of a MiB in base64", sqsonce.Message{Body: strings.Replace(inCloudEvent(quoted(base64.StdEncoding.EncodeToString([]byte(large)))), `"data"`, `"data_base64"`, 1)},
			large, nil, "created", "/orders|A-1", sqsonce.KeyFromCloudEvents},
		{"CloudEvent with null in base64", sqsonce.Message{Body: strings.Replace(inCloudEvent(order), `"data"`, `"data_base64":null,"data"`, 1)}, order,
			[]string{"ce-id", "ce-source", "ce-specversion", "ce-type"}, "created", "/orders|A-1", sqsonce.KeyFromCloudEvents},
		{"CloudEvent with an event-id", sqsonce.Message{Body: inCloudEvent(order), Attributes: text("event-id", "7", "event-source", "orders", "event-type", "placed")},
			order, nil, "placed", "orders|7", sqsonce.KeyFromAttribute},
		{"CloudEvent in binary mode", sqsonce.Message{Body: inCloudEvent(order), Attributes: text("ce-specversion", "1.0", "ce-id", "B", "ce-source", "s", "ce-type", "t")},
			inCloudEvent(order), nil, "t", "s|B", sqsonce.KeyFromCloudEvents},
		{"S3", sqsonce.Message{Body: envelope(t, "s3")}, envelope(t, "s3"), nil, "", msgKey, sqsonce.KeyFromMessageID},
		{"S3 in SNS", sqsonce.Message{Body: inSNS(envelope(t, "s3"))}, envelope(t, "s3"), nil, "", snsMessageKey, sqsonce.KeyFromSNS},
		{"S3 in EventBridge", sqsonce.Message{Body: inEventBridge(envelope(t, "s3"))}, envelope(t, "s3"), nil, "placed", eventKey, sqsonce.KeyFromEventBridge},
		{"EventBridge in SNS", sqsonce.Message{Body: inSNS(inEventBridge(order))}, order, nil, "placed", eventKey, sqsonce.KeyFromEventBridge},
		{"CloudEvent in SNS", sqsonce.Message{Body: inSNS(inCloudEvent(order))}, order, nil, "created", "/orders|A-1", sqsonce.KeyFromCloudEvents},
		{"CloudEvent in EventBridge in SNS, redriven", sqsonce.Message{Body: inSNS(inEventBridge(inCloudEvent(order))), Attributes: text("event-key", "k")},
			order, nil, "created", "k", sqsonce.KeyFromAttribute},
		{"SNS in SNS in SNS in SNS", sqsonce.Message{Body: inSNS(inSNS(inSNS(inSNS(order))))}, order, nil, "", snsMessageKey, sqsonce.KeyFromSNS},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := tt.m
			m.ID, m.QueueARN, m.ReceiptHandle, m.ReceiveCount, m.Group, m.DedupID, m.TraceHeader = msgID, queueARN, "handle", 3, "g", "d", "Root=1"
			before := m
			got := must.Get(unwrapped(t, &m))(t)
			if got.Body != tt.body {
				t.Errorf("body: got %.200q, want %.200q", got.Body, tt.body)
			}
			if key, source, err := got.Key(); key != tt.key || source != tt.source || err != nil {
				t.Errorf("key: got %q, %v, %v, want %q, %v", key, source, err, tt.key, tt.source)
			}
			if tt.attributes != nil {
				names := make(map[string]bool)
				for _, name := range tt.attributes {
					names[name] = true
				}
				for name := range got.Attributes {
					if !names[name] {
						t.Errorf("attribute %s is too many", name)
					}
				}
				if len(got.Attributes) != len(names) {
					t.Errorf("attributes: got %v, want %v", got.Attributes, tt.attributes)
				}
			}
			typ := ""
			route := func(name string) sqsonce.Handler {
				return func(context.Context, *sqsonce.Message) error { typ = name; return nil }
			}
			if err := sqsonce.ByType(map[string]sqsonce.Handler{tt.typ: route(tt.typ), "": route("")})(t.Context(), got); err != nil || typ != tt.typ {
				t.Errorf("type: got %q, %v, want %q", typ, err, tt.typ)
			}
			if diff := cmp.Diff(before, m); diff != "" {
				t.Errorf("OpenEnvelope changed the delivery (-before +after):\n%s", diff)
			}
			rest := *got
			rest.Body, rest.Attributes, rest.Envelope = m.Body, m.Attributes, m.Envelope
			if diff := cmp.Diff(m, rest); diff != "" {
				t.Errorf("more than body, attributes and envelope differ (-delivery +inner):\n%s", diff)
			}
		})
	}
}

// Neither the way a name is written nor the depth of the data hides an envelope: its event would have another key each time that it
// is sent.
func TestUnwrapHiddenEnvelopes(t *testing.T) {
	t.Parallel()
	const levels = 12_000 // encoding/json reads 10,000
	deep := strings.Repeat("[", levels) + "7" + strings.Repeat("]", levels)
	for name, tt := range map[string]struct{ envelope, body, key string }{
		"SNS, escaped":         {strings.Replace(inSNS("x"), "TopicArn", `\u0054opicArn`, 1), "x", snsMessageKey},
		"EventBridge, escaped": {strings.Replace(inEventBridge("{}"), "detail-type", `detail\u002dtype`, 1), "{}", eventKey},
		"CloudEvent, escaped":  {strings.Replace(inCloudEvent("{}"), "specversion", `s\u00e9\u0070ecversion":1,"specversio\u006E`, 1), "{}", "/orders|A-1"},
		"EventBridge, deep":    {inEventBridge(`{"a": ` + deep + `}`), `{"a": ` + deep + `}`, eventKey},
		"CloudEvent, deep":     {inCloudEvent(" " + deep), deep, "/orders|A-1"},
		"SNS, deep":            {strings.Replace(inSNS("x"), "{", `{"More" : `+deep+`, `, 1), "x", snsMessageKey},
	} {
		got, err := unwrapped(t, &sqsonce.Message{ID: msgID, Body: tt.envelope})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if key, _, err := got.Key(); got.Body != tt.body || key != tt.key || err != nil {
			t.Errorf("%s: body %.40s, key %q, %v; want %.40s, %q", name, got.Body, key, err, tt.body, tt.key)
		}
	}
	for name, body := range map[string]string{
		"deep, more text": inCloudEvent(deep) + "x", "deep, broken": inCloudEvent(deep)[1:], "deep, cut": strings.TrimSuffix(inCloudEvent(deep), "}"), "deep list": "[" + inCloudEvent(deep),
	} {
		if got, err := unwrapped(t, &sqsonce.Message{ID: msgID, Body: body}); err != nil || got.Body != body {
			t.Errorf("%s: changed, or %v", name, err)
		}
	}
}

func TestUnwrapReadsAttributes(t *testing.T) {
	t.Parallel()
	got := must.Get(unwrapped(t, &sqsonce.Message{ID: msgID, Body: envelope(t, "sns")}))(t)
	want := map[string]sqsonce.Attribute{
		"event-type": {Type: "String", String: "order.placed"},
		"photo":      {Type: "Binary", Binary: []byte{1, 2}},
		"tags":       {Type: "String.Array", String: `["a","b"]`},
	}
	if diff := cmp.Diff(want, got.Attributes); diff != "" {
		t.Errorf("SNS (-want +got):\n%s", diff)
	}
	got = must.Get(unwrapped(t, &sqsonce.Message{ID: msgID, Body: envelope(t, "cloudevent")}))(t)
	for name, want := range map[string]string{"ce-comexampleothervalue": "5", "ce-comexampleextension1": "value", "ce-time": "2018-04-05T17:31:00Z"} {
		if diff := cmp.Diff(sqsonce.Attribute{Type: "String", String: want}, got.Attributes[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Attributes may mirror a CloudEvent in structured mode, as filter policies need it: it is opened all the same.
func TestUnwrapMirroredCloudEvent(t *testing.T) {
	t.Parallel()
	order := `{"ID":"ord-1"}`
	event := inCloudEvent(order)
	other := strings.Replace(inCloudEvent(event), `"A-1"`, `"B-1"`, 1) // an event whose data is an event
	mirror := []string{"specversion", "1.0", "id", "A-1", "source", "/orders", "type", "created"}
	others := []string{"specversion", "1.0", "id", "B", "source", "/orders", "type", "created"}
	prefixed := func(prefix string, pairs []string, more ...string) map[string]sqsonce.Attribute {
		attributes := text(more...)
		for i := 0; i < len(pairs); i += 2 {
			attributes[prefix+pairs[i]] = sqsonce.Attribute{Type: "String", String: pairs[i+1]}
		}
		return attributes
	}
	const typed = `"MessageAttributes":{"specversion":{"Type":"String","Value":"1.0"},"id":{"Type":"String","Value":"A-1"},"source":{"Type":"String","Value":"/orders"},"type":{"Type":"String","Value":"created"}},"Message"`
	for _, tt := range []struct {
		name string
		m    sqsonce.Message
		body string // "": the body as it is
		key  string
	}{
		{"ce-", sqsonce.Message{Body: event, Attributes: prefixed("ce-", mirror)}, order, "/orders|A-1"},
		{"ce_", sqsonce.Message{Body: event, Attributes: prefixed("ce_", mirror)}, order, "/orders|A-1"},
		{"no prefix", sqsonce.Message{Body: event, Attributes: prefixed("", mirror)}, order, "/orders|A-1"},
		{"in SNS", sqsonce.Message{Body: strings.Replace(inSNS(event), `"Message"`, typed, 1)}, order, "/orders|A-1"},
		{"content-type", sqsonce.Message{Body: event, Attributes: prefixed("ce-", others, "Content-Type", "Application/CloudEvents+json; charset=utf-8")}, order, "/orders|A-1"},
		{"contentType", sqsonce.Message{Body: event, Attributes: prefixed("", others, "contentType", "application/cloudevents")}, order, "/orders|A-1"},
		{"an event in one whose content type says structured", sqsonce.Message{Body: other, Attributes: prefixed("ce-", mirror, "content-type", "application/cloudevents+json")}, event, "/orders|B-1"},
		{"another content type", sqsonce.Message{Body: event, Attributes: prefixed("ce-", mirror, "content-type", "application/json")}, order, "/orders|A-1"},
		{"an event in a mirrored one", sqsonce.Message{Body: other, Attributes: prefixed("ce-", []string{"specversion", "1.0", "id", "B-1", "source", "/orders", "type", "created"})}, event, "/orders|B-1"},
		{"an event in one whose datacontenttype says so", sqsonce.Message{Body: strings.Replace(other, `"data":{`, `"datacontenttype":"application/cloudevents+json","data":{`, 1)}, event, "/orders|B-1"},
		{"another ID, and a datacontenttype that says so", sqsonce.Message{Body: event, Attributes: prefixed("ce-", others, "ce-datacontenttype", "application/cloudevents+json")}, "", "/orders|B"},
		{"an event in an event", sqsonce.Message{Body: other}, event, "/orders|B-1"},
		{"another ID", sqsonce.Message{Body: event, Attributes: prefixed("ce-", others)}, "", "/orders|B"},
		{"another source", sqsonce.Message{Body: event, Attributes: prefixed("ce-", []string{"specversion", "1.0", "id", "A-1", "source", "/x", "type", "t"})}, "", "/x|A-1"},
		{"EventBridge of the same source and ID", sqsonce.Message{Body: inEventBridge(order), Attributes: prefixed("ce-", []string{"specversion", "1.0", "id", "e-1", "source", "shop", "type", "t"})}, "", "shop|e-1"},
		{"another content type and ID", sqsonce.Message{Body: event, Attributes: prefixed("ce-", others, "content-type", "application/json", "note", "application/cloudevents")}, "", "/orders|B"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := tt.m
			m.ID = msgID
			got := must.Get(unwrapped(t, &m))(t)
			if tt.body == "" {
				tt.body = m.Body
			}
			if got.Body != tt.body {
				t.Errorf("body: got %s, want %s", got.Body, tt.body)
			}
			if key, source, err := got.Key(); key != tt.key || source != sqsonce.KeyFromCloudEvents || err != nil {
				t.Errorf("key: got %q, %v, %v, want %q", key, source, err, tt.key)
			}
			type number struct{ Number string }
			if _, err := sqsonce.Decode[number](got); (got.Body != order) != errors.Is(err, sqsonce.ErrEnvelope) || isReject(err) {
				t.Errorf("Decode of %s: %v", got.Body, err)
			}
		})
	}
}

// What is not understood does not reach the handler, and is not rejected: it is delivered again.
func TestUnwrapRefuses(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"confirmation of a subscription":     envelope(t, "sns-confirmation"),
		"a message that is not a string":     strings.Replace(inSNS("x"), `"Message":"x"`, `"Message":{}`, 1),
		"a message that is null":             strings.Replace(inSNS("x"), `"Message":"x"`, `"Message":null`, 1),
		"attributes that are no object":      strings.Replace(inSNS("x"), `"Message"`, `"MessageAttributes":[],"Message"`, 1),
		"an attribute that is not base64":    strings.Replace(inSNS("x"), `"Message"`, `"MessageAttributes":{"a":{"Type":"Binary","Value":"!"}},"Message"`, 1),
		"an attribute that is not Unicode":   strings.Replace(inSNS("x"), `"Message"`, `"MessageAttributes":{"event-id":{"Type":"String","Value":"\ud800"}},"Message"`, 1),
		"a CloudEvent that is not base64":    strings.Replace(inCloudEvent(`"!"`), `"data"`, `"data_base64"`, 1),
		"five envelopes":                     inSNS(inSNS(inSNS(inSNS(inSNS("x"))))),
		"an envelope that is refused in one": inSNS(envelope(t, "sns-confirmation")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := unwrapped(t, &sqsonce.Message{ID: msgID, Body: body})
			if got != nil || !errors.Is(err, sqsonce.ErrEnvelope) || isReject(err) {
				t.Errorf("got %v, %v, want no call and ErrEnvelope, not rejected", got, err)
			}
			if err != nil && !strings.Contains(err.Error(), msgID) {
				t.Errorf("%v does not name the message", err)
			}
		})
	}
}

// What is like an envelope and like nothing else is neither opened nor decoded as an empty order.
func TestEnvelopesThatAreNotUnderstood(t *testing.T) {
	t.Parallel()
	type order struct{ Number string }
	event := inCloudEvent("{}")
	for _, tt := range []struct{ name, body, old, new string }{
		{"SNS without Timestamp", inSNS("x"), `"Timestamp"`, `"timestamp"`},
		{"SNS with a number for MessageId", inSNS("x"), `"m-1"`, `1`},
		{"EventBridge with null for detail", inEventBridge("null"), "", ""},
		{"EventBridge with a text for detail", inEventBridge(`"{}"`), "", ""},
		{"EventBridge with an array for detail", inEventBridge(`[{}]`), "", ""},
		{"EventBridge without region", inEventBridge("{}"), `"region"`, `"Region"`},
		{"EventBridge without id", inEventBridge("{}"), `"id":"e-1",`, ``},
		{"EventBridge without time", inEventBridge("{}"), `"time"`, `"at"`},
		{"EventBridge with an empty source", inEventBridge("{}"), `"shop"`, `""`},
		{"CloudEvents with a number for id", event, `"A-1"`, `1`},
		{"CloudEvents with an empty id", event, `"A-1"`, `""`},
		{"CloudEvents with half a character in its id", event, `A-1`, `\ud800`},
		{"CloudEvents without id", event, `"id":"A-1",`, ``},
		{"CloudEvents without source", event, `"source":"/orders",`, ``},
		{"CloudEvents without type", event, `"type":"created",`, ``},
		{"CloudEvents without type and data", event, `"type":"created","data":{}`, `"x":0`},
		{"CloudEvents with a type and data alone", event, `"id":"A-1","source":"/orders",`, ``},
		{"CloudEvents with a type and base64 alone", `{"specversion":"1.0","type":"created","data_base64":"e30="}`, "", ""},
		{"CloudEvents with a number for specversion", event, `"1.0"`, `1.0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := strings.Replace(tt.body, tt.old, tt.new, 1)
			if got, err := unwrapped(t, &sqsonce.Message{ID: msgID, Body: body}); got != nil || !errors.Is(err, sqsonce.ErrEnvelope) || isReject(err) {
				t.Errorf("OpenEnvelope of %s: %v, %v", body, got, err)
			}
			if _, err := sqsonce.Decode[order](&sqsonce.Message{Body: body}); !errors.Is(err, sqsonce.ErrEnvelope) || isReject(err) {
				t.Errorf("Decode of %s: %v", body, err)
			}
		})
	}
}

// A body that lacks a field by which an envelope is known is none: it may be an order that has a topic.
func TestNoEnvelope(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ body, fields string }{
		{inSNS("x"), "Type MessageId TopicArn Message"},
		{inEventBridge("{}"), "detail-type source detail"},
		{inCloudEvent("{}"), "specversion"},
	} {
		for _, field := range strings.Fields(tt.fields) {
			for _, other := range []string{`"other-` + field + `":`, `"` + strings.ToUpper(field[:1]) + strings.ToUpper(field[1:]) + `":`} {
				body := strings.Replace(tt.body, `"`+field+`":`, other, 1)
				if body == tt.body {
					t.Fatalf("no %s in %s", field, body)
				}
				if got, err := unwrapped(t, &sqsonce.Message{ID: msgID, Body: body}); err != nil || got.Body != body {
					t.Errorf("without %s: %v, %v, want the body as it is", field, got, err)
				}
			}
		}
	}
	for _, body := range []string{
		strings.Replace(inSNS("x"), `"arn:`, `"`, 1), "[" + inSNS("x") + "]", inSNS("x") + "{}",
		`{"specversion":"2","id":"ord-1","number":"n1"}`, `{"id":"ord-1","source":"web","type":"gift","data":{"specversion":"2"}}`,
	} {
		if got, err := unwrapped(t, &sqsonce.Message{ID: msgID, Body: body}); err != nil || got.Body != body {
			t.Errorf("%s: %v, %v, want the body as it is", body, got, err)
		}
	}
}

// A second OpenEnvelope finds nothing to take off, and Outer stays the delivery.
func TestUnwrapTwice(t *testing.T) {
	t.Parallel()
	m := &sqsonce.Message{ID: msgID, Body: inSNS(inEventBridge("{}"))}
	h := sqsonce.OpenEnvelope(sqsonce.OpenEnvelope(func(ctx context.Context, inner *sqsonce.Message) error {
		if outer, _ := sqsonce.Original(ctx); outer != m || inner.Body != "{}" {
			return fmt.Errorf("outer %v, inner %v", outer, inner)
		}
		return nil
	}))
	if err := h(t.Context(), m); err != nil {
		t.Error(err)
	}
	if _, ok := sqsonce.Original(t.Context()); ok {
		t.Error("Outer found a message without OpenEnvelope")
	}
}

// FromContext gives JSON's function the message in the envelope.
func TestUnwrapJSON(t *testing.T) {
	t.Parallel()
	type order struct{ ID string }
	var got order
	h := sqsonce.OpenEnvelope(sqsonce.JSON(func(ctx context.Context, o order) error {
		got = o
		if m, ok := sqsonce.FromContext(ctx); !ok || m.Envelope.Source != sqsonce.KeyFromSNS {
			return fmt.Errorf("FromContext: %+v, %t", m, ok)
		}
		return nil
	}))
	if err := h(t.Context(), &sqsonce.Message{Body: inSNS(`{"ID":"ord-1"}`)}); err != nil || got.ID != "ord-1" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// EventKey gives no event the key of an envelope.
func TestEnvelopeKeysAreReserved(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"sns-message", "eventbridge-event", "s3-notification"} {
		if key, err := sqsonce.EventKey(source, "x|y"); err != nil || !strings.HasPrefix(key, "sha256|") {
			t.Errorf("%s: %q, %v, want a hash", source, key, err)
		}
	}
}

// Without OpenEnvelope an envelope does not decode as an empty order. It is not rejected: the queue would be dead-lettered at once.
func TestDecodeRefusesEnvelopes(t *testing.T) {
	t.Parallel()
	type order struct{ ID string }
	for name, body := range map[string]string{
		"SNS": envelope(t, "sns"), "EventBridge": envelope(t, "eventbridge"), "a confirmation of SNS": envelope(t, "sns-confirmation"),
		"CloudEvents": inCloudEvent(`{"ID":"1"}`), "CloudEvents in base64": envelope(t, "cloudevent"),
	} {
		m := &sqsonce.Message{Body: body}
		for call, f := range map[string]func() error{
			"Decode":           func() error { _, err := sqsonce.Decode[order](m); return err },
			"Decode a pointer": func() error { _, err := sqsonce.Decode[*order](m); return err },
			"JSON": func() error {
				return sqsonce.JSON(func(context.Context, order) error { t.Errorf("%s: called", name); return nil })(t.Context(), m)
			},
		} {
			err := f()
			if !errors.Is(err, sqsonce.ErrEnvelope) || isReject(err) || !strings.Contains(err.Error(), "sqsonce.OpenEnvelope") {
				t.Errorf("%s of %s: %v, want an ordinary ErrEnvelope that names OpenEnvelope", call, name, err)
			}
		}
		if _, err := sqsonce.Decode[map[string]any](m); err != nil {
			t.Errorf("a map: %v", err)
		}
		if _, err := sqsonce.Decode[json.RawMessage](m); err != nil {
			t.Errorf("raw JSON: %v", err)
		}
	}
	type notification struct{ TopicArn, Message string }
	if n, err := sqsonce.Decode[notification](&sqsonce.Message{Body: envelope(t, "sns")}); err != nil || n.Message == "" {
		t.Errorf("a type for notifications: %+v, %v", n, err)
	}
	type event struct {
		Detail order `json:"detail"`
	}
	if _, err := sqsonce.Decode[event](&sqsonce.Message{Body: envelope(t, "eventbridge")}); err != nil {
		t.Errorf("a type for events: %v", err)
	}
	type cloudEvent struct {
		Data order `json:"data"`
	}
	if _, err := sqsonce.Decode[cloudEvent](&sqsonce.Message{Body: inCloudEvent("{}")}); err != nil {
		t.Errorf("a type for CloudEvents: %v", err)
	}
	binary := &sqsonce.Message{Body: inCloudEvent("{}"), Attributes: text("ce-specversion", "1.0", "ce-id", "B", "ce-source", "s", "ce-type", "t")}
	if _, err := sqsonce.Decode[order](binary); !errors.Is(err, sqsonce.ErrEnvelope) || isReject(err) || !strings.Contains(err.Error(), "where sqsonce.OpenEnvelope leaves it") {
		t.Errorf("a CloudEvent as the data of one in binary mode: %v", err)
	}
	if _, err := sqsonce.Decode[cloudEvent](binary); err != nil {
		t.Errorf("a type for a CloudEvent as the data of one in binary mode: %v", err)
	}
	for _, body := range []string{"[" + inCloudEvent("{}") + "]", " \n[{}, " + inSNS("x") + "]"} {
		batch := &sqsonce.Message{Body: body}
		if _, err := sqsonce.Decode[[]order](batch); !errors.Is(err, sqsonce.ErrEnvelope) || isReject(err) || !strings.Contains(err.Error(), "where sqsonce.OpenEnvelope leaves it") {
			t.Errorf("a batch: %v", err)
		}
		if _, err := sqsonce.Decode[[]map[string]any](batch); err != nil {
			t.Errorf("a batch of maps: %v", err)
		}
	}
	if got, err := sqsonce.Decode[[]cloudEvent](&sqsonce.Message{Body: "[" + inCloudEvent("{}") + "]"}); err != nil || len(got) != 1 {
		t.Errorf("a type for batches of CloudEvents: %v", err)
	}
	if _, err := sqsonce.Decode[[]order](&sqsonce.Message{Body: `[{"ID":"1"},{"ID":"2","specversion":"2"}]`}); err != nil {
		t.Errorf("an array of orders: %v", err)
	}
	if _, err := sqsonce.Decode[order](&sqsonce.Message{Body: `{"ID":"1","TopicArn":"x","detail-type":"y"}`}); err != nil {
		t.Errorf("an order with a topic: %v", err)
	}
}

func FuzzUnwrap(f *testing.F) {
	for _, name := range []string{"sns", "sns-fifo", "sns-confirmation", "eventbridge", "cloudevent", "s3"} {
		f.Add(envelope(f, name), "k")
		f.Add(inSNS(envelope(f, name)), "")
	}
	f.Add(inSNS(inEventBridge(inCloudEvent("{}"))), "k")
	f.Fuzz(func(t *testing.T, body, key string) {
		m := &sqsonce.Message{ID: msgID, QueueARN: queueARN, Body: body}
		if key != "" {
			m.Attributes = text("event-key", key)
		}
		got, err := unwrapped(t, m)
		if m.Body != body || len(m.Attributes) > 1 {
			t.Fatal("the delivery was changed")
		}
		if err != nil {
			if got != nil || !errors.Is(err, sqsonce.ErrEnvelope) {
				t.Fatalf("got %v, %v", got, err)
			}
			return
		}
		own, source, err := got.Key()
		if key != "" && own != key {
			t.Fatalf("key %q, %v, want the delivery's %q", own, err, key)
		}
		if err == nil && (source == sqsonce.KeyFromSNS) != strings.HasPrefix(own, "sns-message|") && key == "" {
			t.Fatalf("key %q from %v", own, source)
		}
		again, err := unwrapped(t, got)
		if err != nil || again != got && again.Body != got.Body {
			t.Fatalf("a second OpenEnvelope: %v, %v", again, err)
		}
	})
}

func isReject(err error) bool { return sqsonce.OutcomeOf(err).Reject }
