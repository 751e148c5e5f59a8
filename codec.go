package sqsonce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"
)

// DecodeError says where a body stopped being what the handler expects. It never holds any of the body's text, which
// may be personal.
type DecodeError struct {
	Type   string // the Go type asked for
	Offset int64  // byte offset in the body, 0 where not known
	Field  string // the declared JSON field with a value of the wrong type, or the one around it
}

func (e *DecodeError) Error() string {
	s := fmt.Sprintf("sqsonce: body is not a JSON %s (at byte %d", e.Type, e.Offset)
	if e.Field != "" {
		s += ", field " + e.Field
	}
	return s + ")"
}

// Decode returns the JSON body of m as a T. A body that does not decode, or has data after the value, is a [Reject] of
// a [*DecodeError]: delivering it again would change nothing.
func Decode[T any](m *Message) (T, error) {
	var v T
	dec := json.NewDecoder(strings.NewReader(m.Body))
	err := dec.Decode(&v)
	if err == nil {
		if _, extra := dec.Token(); !errors.Is(extra, io.EOF) {
			err = errors.New("data after the value")
		}
	}
	if err == nil {
		return v, nil
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

// JSON returns a handler that decodes the body as [Decode] does and calls f with it. f finds the message by
// [FromContext].
func JSON[T any](f func(context.Context, T) error) Handler {
	return func(ctx context.Context, m *Message) error {
		v, err := Decode[T](m)
		if err != nil {
			return err
		}
		return f(NewContext(ctx, m), v)
	}
}

// ByType returns a handler that routes on the event type: the event-type attribute, else a CloudEvents type. The
// handler under "" takes every type that has none of its own; without it an unknown type is a [Reject].
func ByType(h map[string]Handler) Handler {
	routes := maps.Clone(h) // the caller may go on changing its map
	return func(ctx context.Context, m *Message) error {
		t := m.eventType()
		if f := routes[t]; f != nil {
			return f(ctx, m)
		}
		if f := routes[""]; f != nil {
			return f(ctx, m)
		}
		return Reject(fmt.Errorf("sqsonce: no handler for event type %.128q", t))
	}
}

func (m *Message) eventType() string {
	if t := m.Attributes[AttrEventType].String; t != "" {
		return t
	}
	e, ok := m.cloudEvent()
	if !ok {
		return ""
	}
	return e.eventType
}
