package awsjson

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/internal/jsonscan"
)

// Members is the names that a type's JSON objects may have. encoding/json takes a name in any case, and drops one that it does not
// know: a service that did so would accept what AWS does not, and seem to do what it does not.
type Members struct {
	of   map[string]member // of an object
	rest *Members          // of what is in a list, or in an object whose names are the client's
}

// member is a field of a struct, and the names within it.
type member struct {
	*Members
	index []int
}

// MembersOf returns those of T. Below a type that decodes itself, every name is known.
func MembersOf[T any]() *Members { return membersOf(reflect.TypeFor[T]()) }

var decodesItself = reflect.TypeFor[json.Unmarshaler]()

func membersOf(t reflect.Type) *Members {
	if t.Implements(decodesItself) || reflect.PointerTo(t).Implements(decodesItself) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return membersOf(t.Elem())
	case reflect.Slice, reflect.Map:
		if rest := membersOf(t.Elem()); rest != nil {
			return &Members{rest: rest}
		}
	case reflect.Struct:
		m := &Members{of: map[string]member{}}
		for _, f := range reflect.VisibleFields(t) { // of embedded types too
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.IsExported() && !f.Anonymous {
				m.of[cmp.Or(name, f.Name)] = member{membersOf(f.Type), f.Index}
			}
		}
		return m
	}
	return nil
}

// Unknown returns the path to the first name in a JSON text that is not known, or "". The text must be JSON.
func (m *Members) Unknown(text []byte) string { return m.find(jsonscan.New(text), false) }

// OtherCase returns the path to the first name that is known in another case only, or "". The text must be JSON.
func (m *Members) OtherCase(text []byte) string { return m.find(jsonscan.New(text), true) }

var errFound = errors.New("found")

// find goes through a value. With caseOnly, it passes over the names that are not known in any case.
func (m *Members) find(s *jsonscan.Scanner, caseOnly bool) (path string) {
	switch s.Next() {
	case '{':
		_ = s.Object(func(text []byte) error {
			name, inner := string(text), m.each()
			if m != nil && m.of != nil {
				known, ok := m.of[name]
				if !ok && (!caseOnly || m.hasFolded(name)) {
					path = cmp.Or(name, `""`)
					return errFound
				}
				inner = known.Members
			}
			if path = inner.find(s, caseOnly); path == "" {
				return nil
			}
			if m != nil && m.of != nil {
				path = name + "." + path
			}
			return errFound
		})
	case '[':
		_ = s.Array(func() error {
			if path = m.each().find(s, caseOnly); path == "" {
				return nil
			}
			return errFound
		})
	default:
		s.Scalar()
	}
	return path
}

func (m *Members) hasFolded(name string) bool {
	for known := range m.of {
		if strings.EqualFold(known, name) {
			return true
		}
	}
	return false
}

func (m *Members) each() *Members {
	if m == nil {
		return nil
	}
	return m.rest
}
