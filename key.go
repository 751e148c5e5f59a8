package sqsonce

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
)

// MaxKeyLength is the longest key [EventKey] returns, in bytes: the limit of a MessageDeduplicationId.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
const MaxKeyLength = 128

// Prefixes of keys that are not source|id. EventKey hashes a source of one of these names, so that no event can be
// given the key of another kind.
const (
	hashedKey    = "sha256"
	messageIDKey = "sqs-message" // queue ARN and message ID
	dedupIDKey   = "sqs-dedup"   // queue ARN, group and MessageDeduplicationId
)

// ErrNoEventID reports an event without an ID. A missing ID is never replaced: all such events would share one key.
var ErrNoEventID = errors.New("sqsonce: event has no ID")

// EventKey returns the key of the event that source names id: "source|id" where both are legal in a
// MessageDeduplicationId and the whole fits [MaxKeyLength], else "sha256|" and 64 hexadecimal digits.
//
// It is pure, and injective unless SHA-256 collides: two different events never share a key. Nothing is trimmed, folded
// or normalised. The source may be empty; an empty id is [ErrNoEventID].
func EventKey(source, id string) (string, error) {
	if id == "" {
		return "", ErrNoEventID
	}
	// The first '|' must split the key uniquely, so a source that holds one is hashed.
	direct := len(source)+1+len(id) <= MaxKeyLength &&
		legalKeyPart(source) && legalKeyPart(id) &&
		!strings.Contains(source, "|") &&
		source != hashedKey && source != messageIDKey && source != dedupIDKey
	if direct {
		return source + "|" + id, nil
	}
	return hashKey(source, id), nil
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
