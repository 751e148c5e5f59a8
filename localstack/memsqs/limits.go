package memsqs

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Quotas of https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-quotas.html and limits of the
// API reference.
const (
	maxMessageSize       = 1 << 20 // bytes, of one message and of all messages of a batch together
	maxDelay             = 900     // seconds
	maxVisibility        = 43200   // seconds: 12 h
	maxWait              = 20      // seconds
	maxReceive           = 10      // messages of one receive
	maxInFlight          = 120_000 // messages in flight in one queue
	maxEntries           = 10      // entries of one batch
	maxMessageAttributes = 10      // message attributes of one message
	maxTags              = 50      // tags of one queue
	maxMovesPerSecond    = 500     // messages that one move task moves in a second

	dedupInterval  = 5 * time.Minute  // a FIFO queue remembers deduplication IDs and receive attempt IDs
	deleteInterval = 60 * time.Second // from DeleteQueue until a queue of the same name can be created
	purgeInterval  = 60 * time.Second // from PurgeQueue until the next one
)

// isName checks a queue name (without the suffix of a FIFO queue) and the ID of a batch entry.
func isName(s string) bool {
	return hasOnly(s, 80, func(c byte) bool { return isAlphanumeric(c) || c == '-' || c == '_' })
}

// isToken checks a message group ID, deduplication ID or receive attempt ID: printable ASCII without the space.
func isToken(s string) bool {
	return hasOnly(s, 128, func(c byte) bool { return '!' <= c && c <= '~' })
}

// isAttributeName checks the name of a message attribute. SQS documents A-Z, a-z and 0-9, and takes the letters of other scripts.
func isAttributeName(s string) bool {
	n := utf8.RuneCountInString(s)
	return 1 <= n && n <= 256 && !strings.ContainsFunc(s, func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsLetter(r) && !('0' <= r && r <= '9') && r != '-' && r != '_' && r != '.'
	})
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// hasOnly reports whether s has 1 to most bytes, all of them legal.
func hasOnly(s string, most int, legal func(byte) bool) bool {
	for i := range len(s) {
		if !legal(s[i]) {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= most
}

func checkToken(v *string, parameter string) error {
	if v != nil && !isToken(*v) {
		return invalidParameter("Value %s for parameter %s is invalid. Reason: %s can only include alphanumeric and punctuation characters. 1 to 128 in length.", *v, parameter, parameter)
	}
	return nil
}

// intParameter returns *v, or absent if v is nil. A value outside of [low, high] is an error.
func intParameter(v *int, absent, low, high int, parameter string) (int, error) {
	if v == nil {
		return absent, nil
	}
	if *v < low || *v > high {
		return 0, invalidParameter("Value %d for parameter %s is invalid. Reason: Must be between %d and %d, if provided.", *v, parameter, low, high)
	}
	return *v, nil
}
