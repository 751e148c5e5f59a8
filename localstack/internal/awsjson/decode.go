package awsjson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Decode reads a request's JSON object into a struct. What it refuses is a SerializationException in words of AWS, without a Go
// type. Errors of the struct's own UnmarshalJSON methods stay as they are.
func Decode(body []byte, in any) error {
	if !utf8.Valid(body) { // encoding/json would put another character in the place of each wrong byte
		return serialization("The request is not in UTF-8")
	}
	if bytes.Equal(bytes.TrimSpace(body), []byte("null")) { // encoding/json leaves the struct as it is
		return serialization("Unexpected null")
	}
	err := json.Unmarshal(body, in)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return serialization(mismatch(e))
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return serialization("")
	}
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return serialization("A value is not in Base64")
	}
	return err
}

func serialization(message string) *Error { return Invalid("SerializationException", message) }

// mismatch says what stands in the place of what.
func mismatch(e *json.UnmarshalTypeError) string {
	found, _, _ := strings.Cut(e.Value, " ") // "number 1.5"
	switch found {
	case "object":
		return "Start of structure or map found where not expected."
	case "array":
		return "Start of list found where not expected."
	case "bool":
		found = "boolean"
	}
	wanted := "a structure, map or list"
	switch e.Type.Kind() {
	case reflect.String:
		wanted = "String"
	case reflect.Bool:
		wanted = "Boolean"
	case reflect.Int, reflect.Int32:
		wanted = "Integer"
	case reflect.Int64:
		wanted = "Long"
	}
	return strings.ToUpper(found) + "_VALUE cannot be converted to " + wanted
}
