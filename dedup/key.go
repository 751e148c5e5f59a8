package dedup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/eventkey"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// maxKey is the longest record key that is not hashed, in bytes. DynamoDB allows 2,048, and an index of a SQL database
// less.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const maxKey = 1024

// Key returns the key of the record for the event that m carries, in the form that a store's Inspect and Delete expect.
// Its errors are those of [Once.Handler] for a message without a key.
func (o *Once) Key(m *sqsonce.Message) (string, error) {
	key, _, err := o.keyOf(context.Background(), m)
	return key, err
}

// keyOf returns the record's key and its source, and counts the source. A message without a key gets an error and never a shared
// key: the first of all such messages would complete the record, and the others would be acknowledged without running.
func (o *Once) keyOf(ctx context.Context, m *sqsonce.Message) (string, sqsonce.KeySource, error) {
	key, source, err := o.eventKey(m)
	switch {
	case errors.Is(err, sqsonce.ErrNoEventID):
		// A Reject: a redelivery has no ID either.
		err = fmt.Errorf("dedup: message %s has no key (consumer %s), send it with an event-id and an event-source or set Options.Key: %w", m.ID, o.consumer, err)
		return "", source, sqsonce.Reject(err)
	case errors.Is(err, sqsonce.ErrNoQueueARN):
		return "", source, fmt.Errorf("dedup: message %s has no key yet (consumer %s): %w", m.ID, o.consumer, err)
	case err != nil:
		return "", source, fmt.Errorf("dedup: Options.Key failed for message %s (consumer %s): %w", m.ID, o.consumer, err)
	}
	o.counts.keySources[source].Add(1)
	switch source {
	case sqsonce.KeyFromMessageID:
		o.noID.Do(func() {
			o.o.Logger.WarnContext(ctx, "dedup: message without an event ID: the key is the message ID, and the event runs again when it is sent again: send an event-id and an event-source with each message, and put sqsonce.OpenEnvelope around the handler where SNS or EventBridge sends to the queue",
				"consumer", o.consumer, "queue", m.QueueARN, "message_id", m.ID)
		})
	case sqsonce.KeyFromEventID:
		o.noSource.Do(func() {
			o.o.Logger.WarnContext(ctx, "dedup: event-id without event-source: the key holds the queue's ARN, and the same event in another queue runs again: send an event-source with each event-id",
				"consumer", o.consumer, "queue", m.QueueARN, "message_id", m.ID)
		})
	}
	record := recordKey(o.consumer, key)
	if source == sqsonce.KeyFromFunction {
		settle.ShowKey(ctx, key, record)
	} else {
		settle.KeepKey(ctx, key)
	}
	return record, source, nil
}

func (o *Once) eventKey(m *sqsonce.Message) (string, sqsonce.KeySource, error) {
	if o.o.Key != nil {
		key, err := o.o.Key(m)
		if err == nil && key == "" {
			err = sqsonce.ErrNoEventID
		}
		return key, sqsonce.KeyFromFunction, err
	}
	key, source, err := m.Key()
	if o.o.TrustDedupID && m.DedupID != "" && (source == sqsonce.KeyFromMessageID || source == sqsonce.KeyFromSNS || source == sqsonce.KeyFromEventBridge) {
		if k, ok := eventkey.OfDedupID(m.QueueARN, m.Group, m.DedupID); ok {
			return k, sqsonce.KeyFromDedupID, nil
		}
		return "", sqsonce.KeyFromDedupID, sqsonce.ErrNoQueueARN
	}
	return key, source, err
}

// recordKey joins the consumer and the event's key with a '#'. A consumer's name has no '#', so two consumers never
// share a record.
//
// An event's key is hashed if it is too long, not UTF-8, or has a NUL. Stores keep text, and would replace any two
// invalid bytes by the same character, and PostgreSQL refuses NUL. One rule for all stores keeps the key when the store
// changes. A hash stands behind two '#'. An event's key that itself begins with '#' would look like one, so it is
// hashed too: no direct key equals a hashed one.
func recordKey(consumer, event string) string {
	direct := consumer + "#" + event
	if len(direct) <= maxKey && utf8.ValidString(event) && !strings.HasPrefix(event, "#") && !strings.Contains(event, "\x00") {
		return direct
	}
	sum := sha256.Sum256([]byte(event))
	return consumer + "##" + hex.EncodeToString(sum[:])
}

// maxValidation is the longest payload hash that is stored as it is.
const maxValidation = 128

// storable returns a payload hash in a form that every store keeps: itself, where it is short and of printable ASCII, else its
// SHA-256.
func storable(hash string) string {
	if len(hash) <= maxValidation && !strings.ContainsFunc(hash, func(r rune) bool { return r < ' ' || r > '~' }) {
		return hash
	}
	sum := sha256.Sum256([]byte(hash))
	return "sha256:" + hex.EncodeToString(sum[:])
}
