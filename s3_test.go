package sqsonce_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce"
)

// s3Record returns a record of a notification, with a raw JSON value for each of its parts.
func s3Record(bucket, key, version, sequencer, event string) string {
	return fmt.Sprintf(`{"eventSource":"aws:s3","eventName":%s,"s3":{"bucket":{"name":%s},"object":{"key":%s,"versionId":%s,"sequencer":%s}}}`,
		event, bucket, key, version, sequencer)
}

func s3Body(records ...string) string { return `{"Records":[` + strings.Join(records, ",") + `]}` }

// throughS3 returns the message that h gets, or nil if it is not called.
func throughS3(t testing.TB, m *sqsonce.Message) (got *sqsonce.Message, err error) {
	t.Helper()
	err = sqsonce.S3(func(_ context.Context, inner *sqsonce.Message) error { got = inner; return nil })(t.Context(), m)
	return got, err
}

func s3Key(t testing.TB, m *sqsonce.Message) (string, sqsonce.KeySource) {
	t.Helper()
	got, err := throughS3(t, m)
	if err != nil || got == nil {
		t.Fatalf("S3: %v, %v", got, err)
	}
	if got.Body != m.Body {
		t.Errorf("the body changed: %s", got.Body)
	}
	key, source, err := got.Key()
	if err != nil {
		t.Fatal(err)
	}
	return key, source
}

const changeKey = "s3-notification|amzn-s3-demo-bucket|HappyFace.jpg|096fKKXTRTtl3on89fVO.nfljtsv6qko|0055AED6DCD90281E5|ObjectCreated:Put"

// TestS3 is about AWS's example: two notifications of one change are one event, in whatever message they come.
func TestS3(t *testing.T) {
	t.Parallel()
	body := envelope(t, "s3")
	again := strings.NewReplacer("C3D13FE58DE4C810", "EF8D1234ABCD5678", "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:01.000Z").Replace(body)
	for name, m := range map[string]*sqsonce.Message{
		"one": {ID: msgID, QueueARN: queueARN, Body: body}, "another": {ID: "other", QueueARN: queueARN + "-2", Body: again}, "no ARN": {ID: msgID, Body: body},
	} {
		if key, source := s3Key(t, m); key != changeKey || source != sqsonce.KeyFromS3 {
			t.Errorf("%s: key %q from %s, want %q", name, key, source, changeKey)
		}
	}
	var got []string
	routed := sqsonce.S3(sqsonce.ByType(map[string]sqsonce.Handler{"ObjectCreated:Put": func(_ context.Context, m *sqsonce.Message) error {
		key, _, err := m.Key()
		got = append(got, key)
		return err
	}}))
	for _, h := range []sqsonce.Handler{routed, sqsonce.OpenEnvelope(routed), sqsonce.OpenEnvelope(sqsonce.S3(routed))} {
		if err := h(t.Context(), &sqsonce.Message{ID: msgID, Body: body}); err != nil {
			t.Error(err)
		}
	}
	if err := sqsonce.OpenEnvelope(routed)(t.Context(), &sqsonce.Message{ID: msgID, Body: inSNS(body)}); err != nil {
		t.Errorf("through SNS: %v", err)
	}
	if strings.Join(got, "\n") != strings.Join([]string{changeKey, changeKey, changeKey, changeKey}, "\n") {
		t.Errorf("keys %q, want four of %q", got, changeKey)
	}
	if sqsonce.S3(nil) != nil {
		t.Error("S3 of a nil handler is one")
	}
}

// An ID that the message has of its own counts, as for envelopes.
func TestS3KeepsTheMessagesOwnID(t *testing.T) {
	t.Parallel()
	for want, attributes := range map[string]map[string]sqsonce.Attribute{
		"k":      {"event-key": {Type: "String", String: "k"}},
		"shop|1": {"event-id": {Type: "String", String: "1"}, "event-source": {Type: "String", String: "shop"}},
	} {
		if key, _ := s3Key(t, &sqsonce.Message{ID: msgID, Body: envelope(t, "s3"), Attributes: attributes}); key != want {
			t.Errorf("key %q, want %q", key, want)
		}
	}
}

// Each change has its own key. Text of a key that looks like the border of two parts makes no two changes one.
func TestS3ChangesStayApart(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1024)
	seen := map[string]string{}
	for _, parts := range [][5]string{
		{"b", "k", "v", "1", "ObjectCreated:Put"}, {"b", "k", "v", "2", "ObjectCreated:Put"}, {"b", "k", "w", "1", "ObjectCreated:Put"},
		{"b", "k", "v", "1", "ObjectCreated:Copy"}, {"b", "l", "v", "1", "ObjectCreated:Put"}, {"c", "k", "v", "1", "ObjectCreated:Put"},
		{"b", "k", "", "1", "ObjectCreated:Put"}, {"b", "k", "1", "v", "ObjectCreated:Put"}, {"b", "k|v", "", "1", "ObjectCreated:Put"},
		{"b|k", "v", "", "1", "ObjectCreated:Put"}, {"b", "k", "v|1", "1", "ObjectCreated:Put"}, {"b", "k", "v", "1|1", "ObjectCreated:Put"},
		{"sha256", "k", "v", "1", "ObjectCreated:Put"}, {"b", long, "v", "1", "e"}, {"b", long + "x", "v", "1", "e"}, {"b", "k", long, "1", "e"},
		{"b", "ü", "", "1", "e"}, {"b", "u\u0308", "", "1", "e"}, {"b", "u+%C3%BC", "", "1", "e"}, {"b", "\x00", "", "1", "e"},
	} {
		var raw [5]string
		for i, p := range parts {
			raw[i] = quoted(p)
		}
		body := s3Body(s3Record(raw[0], raw[1], raw[2], raw[3], raw[4]))
		key, source := s3Key(t, &sqsonce.Message{ID: msgID, QueueARN: queueARN, Body: body})
		if source != sqsonce.KeyFromS3 || !strings.HasPrefix(key, "s3-notification|") {
			t.Errorf("%.80q: key %q from %s", parts, key, source)
		}
		if other, ok := seen[key]; ok {
			t.Errorf("%.80q and %.80s have the key %q", parts, other, key)
		}
		seen[key] = body
	}
}

// A body that S3 cannot vouch for keeps the key that it has without S3, and reaches the handler.
func TestS3FallsBack(t *testing.T) {
	t.Parallel()
	const put = `"ObjectCreated:Put"`
	record := s3Record(`"b"`, `"k"`, `"v"`, `"1"`, put)
	deep := strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)
	for name, tt := range map[string]struct{ body, eventType string }{
		"two records":           {body: s3Body(record, record)},
		"two changes":           {body: s3Body(record, s3Record(`"b"`, `"k"`, `"v"`, `"2"`, put))},
		"a record and a null":   {body: s3Body(record, "null")},
		"records":               {body: s3Body()},
		"records are an object": {body: `{"Records":` + record + `}`},
		"records are null":      {body: `{"Records":null,"a":"aws:s3"}`},
		"a record in a record":  {body: s3Body("[" + record + "]")},
		"an array":              {body: "[" + s3Body(record) + "]"},
		"data after it":         {body: s3Body(record) + "{}"},
		"broken":                {body: strings.TrimSuffix(s3Body(record), "}")},
		"text":                  {body: `"aws:s3"`},
		"another service":       {body: strings.Replace(s3Body(record), "aws:s3", "aws:ses", 1) + " "},
		"other letters":         {body: strings.Replace(s3Body(record), `"Records"`, `"records"`, 1)},
		"an event that is none": {body: s3Body(s3Record(`"b"`, `"k"`, `"v"`, `"1"`, `{"a":"aws:s3"}`))},
		"no event":              {body: s3Body(s3Record(`"b"`, `"k"`, `"v"`, `"1"`, `""`))},
		"a deep record":         {body: s3Body(strings.Replace(record, `{"eventSource"`, `{"deep":`+deep+`,"eventSource"`, 1))},

		"no sequencer":         {strings.Replace(s3Body(record), `,"sequencer":"1"`, "", 1), "ObjectCreated:Put"},
		"an empty sequencer":   {s3Body(s3Record(`"b"`, `"k"`, `"v"`, `""`, put)), "ObjectCreated:Put"},
		"a sequencer of null":  {s3Body(s3Record(`"b"`, `"k"`, `"v"`, `null`, put)), "ObjectCreated:Put"},
		"a number":             {s3Body(s3Record(`"b"`, `"k"`, `"v"`, `1`, put)), "ObjectCreated:Put"},
		"half of a character":  {s3Body(s3Record(`"b"`, `"\ud800"`, `"v"`, `"1"`, put)), "ObjectCreated:Put"},
		"no Unicode":           {s3Body(s3Record(`"b"`, "\"\xff\"", `"v"`, `"1"`, put)), "ObjectCreated:Put"},
		"a version of 1":       {s3Body(s3Record(`"b"`, `"k"`, `1`, `"1"`, put)), "ObjectCreated:Put"},
		"an unreadable one":    {s3Body(s3Record(`"b"`, `"k"`, `"\udead"`, `"1"`, put)), "ObjectCreated:Put"},
		"no object":            {s3Body(s3Record(`"b"`, `""`, `"v"`, `"1"`, put)), "ObjectCreated:Put"},
		"no bucket":            {s3Body(s3Record(`""`, `"k"`, `"v"`, `"1"`, put)), "ObjectCreated:Put"},
		"a bucket of null":     {strings.Replace(s3Body(record), `{"name":"b"}`, "null", 1), "ObjectCreated:Put"},
		"an object that isn't": {`{"Records":[{"eventSource":"aws:s3","eventName":` + put + `,"s3":{"bucket":{"name":"b"},"object":"k"}}]}`, "ObjectCreated:Put"},
		"no s3":                {`{"Records":[{"eventSource":"aws:s3","eventName":` + put + `}]}`, "ObjectCreated:Put"},
	} {
		m := &sqsonce.Message{ID: msgID, QueueARN: queueARN, Body: tt.body}
		if key, source := s3Key(t, m); source != sqsonce.KeyFromMessageID {
			t.Errorf("%s: key %q from %s, want that of the message ID", name, key, source)
		}
		if got, _ := throughS3(t, m); got.Envelope.Type != tt.eventType || tt.eventType == "" && got != m {
			t.Errorf("%s: type %q, want %q", name, got.Envelope.Type, tt.eventType)
		}
	}
	// Through SNS the key is SNS's.
	err := sqsonce.OpenEnvelope(sqsonce.S3(func(_ context.Context, m *sqsonce.Message) error {
		if key, source, err := m.Key(); source != sqsonce.KeyFromSNS || err != nil {
			t.Errorf("through SNS: key %q from %s, %v", key, source, err)
		}
		return nil
	}))(t.Context(), &sqsonce.Message{ID: msgID, QueueARN: queueARN, Body: inSNS(s3Body(record, record))})
	if err != nil {
		t.Error(err)
	}
}

// A bucket without versions has a version of null, an empty one or none: it is one key.
func TestS3WithoutVersions(t *testing.T) {
	t.Parallel()
	record := s3Record(`"b"`, `"k"`, `null`, `"1"`, `"ObjectRemoved:Delete"`)
	for _, body := range []string{s3Body(record), strings.Replace(s3Body(record), `"versionId":null,`, "", 1), strings.Replace(s3Body(record), "null", `""`, 1)} {
		if key, _ := s3Key(t, &sqsonce.Message{ID: msgID, Body: body}); key != "s3-notification|b|k||1|ObjectRemoved:Delete" {
			t.Errorf("key %q", key)
		}
	}
}

// The test message of S3 is done without a call of the handler.
func TestS3TestEvent(t *testing.T) {
	t.Parallel()
	const event = `{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2014-10-13T15:57:02.089Z","Bucket":"bucketname","RequestId":"5582815E1AEA5ADF","HostId":"8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3eKxsPzbB9wrR+YstdA6Knx4Ip8EXAMPLE"}`
	for name, body := range map[string]string{"": event, "through SNS": inSNS(event)} {
		err := sqsonce.OpenEnvelope(sqsonce.S3(func(context.Context, *sqsonce.Message) error { t.Error(name, "called"); return nil }))(
			t.Context(), &sqsonce.Message{ID: msgID, Body: body})
		if sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeSkipped {
			t.Errorf("%s: %v, want a Skip", name, err)
		}
	}
	for _, body := range []string{
		strings.Replace(event, "Amazon S3", "Shop", 1), strings.Replace(event, "bucketname", "", 1), strings.Replace(event, `"Event":`, `"event":`, 1),
		strings.Replace(event, "{", `{"Records":[],`, 1), "[" + event + "]", `"s3:TestEvent"`, event + event,
	} {
		if got, err := throughS3(t, &sqsonce.Message{ID: msgID, Body: body}); err != nil || got == nil || got.Body != body {
			t.Errorf("%s: %v, %v, want it as it is", body, got, err)
		}
	}
}

// EventBridge Scheduler replaces its keywords in the input of a target. With a CloudEvent as the input the key is the
// same in each attempt to send it, and another one at each time.
func TestSchedulerAsCloudEvent(t *testing.T) {
	t.Parallel()
	const input = `{"specversion":"1.0","source":"<aws.scheduler.schedule-arn>","id":"<aws.scheduler.scheduled-time>","type":"reminder","data":{"order":"ord-42"}}`
	const arn = "arn:aws:scheduler:eu-west-1:123456789012:schedule/default/remind"
	body := strings.NewReplacer("<aws.scheduler.schedule-arn>", arn, "<aws.scheduler.scheduled-time>", "2026-11-27T18:59:43Z").Replace(input)
	for name, attempt := range map[string]string{"first": msgID, "second": "other"} {
		err := sqsonce.OpenEnvelope(sqsonce.ByType(map[string]sqsonce.Handler{"reminder": func(_ context.Context, m *sqsonce.Message) error {
			if key, _, err := m.Key(); key != arn+"|2026-11-27T18:59:43Z" || err != nil || m.Body != `{"order":"ord-42"}` {
				t.Errorf("%s attempt: key %q, %v, body %s", name, key, err, m.Body)
			}
			return nil
		}}))(t.Context(), &sqsonce.Message{ID: attempt, Body: body})
		if err != nil {
			t.Errorf("%s attempt: %v", name, err)
		}
	}
}
