package fifo

import (
	"errors"
	"unicode/utf8"
)

// check returns one FieldError for each reason SQS would refuse the event for, so that a refused entry of a batch is a
// fault of the service and not of the input. The size is checked on its own, since it depends on the queue.
func (e *Event) check() error {
	errs := checkAttributes(e.Attributes)
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	add(checkText("Event.ID", e.ID))
	add(checkGroup(e.Group))
	add(checkText("Event.Body", e.Body))
	if e.Type != "" {
		add(checkText("Event.Type", e.Type))
	}
	if e.TraceHeader != "" {
		add(checkText("Event.TraceHeader", e.TraceHeader))
	}
	return errors.Join(errs...)
}

// checkText refuses what a body or a string value cannot hold. SQS refuses all of it but invalid UTF-8: the SDK replaces
// that by U+FFFD, SQS stores it, and the checksum of the answer then looks like a failure of the wire.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
func checkText(field, s string) error {
	if s == "" {
		return badField(field, "empty")
	}
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return badField(field, "not UTF-8 at byte %d", i)
			}
		}
		if !legalRune(r) {
			return badField(field, "character %U at byte %d, must be #x9, #xA, #xD, #x20 to #xD7FF, #xE000 to #xFFFD or #x10000 to #x10FFFF", r, i)
		}
	}
	return nil
}

// legalRune reports whether XML 1.0 has the character. Surrogates do not come out of valid UTF-8.
func legalRune(r rune) bool {
	if r < 0x20 {
		return r == '\t' || r == '\n' || r == '\r'
	}
	return r != 0xfffe && r != 0xffff
}

// checkGroup refuses what is no MessageGroupId.
func checkGroup(group string) error {
	const field = "Event.Group"
	if group == "" {
		return badField(field, "empty")
	}
	if len(group) > 128 {
		return badField(field, "%d bytes, must be at most 128", len(group))
	}
	for i := range len(group) {
		if group[i] < 0x21 || group[i] > 0x7e {
			return badField(field, "byte %#x at %d, must be printable ASCII without the space", group[i], i)
		}
	}
	return nil
}
