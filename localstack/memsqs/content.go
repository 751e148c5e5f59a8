package memsqs

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// checkEntry applies AWS's rules for one message to send.
func (q *queue) checkEntry(e *sendEntry) error {
	if e.MessageBody == nil || *e.MessageBody == "" {
		return missingParameter("MessageBody")
	}
	if bad := badCharacter(*e.MessageBody); bad != "" {
		return newError("InvalidMessageContents", bad)
	}
	if err := checkMessageAttributes(e.MessageAttributes); err != nil {
		return err
	}
	if err := checkSystemAttributes(e.MessageSystemAttributes); err != nil {
		return err
	}
	if e.size() > q.attrs.MaximumMessageSize {
		problem := "are invalid"
		if e.ID != "" { // an entry of a batch
			problem = "cannot be validated"
		}
		return invalidParameter("One or more parameters %s. Reason: Message must be shorter than %d bytes.", problem, q.attrs.MaximumMessageSize)
	}
	if d := e.DelaySeconds; d != nil {
		if *d < 0 || *d > maxDelay {
			return invalidValue(*d, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900.")
		}
		if *d > 0 && q.attrs.FIFO {
			return notForThisQueue(*d, "DelaySeconds")
		}
	}
	if e.MessageDeduplicationID != nil && !q.attrs.FIFO {
		return notForThisQueue(*e.MessageDeduplicationID, "MessageDeduplicationId")
	}
	return cmp.Or(checkToken(e.MessageGroupID, "MessageGroupId"), checkToken(e.MessageDeduplicationID, "MessageDeduplicationId"))
}

func notForThisQueue(value any, parameter string) error {
	return invalidValue(value, parameter, "The request include parameter that is not valid for this queue type.")
}

const traceHeader = "AWSTraceHeader"

// checkSystemAttributes allows a sender to set AWSTraceHeader, a string, and nothing else.
func checkSystemAttributes(attrs map[string]messageAttribute) error {
	for name, a := range attrs {
		if name != traceHeader {
			return invalidParameter("Message system attribute name '%s' is invalid.", name)
		}
		if a.DataType != "String" {
			return invalidParameter("The type of message system attribute '%s' is invalid. You must use only the following supported type prefixes: String.", name)
		}
		if err := checkAttributeValue(name, a); err != nil {
			return err
		}
	}
	return nil
}

var attributeNumber = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// checkMessageAttributes applies AWS's rules for message attributes: at most ten, a legal name, a known type with an
// optional custom part, and a value that fits the type and is not empty.
func checkMessageAttributes(attrs map[string]messageAttribute) error {
	if len(attrs) > maxMessageAttributes {
		return invalidParameter("Number of message attributes [%d] exceeds the allowed maximum [%d].", len(attrs), maxMessageAttributes)
	}
	for name, a := range attrs {
		if err := checkAttributeName(name); err != nil {
			return err
		}
		if err := checkAttributeValue(name, a); err != nil {
			return err
		}
	}
	return nil
}

// checkAttributeName has the texts that LocalStack's authors saw: check_attributes in its services/sqs/provider.py.
func checkAttributeName(name string) error {
	lower := strings.ToLower(name)
	switch {
	case utf8.RuneCountInString(name) > 256:
		return invalidParameter("Message (user) attribute names must be shorter than 256 Bytes")
	case !isAttributeName(name):
		return invalidParameter("Message (user) attributes name can only contain upper and lower score characters, digits, periods, hyphens and underscores. ")
	case strings.Contains(name, ".."): // the text is ours
		return invalidParameter("Message (user) attribute name %q cannot have successive periods.", name)
	case strings.HasPrefix(lower, "aws."), strings.HasPrefix(lower, "amazon."), strings.HasPrefix(name, "."), strings.HasSuffix(name, "."):
		return invalidParameter("You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These strings are reserved for internal use. Additionally, they cannot start or end with '.'.")
	}
	return nil
}

func checkAttributeValue(name string, a messageAttribute) error {
	if len(a.StringListValues) > 0 || len(a.BinaryListValues) > 0 {
		return newError("UnsupportedOperation", "Message attribute list values in SendMessage operation are not supported.")
	}
	logical, custom, hasCustom := strings.Cut(a.DataType, ".")
	if a.DataType == "" {
		return invalidParameter("The message attribute '%s' must contain a non-empty message attribute type.", name)
	}
	if len(a.DataType) > 256 || hasCustom && custom == "" {
		return invalidType(name)
	}
	switch logical {
	case "String", "Number":
		if a.StringValue == nil || *a.StringValue == "" || len(a.BinaryValue) > 0 {
			return emptyAttribute(name, a.DataType)
		}
		if bad := badCharacter(*a.StringValue); bad != "" {
			return invalidParameter("%s", bad)
		}
		if logical == "Number" && !attributeNumber.MatchString(*a.StringValue) {
			return invalidParameter("Can't cast the value of message (user) attribute '%s' to a number.", name)
		}
	case "Binary":
		if len(a.BinaryValue) == 0 || a.StringValue != nil {
			return emptyAttribute(name, a.DataType)
		}
	default:
		return invalidType(name)
	}
	return nil
}

func emptyAttribute(name, dataType string) *awsjson.Error {
	return invalidParameter("Message (user) attribute '%s' must contain a non-empty value of type '%s'.", name, dataType)
}

func invalidType(name string) *awsjson.Error {
	return invalidParameter("The type of message (user) attribute '%s' is invalid. You must use only the following supported type prefixes: Binary, Number, String.", name)
}

// badCharacter returns the text of the error for a character that XML 1.0 does not allow, as for bytes that are not UTF-8, or "". The
// code differs between bodies and attributes.
func badCharacter(s string) string {
	for i, r := range s {
		valid := r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xFFFD || r >= 0x10000
		if r == utf8.RuneError {
			_, n := utf8.DecodeRuneInString(s[i:])
			valid = n > 1 // U+FFFD itself, not a byte that is not UTF-8
		}
		if !valid {
			return fmt.Sprintf("Invalid binary character '#x%X' was found in the message body, the set of allowed characters is #x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF].", r)
		}
	}
	return ""
}
