package dedup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce"
)

// maxKey is the longest record key that is not hashed, in bytes. DynamoDB allows 2,048; an index on SQL less.
const maxKey = 1024

// Key returns the key of the record for the event that m carries, as a store's Inspect and Delete take it. Its errors are
// those of [Once.Handler] for such a message.
func (o *Once) Key(m *sqsonce.Message) (string, error) {
	return o.keyOf(m)
}

// keyOf returns the key of the record for the event that m carries. A message without a key gets an error: one key that
// all of them shared would let the first of them swallow the others.
func (o *Once) keyOf(m *sqsonce.Message) (string, error) {
	key, source, err := o.eventKey(m)
	switch {
	case errors.Is(err, sqsonce.ErrNoEventID):
		return "", sqsonce.Reject(fmt.Errorf("dedup: key of message %s: %w", m.ID, err)) // no redelivery gives it an ID
	case err != nil:
		return "", fmt.Errorf("dedup: key of message %s: %w", m.ID, err)
	}
	o.counts.keySources[source].Add(1)
	return recordKey(o.consumer, key), nil
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
	if source == sqsonce.KeyFromMessageID && o.o.TrustDedupID {
		if k, ok := m.DedupKey(); ok {
			return k, sqsonce.KeyFromDedupID, nil
		}
	}
	return key, source, err
}

// recordKey joins the consumer and the event's key with a '#'. Consumers hold none, so two consumers never share a
// record.
//
// Keys that are too long or not UTF-8 (stores keep text, and would turn any two invalid bytes into the same
// replacement) are hashed, behind two '#'. A direct key that itself begins with '#' would look the same, so it is
// hashed too: no direct key equals a hashed one.
func recordKey(consumer, event string) string {
	direct := consumer + "#" + event
	if len(direct) <= maxKey && utf8.ValidString(event) && !strings.HasPrefix(event, "#") {
		return direct
	}
	sum := sha256.Sum256([]byte(event))
	return consumer + "##" + hex.EncodeToString(sum[:])
}
