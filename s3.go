package sqsonce

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/sqsonce/sqsonce/internal/eventkey"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// S3 returns a handler for the event notifications of Amazon S3, which lack an event ID. Amazon S3 may send two
// notifications of one change. Both have the same sequencer, of which this function makes:
//
//   - the key, for a message without an event ID of its own (see [Message.Key]): the bucket, the object's key as S3
//     writes it, its version, the sequencer and the event name. So the second notification is a duplicate.
//   - the type for [ByType]: the event name, such as "ObjectCreated:Put"
//
// The body stays. The test message that S3 sends when you set up notifications is a [Skip], without a call of h. S3
// gives a sequencer to events that create and delete objects only. A notification without one, such as a restore, a
// transition or a new tag, gets the type, and keeps the key that it has without S3. h gets any other body as it is,
// also a body with several records: a key would stand for all of them.
//
// The body decides about the key. Don't use S3 for a queue to which people you don't trust may send. If your consumer
// has records already, adding S3 changes the keys of notifications: one that was completed under its message ID and
// comes again runs again.
//
// Put S3 outside of deduplication, and inside of OpenEnvelope if the notifications come through SNS:
// OpenEnvelope(S3(once.Handler(h))). EventBridge's form of these events is an envelope, with an ID of EventBridge's.
//
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
func S3(h Handler) Handler {
	if h == nil {
		return nil
	}
	return func(ctx context.Context, m *Message) error {
		n, test := m.openS3()
		if test {
			settle.Ran(ctx, false)
			return Skip("the test event of S3's notifications")
		}
		return h(ctx, n)
	}
}

// openS3 returns the message with the key and the type of its notification, or m itself. test says that it is a test
// event.
func (m *Message) openS3() (_ *Message, test bool) {
	// Most bodies are no notifications, and a search is much cheaper than parsing.
	if !strings.Contains(m.Body, `"aws:s3"`) && !strings.Contains(m.Body, `"s3:TestEvent"`) {
		return m, false
	}
	body := members(m.Body)
	var records []json.RawMessage
	if raw := body["Records"]; raw == nil {
		return m, jsonString(body["Event"]) == "s3:TestEvent" && jsonString(body["Service"]) == "Amazon S3" && jsonString(body["Bucket"]) != ""
	} else if json.Unmarshal(raw, &records) != nil || len(records) != 1 {
		return m, false
	}
	record := members(string(records[0]))
	event := jsonString(record["eventName"])
	if jsonString(record["eventSource"]) != "aws:s3" || event == "" {
		return m, false
	}
	opened := *m
	opened.Envelope.Type = event
	if key := s3Key(members(string(record["s3"])), event); key != "" {
		opened.Envelope.Key, opened.Envelope.Source = key, KeyFromS3
	}
	return &opened, false
}

// s3Key returns the key of a change of an object, or "" if a part of it is missing or isn't text. A bucket without
// versions has none.
func s3Key(s3 map[string]json.RawMessage, event string) string {
	object := members(string(s3["object"]))
	bucket := jsonString(members(string(s3["bucket"]))["name"])
	key, version, sequencer := jsonString(object["key"]), jsonString(object["versionId"]), jsonString(object["sequencer"])
	raw := object["versionId"]
	hasVersion := raw != nil && string(raw) != "null" && string(raw) != `""`
	if bucket == "" || key == "" || sequencer == "" || hasVersion != (version != "") {
		return ""
	}
	return eventkey.OfDelivery(eventkey.S3, bucket, key, version, sequencer, event)
}
