package memsqs

import "unicode/utf8"

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
