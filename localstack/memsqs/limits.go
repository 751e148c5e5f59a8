package memsqs

import (
	"time"
)

const (
	maxMessageSize = 1 << 20 // of one message and of a batch together, in bytes, inclusive
	maxDelay       = 900     // seconds
	maxVisibility  = 43200   // seconds: 12 h
	maxWait        = 20      // seconds
	maxReceive     = 10      // messages
)

// isName: a queue name, without the suffix of a FIFO queue, or the ID of an entry of a batch.
func isName(s string) bool {
	return consists(s, 80, func(c byte) bool { return isAlphanumeric(c) || c == '-' || c == '_' })
}

// isToken: a message group ID, deduplication ID or receive attempt ID: printable ASCII without the space.
func isToken(s string) bool {
	return consists(s, 128, func(c byte) bool { return '!' <= c && c <= '~' })
}

// isAttributeName: the characters of a message attribute's name.
func isAttributeName(s string) bool {
	return consists(s, 256, func(c byte) bool { return isAlphanumeric(c) || c == '-' || c == '_' || c == '.' })
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// consists reports whether s is of 1 to most legal bytes.
func consists(s string, most int, legal func(byte) bool) bool {
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

// within returns *v, or otherwise if v is nil; outside of [low, high] it is refused.
func within(v *int, otherwise, low, high int, parameter string) (int, error) {
	if v == nil {
		return otherwise, nil
	}
	if *v < low || *v > high {
		return 0, invalidParameter("Value %d for parameter %s is invalid. Reason: Must be between %d and %d, if provided.", *v, parameter, low, high)
	}
	return *v, nil
}

const maxEntries = 10

const maxMessageAttributes = 10

const maxTags = 50

// recently is how long after DeleteQueue a name cannot be used, and after PurgeQueue no other purge is taken.
const recently = 60 * time.Second

// maxInFlight is AWS's quota of messages in flight in a queue.
const maxInFlight = 120_000

// interval is how long a FIFO queue remembers deduplication IDs and receive attempts.
const interval = 5 * time.Minute
