// Package eventkey makes the keys of events: the root's exported functions say which.
package eventkey

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// MaxLength is the length in bytes of the longest key of an event, the limit of a MessageDeduplicationId.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
const MaxLength = 128

// Prefixes of keys that are not source|id. sqsonce.EventKey hashes a source of one of these names, so that an event can't get
// the key of another kind.
const (
	hashed      = "sha256"
	EventID     = "sqs-event"         // queue ARN and event-id
	MessageID   = "sqs-message"       // queue ARN and message ID
	dedupID     = "sqs-dedup"         // queue ARN, group and MessageDeduplicationId
	SNS         = "sns-message"       // topic ARN and the message ID of SNS
	EventBridge = "eventbridge-event" // source and ID of an EventBridge event
	S3          = "s3-notification"   // bucket, object key, version, sequencer and event name
)

// Reserved reports whether a source is one of those names.
func Reserved(source string) bool {
	switch source {
	case hashed, EventID, MessageID, dedupID, SNS, EventBridge, S3:
		return true
	}
	return false
}

// Hash is the key of parts that cannot stand in one as they are. It puts each part's length before it, so that no
// two lists of parts hash the same bytes. The last part needs none.
func Hash(parts ...string) string {
	h := sha256.New()
	for i, p := range parts {
		if i < len(parts)-1 {
			h.Write(strconv.AppendInt(nil, int64(len(p)), 10))
			h.Write([]byte{':'})
		}
		h.Write([]byte(p))
	}
	return hashed + "|" + hex.EncodeToString(h.Sum(nil))
}

// Legal reports whether every byte is one SQS allows in a MessageDeduplicationId: the 94 printable ASCII
// characters without the space.
func Legal(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// OfDelivery joins parts of a delivery. ARNs and message IDs hold no '|'; groups, dedup IDs, event IDs and sources of events
// may, and these may be any text of any length, so they are hashed. No first part can look like a hash.
func OfDelivery(prefix string, parts ...string) string {
	for i, p := range parts {
		if i == 0 && p == hashed || strings.Contains(p, "|") || !Legal(p) || len(p) > MaxLength {
			return prefix + "|" + Hash(parts...)
		}
	}
	return strings.Join(append(append(make([]string, 0, 8), prefix), parts...), "|")
}

// OfDedupID is the key of dedup.Options.TrustDedupID, made of the queue's ARN, the group and the MessageDeduplicationId.
// ok is false if the ARN or the MessageDeduplicationId is missing.
func OfDedupID(queueARN, group, id string) (key string, ok bool) {
	if id == "" || queueARN == "" {
		return "", false
	}
	return OfDelivery(dedupID, queueARN, group, id), true
}
