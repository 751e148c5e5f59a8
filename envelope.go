package sqsonce

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/internal/eventkey"
)

// ErrEnvelope reports a body that is an envelope which wasn't opened, or that [OpenEnvelope] doesn't understand. It is
// an ordinary error and not a [Reject], because one forgotten line must not move a queue's messages to the dead-letter
// queue at once.
var ErrEnvelope = errors.New("sqsonce: envelope")

// mostEnvelopes is how many envelopes OpenEnvelope takes off one message. EventBridge to SNS to SQS, with a CloudEvent
// in it, is three.
const mostEnvelopes = 4

// Envelope has the event's identity and type from the envelope that [OpenEnvelope] opened, or from the notification
// that [S3] has read. It is the zero value for any other message.
type Envelope struct {
	Key    string    // the event's key by the envelope's own ID, for [Message.Key] if the message in the envelope has no event ID
	Source KeySource // the source of Key: KeyFromSNS, KeyFromEventBridge or KeyFromS3
	Type   string    // EventBridge's detail-type or S3's event name, for [ByType] if the message in the envelope has no type
}

// OpenEnvelope returns a handler that unwraps a message from the envelopes in which AWS services deliver it, and calls
// h with the message:
//
//   - a notification of SNS without raw message delivery, SNS's default. The body is the published message, and the
//     attributes are those of the publish. A message with raw message delivery has no envelope.
//   - an event of EventBridge. The body is its detail, as the JSON text that arrived. The type for [ByType] is its
//     detail-type.
//   - a CloudEvent in structured mode. The body is its data. OpenEnvelope unwraps this data only if it is the same
//     event again. The event's other fields become attributes, each with the prefix "ce-". The message's attributes may
//     mirror the event: they have the source and the id of the body, or a content-type (contentType) of
//     application/cloudevents. Any other CloudEvent in the attributes is one in binary mode, whose data is already the
//     body.
//
// Envelopes may be nested, up to four. h gets any other body as it is, also from within an envelope: for example an
// event notification of S3, for which there is [S3], or a batch of CloudEvents.
//
// [Message.Key] uses the first of these sources:
//
//  1. the attributes of the outermost message that has an ID of its own there, starting with the delivery: an
//     event-key, which a dead-letter copy has, or an event-id. The event-type of that message stays too.
//  2. the CloudEvent in the envelopes
//  3. the IDs that the service keeps when it delivers the same event again, from the innermost envelope: the topic's
//     ARN and SNS's message ID, which SNS's retries and replays keep, or the source and the ID of EventBridge's event,
//     which EventBridge's retries keep
//
// If you publish or put the same event twice, the service gives it two IDs. Only an event ID of the producer's own
// makes the two one event.
//
// So the body of a message without an ID of its own decides about its key. Don't use OpenEnvelope for messages without
// an event-id that carry texts of people you don't trust.
//
// h sees a copy of the [Message] with another Body, Attributes and Envelope. All other fields are those of the
// delivery, which [Original] returns. Put OpenEnvelope outside of deduplication: OpenEnvelope(once.Handler(h)). If your
// consumer has records already, adding OpenEnvelope changes the keys of messages in envelopes: an event that was
// completed under its message ID and comes again runs again.
//
// If OpenEnvelope doesn't understand an envelope, it returns an error that matches [ErrEnvelope] and does not call h.
// This happens for the confirmation of a subscription, for an attribute that is not base64 or not Unicode, and for a
// body that is known by the following fields and lacks others, which must be texts:
//
//   - SNS: known by TopicArn (an ARN), MessageId, Message, and Notification for Type. A Timestamp is needed.
//   - EventBridge: known by detail-type, source and detail. id, time and region are needed, and detail must be an
//     object.
//   - CloudEvents: known by specversion and two of id, source, type, data and data_base64. specversion, id, source and
//     type are needed.
func OpenEnvelope(h Handler) Handler {
	if h == nil {
		return nil
	}
	return func(ctx context.Context, m *Message) error {
		inner, err := m.unwrap()
		if err != nil {
			return err
		}
		if _, ok := Original(ctx); !ok {
			ctx = context.WithValue(ctx, outerContextKey{}, m)
		}
		return h(ctx, inner)
	}
}

var errNoText = errors.New("it is null")

type outerContextKey struct{}

// Original returns the message as the host delivered it, for a handler behind [OpenEnvelope].
func Original(ctx context.Context) (*Message, bool) {
	m, ok := ctx.Value(outerContextKey{}).(*Message)
	return m, ok
}

// unwrap returns the message in m's envelopes, or m itself.
func (m *Message) unwrap() (*Message, error) {
	for range mostEnvelopes + 1 {
		inner, err := m.open()
		if err != nil {
			return nil, fmt.Errorf("%w of message %s: %w", ErrEnvelope, m.ID, err)
		}
		if inner == nil {
			return m, nil
		}
		m = inner
	}
	return nil, fmt.Errorf("%w of message %s: more than %d envelopes, one in the other", ErrEnvelope, m.ID, mostEnvelopes)
}

// open takes one envelope off. It returns nil where there is none. The attributes of the message that it returns are a map of
// its own.
func (m *Message) open() (inner *Message, err error) {
	e := envelopeOf(m.Body)
	if e.kind == "" || m.inBinaryMode(e) {
		return nil, nil
	}
	if e.lacks != "" {
		return nil, fmt.Errorf("one of %s that is not understood: %s is missing or has a wrong value", e.kind, e.lacks)
	}
	opened := *m
	switch e.kind {
	case snsEnvelope:
		err = opened.openSNS(e.fields)
	case eventBridgeEnvelope:
		opened.openEventBridge(e.fields)
	case cloudEventEnvelope:
		err = opened.openCloudEvent(e.fields)
	}
	if err != nil {
		return nil, err
	}
	m.identify(&opened)
	return &opened, nil
}

// identify gives the message in an envelope the ID that the message around it has of its own. A body may be any text, also that
// of a stranger: it must not change the ID that the producer gave.
func (m *Message) identify(inner *Message) {
	_, key := m.Attributes[AttrEventKey]
	_, id := m.Attributes[AttrEventID]
	if !key && !id {
		return
	}
	for _, name := range []string{AttrEventKey, AttrEventID, AttrEventSource, AttrEventType} {
		delete(inner.Attributes, name)
		if a, ok := m.Attributes[name]; ok {
			inner.Attributes[name] = a
		}
	}
}

// openSNS reads a notification, as SNS sends it to a queue.
// https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html
func (m *Message) openSNS(fields map[string]json.RawMessage) error {
	if typ := jsonString(fields["Type"]); typ != "Notification" { // such as the confirmation of a subscription
		return fmt.Errorf("a %.64q of SNS, not a notification", typ)
	}
	var attributes map[string]struct{ Type, Value string }
	if raw := fields["MessageAttributes"]; raw != nil {
		if err := json.Unmarshal(raw, &attributes); err != nil {
			return fmt.Errorf("MessageAttributes of an SNS notification: %w", err)
		}
	}
	m.Attributes = make(map[string]Attribute, len(attributes))
	for name, a := range attributes {
		// encoding/json replaces half of a surrogate pair by U+FFFD: two different IDs would be one.
		if strings.ContainsRune(name+a.Type+a.Value, utf8.RuneError) {
			return fmt.Errorf("attribute %.256q of an SNS notification is not Unicode, or has the replacement character U+FFFD", name)
		}
		read := Attribute{Type: a.Type, String: a.Value}
		if strings.HasPrefix(a.Type, "Binary") {
			data, err := base64.StdEncoding.DecodeString(a.Value)
			if err != nil {
				return fmt.Errorf("attribute %.256q of an SNS notification: %w", name, err)
			}
			read = Attribute{Type: a.Type, Binary: data}
		}
		m.Attributes[name] = read
	}
	var body *string
	if err := json.Unmarshal(fields["Message"], &body); err != nil || body == nil {
		return fmt.Errorf("Message of an SNS notification is not text: %w", cmp.Or(err, errNoText))
	}
	m.Body = *body
	m.Envelope = Envelope{
		Key:    eventkey.OfDelivery(eventkey.SNS, jsonString(fields["TopicArn"]), jsonString(fields["MessageId"])),
		Source: KeyFromSNS,
	}
	return nil
}

// openEventBridge reads an event. It has the attributes of nobody: those of the delivery are about the envelope.
// https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html
func (m *Message) openEventBridge(fields map[string]json.RawMessage) {
	m.Attributes = make(map[string]Attribute, 1)
	m.Body = string(fields["detail"])
	m.Envelope = Envelope{
		Key:    eventkey.OfDelivery(eventkey.EventBridge, jsonString(fields["source"]), jsonString(fields["id"])),
		Source: KeyFromEventBridge,
		Type:   jsonString(fields["detail-type"]),
	}
}

// openCloudEvent reads a CloudEvent in structured mode. The attributes of the message stay: they are those of the event; but
// not a content type that says that the body is an event.
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
func (m *Message) openCloudEvent(fields map[string]json.RawMessage) error {
	body := ""
	if raw := fields["data_base64"]; raw != nil && string(raw) != "null" {
		var data []byte
		if err := json.Unmarshal(raw, &data); err != nil {
			return fmt.Errorf("data_base64 of a CloudEvent: %w", err)
		}
		body = string(data)
	} else if body = string(fields["data"]); !isJSON(jsonString(fields["datacontenttype"])) {
		// Text is a JSON string, unless the type says that the string is itself JSON.
		var text string
		if json.Unmarshal(fields["data"], &text) == nil {
			body = text
		}
	}
	m.Body = body
	m.Attributes = maps.Clone(m.Attributes)
	if m.Attributes == nil {
		m.Attributes = make(map[string]Attribute, len(fields))
	}
	maps.DeleteFunc(m.Attributes, saysStructured)
	for name, raw := range fields {
		if name == "data" || name == "data_base64" || string(raw) == "null" {
			continue
		}
		a := Attribute{Type: "String", String: jsonString(raw)}
		if a.String == "" { // a number or a truth value
			a.String = string(bytes.Trim(raw, `"`))
		}
		m.Attributes["ce-"+name] = a
	}
	return nil
}

// isJSON reports whether a media type is JSON. A CloudEvent without one is.
func isJSON(mediaType string) bool {
	subtype, _, _ := strings.Cut(mediaType, ";")
	_, subtype, _ = strings.Cut(strings.ToLower(strings.TrimSpace(subtype)), "/")
	return mediaType == "" || subtype == "json" || strings.HasSuffix(subtype, "+json")
}
