package memsqs

import (
	"regexp"
	"unicode/utf8"
)

const (
	maxMessageSize = 1 << 20 // of one message and of a batch together, in bytes, inclusive
	maxDelay       = 900     // seconds
	maxVisibility  = 43200   // seconds: 12 h
	maxWait        = 20      // seconds
	maxReceive     = 10      // messages
)

var (
	queueName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)
	entryID   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)
	// token is a message group ID, deduplication ID or receive attempt ID: printable ASCII without the space.
	token = regexp.MustCompile(`^[!-~]{1,128}$`)
)

// illegalRune returns the first character that SQS refuses in bodies and string attributes: it takes what XML 1.0 does.
func illegalRune(s string) (rune, bool) {
	for i, r := range s {
		switch {
		case r == utf8.RuneError:
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return r, true // not UTF-8
			}
		case r == '\t', r == '\n', r == '\r', r >= 0x20 && r <= 0xFFFD, r >= 0x10000:
		default:
			return r, true
		}
	}
	return 0, false
}

func checkToken(v *string, parameter string) error {
	if v != nil && !token.MatchString(*v) {
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
