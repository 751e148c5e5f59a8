package sqsonce

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sqsonce/sqsonce/internal/eventkey"
)

// ErrNoEventID reports an event without an ID. sqsonce never replaces a missing ID, because all such events would share
// one key.
var ErrNoEventID = errors.New("sqsonce: event has no ID")

// ErrNoQueueARN reports a message whose key needs the ARN of its queue while the host hasn't read the ARN yet. It
// matches [ErrUnavailable], so the message keeps its attempts and gets its key when the ARN is known. With another key
// it would be another event, which runs again.
var ErrNoQueueARN = Unavailable(errors.New("the queue's ARN, which is part of the event's key, is not known: allow sqs:GetQueueAttributes, or send an event-id and an event-source"))

// EventKey returns the key of the event that source names id. The key is "source|id" if both are legal in a
// MessageDeduplicationId and the whole has at most 128 bytes. Otherwise it is "sha256|" and 64 hexadecimal digits.
//
// EventKey is pure, and injective unless SHA-256 collides, so two different events never share a key. It does not trim,
// fold or normalise its arguments. It returns [ErrNoEventID] for an empty id. The source may be empty, and then all
// producers without a source share their IDs. [Message.Key] never makes a key with an empty source.
func EventKey(source, id string) (string, error) {
	if id == "" {
		return "", ErrNoEventID
	}
	// The first '|' must split the key uniquely, so a source that holds one is hashed.
	direct := len(source)+1+len(id) <= eventkey.MaxLength &&
		eventkey.Legal(source) && eventkey.Legal(id) &&
		!strings.Contains(source, "|") && !eventkey.Reserved(source)
	if direct {
		return source + "|" + id, nil
	}
	return eventkey.Hash(source, id), nil
}

// KeySource is the place in a message where the key of an event comes from.
type KeySource uint8

// The key sources. Keys from an attribute, from CloudEvents and of your own function stay the same after a redrive from the
// dead-letter queue, and if the producer sends the event again.
const (
	KeyFromAttribute   KeySource = iota + 1 // the event-key attribute, else event-id with event-source
	KeyFromEventID                          // the queue's ARN and event-id, without event-source: another one in another queue
	KeyFromCloudEvents                      // a CloudEvents source and id
	KeyFromMessageID                        // the queue's ARN and the message ID: another one after a redrive or a second send
	KeyFromDedupID                          // the queue's ARN, the group and the MessageDeduplicationId, only by opting in
	KeyFromFunction                         // your key function
	KeyFromSNS                              // the topic's ARN and SNS's message ID, see OpenEnvelope
	KeyFromEventBridge                      // the source and ID of EventBridge's event, see OpenEnvelope
	KeyFromS3                               // the object's change, see S3
)

var keySourceNames = [...]string{"none", "attribute", "event-id", "cloudevents", "message-id", "dedup-id", "function", "sns", "eventbridge", "s3"}

// String returns the source's name in lower case.
func (s KeySource) String() string {
	if int(s) < len(keySourceNames) {
		return keySourceNames[s]
	}
	return fmt.Sprintf("key source %d", uint8(s))
}

// Key returns the key of the event that the message carries, and its source. It uses the first of these that the
// message has:
//
//  1. the event-key attribute as it is, else [EventKey] of the event-source and event-id attributes. Without an
//     event-source it uses the queue's ARN and the event-id, since two producers may use the same IDs.
//  2. EventKey of a CloudEvents source and id, only if specversion, id, source and type are all present and not empty.
//     They are message attributes (plain, or prefixed "ce-" or "ce_") or fields of a JSON body.
//  3. for a notification of [S3]: the change of the object. Else for a message that [OpenEnvelope] unwrapped: the
//     topic's ARN and SNS's message ID, or the source and the ID of EventBridge's event
//  4. the queue's ARN and the message ID
//
// The error wraps [ErrNoEventID] if an identifying attribute is empty or binary, or if the message lacks a message ID
// too. Such a message must not get a key that it would share. The error is [ErrNoQueueARN] if the key needs a QueueARN
// and the message has none.
//
// Key does not use the MessageDeduplicationId. SQS remembers it for only five minutes, derives it from the body on some
// queues, and replaces it on the way to a dead-letter queue. Your producers may let you trust it: see
// dedup.Options.TrustDedupID.
func (m *Message) Key() (key string, source KeySource, err error) {
	if a, ok := m.Attributes[AttrEventKey]; ok {
		if a.String == "" {
			return "", KeyFromAttribute, fmt.Errorf("%w: attribute %s is empty or binary", ErrNoEventID, AttrEventKey)
		}
		return a.String, KeyFromAttribute, nil
	}
	if a, ok := m.Attributes[AttrEventID]; ok {
		return m.eventIDKey(a.String)
	}
	if ce, ok := m.cloudEvent(); ok {
		key, err = EventKey(ce.source, ce.id)
		return key, KeyFromCloudEvents, err
	}
	if m.Envelope.Key != "" {
		return m.Envelope.Key, m.Envelope.Source, nil
	}
	if m.ID == "" {
		return "", KeyFromMessageID, fmt.Errorf("%w: no event ID and no message ID", ErrNoEventID)
	}
	if m.QueueARN == "" {
		return "", KeyFromMessageID, ErrNoQueueARN
	}
	return eventkey.OfDelivery(eventkey.MessageID, m.QueueARN, m.ID), KeyFromMessageID, nil
}

// eventIDKey returns the key of a message with an event-id.
func (m *Message) eventIDKey(id string) (key string, source KeySource, err error) {
	if id == "" {
		return "", KeyFromAttribute, fmt.Errorf("%w: attribute %s is empty or binary", ErrNoEventID, AttrEventID)
	}
	src, ok := m.Attributes[AttrEventSource]
	switch {
	case ok && src.String == "":
		return "", KeyFromAttribute, fmt.Errorf("%w: attribute %s is empty or binary", ErrNoEventID, AttrEventSource)
	case ok:
		key, err = EventKey(src.String, id)
		return key, KeyFromAttribute, err
	case m.QueueARN == "":
		return "", KeyFromEventID, ErrNoQueueARN
	}
	return eventkey.OfDelivery(eventkey.EventID, m.QueueARN, id), KeyFromEventID, nil
}
