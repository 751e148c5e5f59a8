package sqsonce

import (
	"fmt"
	"strings"
)

// Rung says where the key of an event came from, the most stable source first.
type Rung uint8

// The rungs. Keys of the first two, and keys a user's own function makes, survive a redrive from the dead-letter queue
// and a producer that sends the event again.
const (
	RungAttribute   Rung = iota + 1 // the event-key attribute, else event-id with event-source
	RungCloudEvents                 // a CloudEvents source and id
	RungMessageID                   // the queue's ARN and the message ID: new after a redrive or a second send
	RungDedupID                     // the queue's ARN, the group and the MessageDeduplicationId: only by opting in
	RungCustom                      // a user's key function
)

var rungNames = [...]string{"none", "attribute", "cloudevents", "message-id", "dedup-id", "custom"}

// String returns the rung's name in lower case.
func (r Rung) String() string {
	if int(r) < len(rungNames) {
		return rungNames[r]
	}
	return fmt.Sprintf("rung(%d)", uint8(r))
}

// EventID returns the key of the event that the message carries, and where it was found:
//
//  1. the event-key attribute as it is, else [EventKey] of the event-source and event-id attributes;
//  2. EventKey of a CloudEvents source and id, only where specversion, id, source and type are all present and not
//     empty, as message attributes (plain, or prefixed "ce-" or "ce_") or in a JSON body;
//  3. the queue's ARN and the message ID.
//
// The error wraps [ErrNoEventID]: an identifying attribute is there but empty or binary, or the message has not even a
// message ID. Such a message gets no key rather than a shared one.
//
// The MessageDeduplicationId is not used: SQS remembers it for five minutes only, derives it from the body on some
// queues and replaces it on the way to a dead-letter queue. See [Message.DedupKey].
func (m *Message) EventID() (key string, r Rung, err error) {
	if a, ok := m.Attributes[AttrEventKey]; ok {
		if a.String == "" {
			return "", RungAttribute, fmt.Errorf("%w: attribute %s is empty or binary", ErrNoEventID, AttrEventKey)
		}
		return a.String, RungAttribute, nil
	}
	if a, ok := m.Attributes[AttrEventID]; ok {
		if a.String == "" {
			return "", RungAttribute, fmt.Errorf("%w: attribute %s is empty or binary", ErrNoEventID, AttrEventID)
		}
		source, ok := m.Attributes[AttrEventSource]
		if ok && source.String == "" {
			return "", RungAttribute, fmt.Errorf("%w: attribute %s is empty or binary", ErrNoEventID, AttrEventSource)
		}
		key, err = EventKey(source.String, a.String)
		return key, RungAttribute, err
	}
	if ce, ok := m.cloudEvent(); ok {
		key, err = EventKey(ce.source, ce.id)
		return key, RungCloudEvents, err
	}
	if m.ID == "" {
		return "", RungMessageID, fmt.Errorf("%w: no event ID and no message ID", ErrNoEventID)
	}
	return deliveryKey(messageIDKey, m.QueueARN, m.ID), RungMessageID, nil
}

// DedupKey returns a key made of the queue's ARN, the group and the MessageDeduplicationId, or false without one. It is
// for queues whose producers give every event a MessageDeduplicationId of its own, for ever: dedup.Options.TrustDedupID.
func (m *Message) DedupKey() (key string, ok bool) {
	if m.DedupID == "" {
		return "", false
	}
	return deliveryKey(dedupIDKey, m.QueueARN, m.Group, m.DedupID), true
}

// deliveryKey joins parts that SQS made. ARNs and message IDs hold no '|'; groups and dedup IDs may, so these are hashed.
func deliveryKey(prefix string, parts ...string) string {
	for _, p := range parts {
		if strings.Contains(p, "|") {
			return prefix + "|" + hashKey(parts...)
		}
	}
	return prefix + "|" + strings.Join(parts, "|")
}
