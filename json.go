package sqsonce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/sqsonce/sqsonce/internal/settle"
)

// DecodeError reports the place at which a body is not valid for the handler's type. It never contains text of the
// body, which may be personal data.
type DecodeError struct {
	Type   string // the requested Go type
	Offset int64  // byte offset in the body, or 0 if it isn't known
	Field  string // the declared JSON field whose value has the wrong type, or the field around it
}

func (e *DecodeError) Error() string {
	s := fmt.Sprintf("sqsonce: body is not a JSON %s (at byte %d", e.Type, e.Offset)
	if e.Field != "" {
		s += ", field " + e.Field
	}
	return s + ")"
}

// Decode returns the JSON body of m as a T. A body that does not decode, or has data after the value, is a [Reject] of
// a [*DecodeError], because delivering it again would not help.
//
// A body that is an envelope of SNS, EventBridge or CloudEvents is an [ErrEnvelope] if T is a struct without a field of
// that envelope: TopicArn or MessageId, detail or detail-type, or specversion, data or data_base64. encoding/json would
// decode the envelope as an empty T. An array that contains such an envelope, like a batch of CloudEvents, is an
// ErrEnvelope if T is a slice of such structs. [OpenEnvelope] describes how an envelope is known.
//
// A body that is null is an ordinary error and not a Reject, unless T is a pointer, map, slice or interface.
// encoding/json would decode null as an empty T too.
func Decode[T any](m *Message) (T, error) {
	var v T
	if err := m.checkNoEnvelope(reflect.TypeFor[T]()); err != nil {
		return v, err
	}
	dec := json.NewDecoder(strings.NewReader(m.Body))
	err := dec.Decode(&v)
	if err == nil {
		if _, extra := dec.Token(); !errors.Is(extra, io.EOF) {
			err = errors.New("data after the value")
		}
	}
	if err == nil {
		return v, checkNull[T](m.Body)
	}
	de := &DecodeError{Type: reflect.TypeFor[T]().String(), Offset: dec.InputOffset()}
	if se, ok := errors.AsType[*json.SyntaxError](err); ok {
		de.Offset = se.Offset
	}
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		de.Offset, de.Field = te.Offset, declaredPath(reflect.TypeFor[T](), te.Field)
	}
	var zero T
	return zero, Reject(de)
}

// checkNull fails for a body that is JSON's null, which encoding/json decodes as an empty T, where a T has no null of its own.
func checkNull[T any](body string) error {
	if strings.TrimSpace(body) != "null" {
		return nil
	}
	t := reflect.TypeFor[T]()
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return nil
	}
	return fmt.Errorf("sqsonce: body is null, not a JSON %s", t)
}

// JSON returns a handler that decodes the body as [Decode] does and calls f with the value. f gets the message from
// [FromContext].
func JSON[T any](f func(context.Context, T) error) Handler {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, m *Message) error {
		v, err := Decode[T](m)
		if err != nil {
			settle.Ran(ctx, false)
			return err
		}
		return f(newContext(ctx, m), v)
	}
}

// declaredPath returns the longest prefix of a dotted path of JSON names that t's struct fields declare. The rest may be a
// map's key, which the sender chose and which may be personal data, or any text of a type's own UnmarshalJSON.
func declaredPath(t reflect.Type, path string) string {
	var declared []string
	for name := range strings.SplitSeq(path, ".") {
		t = element(t)
		if t.Kind() != reflect.Struct {
			break
		}
		field, ok := fieldByJSONName(t, name)
		if !ok {
			break
		}
		declared = append(declared, name)
		t = field.Type
	}
	return strings.Join(declared, ".")
}

// element returns a type without its pointers, slices and arrays, which have no JSON name. It gives up after a few, since a
// type may be a slice of itself.
func element(t reflect.Type) reflect.Type {
	for range 8 {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			t = t.Elem()
		default:
			return t
		}
	}
	return t
}

func fieldByJSONName(t reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name || tag == "" && f.Name == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}
