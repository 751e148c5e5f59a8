// Package jsonscan reads JSON in one pass. encoding/json reads a request's text up to four times: to check it, for its members, to
// find the end of a value that decodes itself, and for that value.
package jsonscan

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// SyntaxError is a text that is not JSON, or not of the form that the caller wants. The message is DynamoDB's.
type SyntaxError struct{ Message string }

func (e *SyntaxError) Error() string { return e.Message }

// Scanner goes through a text, which is in UTF-8. A text that it reads to the end is JSON.
type Scanner struct {
	data []byte
	pos  int

	quoted, text []byte // the last string with escapes, and its text: the statements of a batch are often all the same

	texts [16]string // that were read: equal ones share their memory, also in a table
}

// New returns a scanner at the start of a text.
func New(data []byte) *Scanner { return &Scanner{data: data} }

// Unmarshaler decodes itself from a part of a text.
type Unmarshaler interface{ ScanJSON(*Scanner) error }

// Unmarshal decodes a value from a whole text.
func Unmarshal(data []byte, into Unmarshaler) error {
	s := New(data)
	if err := into.ScanJSON(s); err != nil {
		return err
	}
	return s.End()
}

// Object reads an object. It calls member with each name, and member reads the value. The name is only valid until then.
func (s *Scanner) Object(member func(name []byte) error) error {
	return s.sequence('{', '}', "a structure or map", "a name", func() error {
		name, err := s.str()
		if err != nil {
			return err
		}
		if !s.take(':') {
			return s.Unexpected("a value")
		}
		return member(name)
	})
}

// Array reads an array. It calls element for each element, and element reads it.
func (s *Scanner) Array(element func() error) error {
	return s.sequence('[', ']', "a list", "an element", element)
}

// sequence reads elements with commas between them, from open to end.
func (s *Scanner) sequence(open, end byte, what, part string, element func() error) error {
	if !s.take(open) {
		return s.Unexpected(what)
	}
	if s.take(end) {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if s.take(end) {
			return nil
		}
		if !s.take(',') {
			return s.Unexpected(part)
		}
	}
}

// Text reads a string.
func (s *Scanner) Text() (string, error) {
	text, err := s.str()
	if len(text) == 0 {
		return "", err
	}
	kept := &s.texts[(len(text)+int(text[len(text)-1]))%len(s.texts)]
	if *kept != string(text) {
		*kept = string(text)
	}
	return *kept, nil
}

func (s *Scanner) str() (text []byte, err error) {
	if s.Next() != '"' {
		return nil, s.Unexpected("String")
	}
	plain := true
	for i := s.pos + 1; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c < ' ':
			return nil, &SyntaxError{"Unexpected control character in a string"}
		case c >= utf8.RuneSelf:
			plain = false
		case c == '\\':
			plain = false
			i++ // the escaped character may be a quote
		case c == '"':
			quoted := s.data[s.pos : i+1]
			s.pos = i + 1
			if plain {
				return quoted[1 : len(quoted)-1], nil
			}
			return s.unquote(quoted)
		}
	}
	return nil, &SyntaxError{"Unexpected end of JSON input"}
}

func (s *Scanner) unquote(quoted []byte) ([]byte, error) {
	if !bytes.Equal(quoted, s.quoted) {
		var text string
		if err := json.Unmarshal(quoted, &text); err != nil {
			return nil, &SyntaxError{err.Error()}
		}
		s.quoted, s.text = quoted, []byte(text)
	}
	return s.text, nil
}

// Scalar reads a string, number or word, and returns what is in its place if none is.
func (s *Scanner) Scalar() []byte {
	s.Next()
	start := s.pos
	if _, err := s.str(); err != nil {
		for s.pos < len(s.data) && strings.IndexByte(",]} \t\r\n", s.data[s.pos]) < 0 {
			s.pos++
		}
	}
	return s.data[start:s.pos]
}

// Next skips white space and returns the byte that comes next, 0 at the end.
func (s *Scanner) Next() byte {
	for ; s.pos < len(s.data); s.pos++ {
		if c := s.data[s.pos]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// take reads the byte c, if it comes next.
func (s *Scanner) take(c byte) bool {
	if s.Next() != c {
		return false
	}
	s.pos++
	return true
}

// Word reads the word w, if it comes next.
func (s *Scanner) Word(w string) bool {
	if s.Next() != w[0] || !bytes.HasPrefix(s.data[s.pos:], []byte(w)) {
		return false
	}
	s.pos += len(w)
	return true
}

// End refuses text behind the value.
func (s *Scanner) End() error {
	if s.Next(); s.pos < len(s.data) {
		return s.Unexpected("the end")
	}
	return nil
}

// Unexpected is the error of a value of another kind than want.
func (s *Scanner) Unexpected(want string) error {
	switch c := s.Next(); {
	case c == 0:
		return &SyntaxError{"Unexpected end of JSON input"}
	case c == '"':
		return &SyntaxError{"STRING_VALUE cannot be converted to " + want}
	case c == '-' || c >= '0' && c <= '9':
		return &SyntaxError{"NUMBER_VALUE cannot be converted to " + want}
	case c == 't':
		return &SyntaxError{"TRUE_VALUE cannot be converted to " + want}
	case c == 'f':
		return &SyntaxError{"FALSE_VALUE cannot be converted to " + want}
	case c == '{':
		return &SyntaxError{"Start of structure or map found where not expected."}
	case c == '[':
		return &SyntaxError{"Unrecognized collection type class " + want}
	}
	return &SyntaxError{"Unexpected token"}
}
