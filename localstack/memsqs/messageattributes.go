package memsqs

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

const maxMessageAttributes = 10

var attributeNumber = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// checkMessageAttributes applies AWS's rules for message attributes: at most ten, legal names, a known type with an
// optional custom part, and a value that is not empty and fits the type.
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

func checkAttributeName(name string) error {
	lower := strings.ToLower(name)
	switch {
	case !isAttributeName(name):
		return invalidParameter("Message (user) attribute name %q is invalid: it can have up to 256 alphanumeric characters, underscores, hyphens and periods.", name)
	case strings.HasPrefix(name, "."), strings.HasSuffix(name, "."), strings.Contains(name, ".."):
		return invalidParameter("Message (user) attribute name %q cannot start or end with a period or have successive periods.", name)
	case strings.HasPrefix(lower, "aws."), strings.HasPrefix(lower, "amazon."):
		return invalidParameter("Message (user) attribute name %q cannot start with a reserved prefix.", name)
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
		return invalidType(name, a.DataType)
	}
	switch logical {
	case "String", "Number":
		if a.StringValue == nil || *a.StringValue == "" || len(a.BinaryValue) > 0 {
			return emptyAttribute(name, a.DataType)
		}
		if r, bad := illegalRune(*a.StringValue); bad {
			return invalidContents(fmt.Sprintf("Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | [#x20 to #xD7FF] | [#xE000 to #xFFFD] | [#x10000 to #x10FFFF]: %U in message attribute '%s'.", r, name))
		}
		if logical == "Number" && !attributeNumber.MatchString(*a.StringValue) {
			return invalidParameter("Can't cast the value of message (user) attribute '%s' to a number.", name)
		}
	case "Binary":
		if len(a.BinaryValue) == 0 || a.StringValue != nil {
			return emptyAttribute(name, a.DataType)
		}
	default:
		return invalidType(name, a.DataType)
	}
	return nil
}

func emptyAttribute(name, dataType string) *awsjson.Error {
	return invalidParameter("The message attribute '%s' with type '%s' must contain a non-empty value of that type.", name, dataType)
}

func invalidType(name, dataType string) *awsjson.Error {
	return invalidParameter("The type of message (user) attribute '%s' is invalid. You must use only the following supported type prefixes: Binary, Number, String. (%s)", name, dataType)
}

// sizeOfAttributes is what attributes add to the size of a message: names, types and values.
func sizeOfAttributes(attrs map[string]messageAttribute) int {
	n := 0
	for name, a := range attrs {
		n += len(name) + len(a.DataType) + len(a.BinaryValue)
		if a.StringValue != nil {
			n += len(*a.StringValue)
		}
	}
	return n
}

// selectAttributes returns the attributes that a receive asked for: by name, "All" or ".*", or "prefix.*".
func selectAttributes(attrs map[string]messageAttribute, names []string) map[string]messageAttribute {
	if len(attrs) == 0 || len(names) == 0 {
		return nil
	}
	out := map[string]messageAttribute{}
	for name, a := range attrs {
		for _, want := range names {
			prefix, wild := strings.CutSuffix(want, ".*")
			if want == "All" || want == name || wild && strings.HasPrefix(name, prefix) {
				out[name] = a
				break
			}
		}
	}
	return out
}
