package fifo

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
)

// maxAttributes is SQS's ten without event-id, event-source and event-type.
const maxAttributes = 7

// reserved attributes are ours: event-key would replace the event's identity, reject-reason would pass for a worker's.
var reserved = []string{
	sqsonce.AttrEventID, sqsonce.AttrEventSource, sqsonce.AttrEventType, sqsonce.AttrEventKey, sqsonce.AttrRejectReason,
}

// The rules for names and types.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
var (
	attributeNames = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,256}$`)
	attributeTypes = regexp.MustCompile(`^(String|Number|Binary)(\.[A-Za-z0-9_.-]+)?$`)
	numbers        = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)

func checkAttributes(attrs map[string]sqsonce.Attribute) []error {
	if len(attrs) == 0 {
		return nil
	}
	var errs []error
	if len(attrs) > maxAttributes {
		errs = append(errs, badField("Event.Attributes", "%d, must be at most %d", len(attrs), maxAttributes))
	}
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		field := fmt.Sprintf("Event.Attributes[%.256q]", name)
		if problem := nameProblem(name); problem != "" {
			errs = append(errs, badField(field, "%s", problem))
		}
		if err := checkValue(field, attrs[name]); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func nameProblem(name string) string {
	lower := strings.ToLower(name)
	switch {
	case slices.Contains(reserved, name):
		return "the name is reserved"
	case !attributeNames.MatchString(name):
		return "the name must be 1 to 256 of A-Z a-z 0-9 _ - ."
	case strings.HasPrefix(name, "."), strings.HasSuffix(name, "."), strings.Contains(name, ".."):
		return "the name must not start or end with a period or have two in a row"
	case strings.HasPrefix(lower, "aws."), strings.HasPrefix(lower, "amazon."):
		return "the name must not start with AWS. or Amazon."
	}
	return ""
}

func checkValue(field string, a sqsonce.Attribute) error {
	if len(a.Type) > 256 || !attributeTypes.MatchString(a.Type) {
		return badField(field, "type %.256q, must be String, Number or Binary, or one of them with a label such as Number.int", a.Type)
	}
	if isBinary(a) {
		if len(a.Binary) == 0 || a.String != "" {
			return badField(field, "a Binary attribute must have a Binary value and no String")
		}
		return nil
	}
	if len(a.Binary) > 0 {
		return badField(field, "a %s attribute must have no Binary value", a.Type)
	}
	if err := checkText(field, a.String); err != nil {
		return err
	}
	if strings.HasPrefix(a.Type, "Number") && !isNumber(a.String) {
		return badField(field, "not a number of at most 38 digits between -10^126 and 10^126, with 10^-128 the least but 0")
	}
	return nil
}

func isBinary(a sqsonce.Attribute) bool { return strings.HasPrefix(a.Type, "Binary") }

func isNumber(s string) bool {
	if !numbers.MatchString(s) {
		return false
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	digits := strings.TrimLeft(strings.ReplaceAll(strings.TrimLeft(mantissa, "+-"), ".", ""), "0")
	if digits == "" {
		return true // zero, whatever its exponent
	}
	v, err := strconv.ParseFloat(s, 64)
	v = math.Abs(v)
	return err == nil && len(digits) <= 38 && v >= 1e-128 && v <= 1e126
}

// cloneAttributes copies what the caller may go on changing.
func cloneAttributes(attrs map[string]sqsonce.Attribute) map[string]sqsonce.Attribute {
	if len(attrs) == 0 {
		return nil
	}
	out := make(map[string]sqsonce.Attribute, len(attrs))
	for name, a := range attrs {
		a.Binary = bytes.Clone(a.Binary)
		out[name] = a
	}
	return out
}

var typeString = aws.String("String")

// wireAttributes returns the event's attributes and ours.
func wireAttributes(namespace *string, e *Event) map[string]sqstypes.MessageAttributeValue {
	out := make(map[string]sqstypes.MessageAttributeValue, len(e.Attributes)+3)
	for name, a := range e.Attributes {
		v := sqstypes.MessageAttributeValue{DataType: aws.String(a.Type)}
		if isBinary(a) {
			v.BinaryValue = a.Binary
		} else {
			v.StringValue = aws.String(a.String)
		}
		out[name] = v
	}
	out[sqsonce.AttrEventID] = sqstypes.MessageAttributeValue{DataType: typeString, StringValue: &e.ID}
	out[sqsonce.AttrEventSource] = sqstypes.MessageAttributeValue{DataType: typeString, StringValue: namespace}
	if e.Type != "" {
		out[sqsonce.AttrEventType] = sqstypes.MessageAttributeValue{DataType: typeString, StringValue: &e.Type}
	}
	return out
}

// attributesSize is what they count for, in bytes.
func attributesSize(namespace string, e *Event) (size int64) {
	add := func(name string, a sqsonce.Attribute) {
		size += int64(len(name) + len(a.Type) + len(a.String) + len(a.Binary))
	}
	for name, a := range e.Attributes {
		add(name, a)
	}
	add(sqsonce.AttrEventID, sqsonce.Attribute{Type: *typeString, String: e.ID})
	add(sqsonce.AttrEventSource, sqsonce.Attribute{Type: *typeString, String: namespace})
	if e.Type != "" {
		add(sqsonce.AttrEventType, sqsonce.Attribute{Type: *typeString, String: e.Type})
	}
	return size
}
