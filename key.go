package sqsonce

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxKeyLength is the length in bytes of the longest key that [EventKey] returns, the limit of a
// MessageDeduplicationId.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
const MaxKeyLength = 128

// Prefixes of keys that are not source|id. EventKey hashes a source of one of these names, so that an event can't get the key of
// another kind.
const (
	hashedKey      = "sha256"
	eventIDKey     = "sqs-event"         // queue ARN and event-id
	messageIDKey   = "sqs-message"       // queue ARN and message ID
	dedupIDKey     = "sqs-dedup"         // queue ARN, group and MessageDeduplicationId
	snsKey         = "sns-message"       // topic ARN and the message ID of SNS
	eventBridgeKey = "eventbridge-event" // source and ID of an EventBridge event
)

// ErrNoEventID reports an event without an ID. sqsonce never replaces a missing ID, because all such events would share
// one key.
var ErrNoEventID = errors.New("sqsonce: event has no ID")

// ErrNoQueueARN reports a message whose key needs the ARN of its queue while the host hasn't read the ARN yet. It
// matches [ErrUnavailable], so the message keeps its attempts and gets its key when the ARN is known. With another key
// it would be another event, which runs again.
var ErrNoQueueARN = Unavailable(errors.New("the queue's ARN, which is part of the event's key, is not known: allow sqs:GetQueueAttributes, or send an event-id and an event-source"))

// EventKey returns the key of the event that source names id. The key is "source|id" if both are legal in a
// MessageDeduplicationId and the whole fits [MaxKeyLength]. Otherwise it is "sha256|" and 64 hexadecimal digits.
//
// EventKey is pure, and injective unless SHA-256 collides, so two different events never share a key. It does not trim,
// fold or normalise its arguments. It returns [ErrNoEventID] for an empty id. The source may be empty, and then all
// producers without a source share their IDs. [Message.Key] never makes a key with an empty source.
func EventKey(source, id string) (string, error) {
	if id == "" {
		return "", ErrNoEventID
	}
	// The first '|' must split the key uniquely, so a source that holds one is hashed.
	direct := len(source)+1+len(id) <= MaxKeyLength &&
		legalKeyPart(source) && legalKeyPart(id) &&
		!strings.Contains(source, "|") && !reserved(source)
	if direct {
		return source + "|" + id, nil
	}
	return hashKey(source, id), nil
}

func reserved(source string) bool {
	switch source {
	case hashedKey, eventIDKey, messageIDKey, dedupIDKey, snsKey, eventBridgeKey:
		return true
	}
	return false
}

// hashKey puts each part's length before it, so that no two lists of parts hash the same bytes. The last part needs none.
func hashKey(parts ...string) string {
	h := sha256.New()
	for i, p := range parts {
		if i < len(parts)-1 {
			h.Write(strconv.AppendInt(nil, int64(len(p)), 10))
			h.Write([]byte{':'})
		}
		h.Write([]byte(p))
	}
	return hashedKey + "|" + hex.EncodeToString(h.Sum(nil))
}

// legalKeyPart reports whether every byte is one SQS allows in a MessageDeduplicationId: the 94 printable ASCII
// characters without the space.
func legalKeyPart(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return true
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
)

var keySourceNames = [...]string{"none", "attribute", "event-id", "cloudevents", "message-id", "dedup-id", "function", "sns", "eventbridge"}

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
//  3. for a message that [OpenEnvelope] unwrapped: the topic's ARN and SNS's message ID, or the source and the ID of
//     EventBridge's event
//  4. the queue's ARN and the message ID
//
// The error wraps [ErrNoEventID] if an identifying attribute is empty or binary, or if the message lacks a message ID
// too. Such a message must not get a key that it would share. The error is [ErrNoQueueARN] if the key needs a QueueARN
// and the message has none.
//
// Key does not use the MessageDeduplicationId. SQS remembers it for only five minutes, derives it from the body on some
// queues, and replaces it on the way to a dead-letter queue. See [Message.DedupKey].
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
	return deliveryKey(messageIDKey, m.QueueARN, m.ID), KeyFromMessageID, nil
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
	return deliveryKey(eventIDKey, m.QueueARN, id), KeyFromEventID, nil
}

// DedupKey returns a key made of the queue's ARN, the group and the MessageDeduplicationId, or false if the ARN or the
// MessageDeduplicationId is missing. Use it, by dedup.Options.TrustDedupID, only if your producers give every event a
// MessageDeduplicationId of its own, for ever.
func (m *Message) DedupKey() (key string, ok bool) {
	if m.DedupID == "" || m.QueueARN == "" {
		return "", false
	}
	return deliveryKey(dedupIDKey, m.QueueARN, m.Group, m.DedupID), true
}

// deliveryKey joins parts of a delivery. ARNs and message IDs hold no '|'; groups, dedup IDs, event IDs and sources of events
// may, and these may be any text of any length, so they are hashed. No first part can look like a hash.
func deliveryKey(prefix string, parts ...string) string {
	for i, p := range parts {
		if i == 0 && p == hashedKey || strings.Contains(p, "|") || !legalKeyPart(p) || len(p) > MaxKeyLength {
			return prefix + "|" + hashKey(parts...)
		}
	}
	return prefix + "|" + strings.Join(parts, "|")
}
