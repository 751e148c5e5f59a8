package awsjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
)

// Members is the names that a type's JSON objects may have. encoding/json takes a name in any case, and drops one that it does not
// know: a service that did so would accept what AWS does not, and seem to do what it does not.
type Members struct {
	of   map[string]*Members // of an object
	rest *Members            // of what is in a list, or in an object whose names are the client's
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
		m := &Members{of: map[string]*Members{}}
		for _, f := range reflect.VisibleFields(t) { // of embedded types too
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.Anonymous {
				m.of[cmp.Or(name, f.Name)] = membersOf(f.Type)
			}
		}
		return m
	}
	return nil
}

// Unknown returns the path to the first name in a JSON text that is not known, or "". The text must be JSON.
func (m *Members) Unknown(text []byte) string {
	s := scanner{text: text}
	return s.value(m)
}

// OtherCase returns the path to the first name that is known in another case only, or "". The text must be JSON.
func (m *Members) OtherCase(text []byte) string {
	s := scanner{text: text, caseOnly: true}
	return s.value(m)
}

// scanner goes through a text that is JSON.
type scanner struct {
	text     []byte
	at       int
	caseOnly bool // names that are not known in any case are passed over
}

// value skips a value, and returns the path to the first name in it that is not known.
func (s *scanner) value(m *Members) (path string) {
	switch s.space(); s.text[s.at] {
	case '{':
		return s.object(m)
	case '[':
		s.at++
		for s.space(); s.text[s.at] != ']'; s.space() {
			if s.text[s.at] == ',' {
				s.at++
			}
			if path := s.value(m.each()); path != "" {
				return path
			}
		}
		s.at++
	case '"':
		s.name()
	default:
		for s.at < len(s.text) && strings.IndexByte(",]} \t\r\n", s.text[s.at]) < 0 {
			s.at++
		}
	}
	return ""
}

func (s *scanner) object(m *Members) (path string) {
	s.at++
	for s.space(); s.text[s.at] != '}'; s.space() {
		if s.text[s.at] == ',' {
			s.at++
			s.space()
		}
		name := s.name()
		s.space()
		s.at++ // the colon
		inner := m.each()
		if m != nil && m.of != nil {
			known := false
			if inner, known = m.of[string(name)]; !known && (!s.caseOnly || m.hasFolded(name)) {
				return cmp.Or(string(name), `""`)
			}
		}
		if path := s.value(inner); path != "" {
			if m != nil && m.of != nil {
				path = string(name) + "." + path
			}
			return path
		}
	}
	s.at++
	return ""
}

func (m *Members) hasFolded(name []byte) bool {
	for known := range m.of {
		if strings.EqualFold(known, string(name)) {
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

// name returns a string without its quotes. Names with escapes are not decoded: no member has one.
func (s *scanner) name() []byte {
	s.at++
	start := s.at
	for {
		end := s.at + bytes.IndexByte(s.text[s.at:], '"')
		s.at = end + 1
		escapes := end
		for escapes > start && s.text[escapes-1] == '\\' {
			escapes--
		}
		if (end-escapes)%2 == 0 { // else the quote is escaped
			return s.text[start:end]
		}
	}
}

// space skips white space: outside of strings nothing else in JSON is below it.
func (s *scanner) space() {
	for s.text[s.at] <= ' ' {
		s.at++
	}
}
