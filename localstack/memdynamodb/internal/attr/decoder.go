package attr

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Decoder reads JSON in one pass straight into values; encoding/json would read every level of an item again.
type Decoder struct {
	data    []byte
	pos     int
	open    Map    // the fields read so far of the maps that are not closed yet, the innermost last
	scratch []byte // the last text that had escapes
}

func (d *Decoder) space() {
	for d.pos < len(d.data) {
		switch d.data[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

// next skips space and returns the next byte without taking it, 0 at the end.
func (d *Decoder) next() byte {
	d.space()
	if d.pos < len(d.data) {
		return d.data[d.pos]
	}
	return 0
}

func (d *Decoder) take(c byte) bool {
	if d.next() != c {
		return false
	}
	d.pos++
	return true
}

func (d *Decoder) word(w string) bool {
	d.space()
	if strings.HasPrefix(string(d.data[d.pos:min(d.pos+len(w), len(d.data))]), w) {
		d.pos += len(w)
		return true
	}
	return false
}

func (d *Decoder) null() bool { return d.word("null") }

func (d *Decoder) end() error {
	if d.space(); d.pos < len(d.data) {
		return d.unexpected("the end")
	}
	return nil
}

func (d *Decoder) unexpected(want string) error {
	switch c := d.next(); {
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

// Object reads an object. member is to read the value after each name, which is valid until then.
func (d *Decoder) Object(member func(name []byte) error) error {
	if !d.take('{') {
		return d.unexpected("a structure or map")
	}
	if d.take('}') {
		return nil
	}
	for {
		name, err := d.raw()
		if err != nil {
			return err
		}
		if !d.take(':') {
			return d.unexpected("a value")
		}
		if err := member(name); err != nil {
			return err
		}
		if d.take('}') {
			return nil
		}
		if !d.take(',') {
			return d.unexpected("a name")
		}
	}
}

// Array reads an array; element is to read each of its elements.
func (d *Decoder) Array(element func() error) error {
	if !d.take('[') {
		return d.unexpected("a list")
	}
	if d.take(']') {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if d.take(']') {
			return nil
		}
		if !d.take(',') {
			return d.unexpected("an element")
		}
	}
}

// Bool reads true or false.
func (d *Decoder) Bool() (bool, error) {
	switch {
	case d.word("true"):
		return true, nil
	case d.word("false"):
		return false, nil
	}
	return false, d.unexpected("Boolean")
}

// Text reads a string.
func (d *Decoder) Text() (string, error) {
	raw, err := d.raw()
	return string(raw), err
}

// raw reads a string; what it returns is valid until the next one is read.
func (d *Decoder) raw() ([]byte, error) {
	if d.next() != '"' {
		return nil, d.unexpected("String")
	}
	start := d.pos
	escaped, ascii := false, true
	for i := start + 1; i < len(d.data); i++ {
		switch c := d.data[i]; {
		case c == '\\':
			escaped = true
			i++
		case c < 0x20:
			return nil, &SyntaxError{"Unexpected control character in a string"}
		case c >= utf8.RuneSelf:
			ascii = false
		case c == '"':
			d.pos = i + 1
			return d.plain(d.data[start:d.pos], escaped, ascii)
		}
	}
	return nil, &SyntaxError{"Unexpected end of JSON input"}
}

// plain is the text of a string in quotes. Only rare ones need encoding/json: those with \u, and those that are no UTF-8.
func (d *Decoder) plain(quoted []byte, escaped, ascii bool) ([]byte, error) {
	inside := quoted[1 : len(quoted)-1]
	if ascii || utf8.Valid(inside) {
		if !escaped {
			return inside, nil
		}
		var ok bool
		if d.scratch, ok = unescape(d.scratch[:0], inside); ok {
			return d.scratch, nil
		}
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return nil, &SyntaxError{err.Error()}
	}
	return []byte(s), nil
}

// unescape appends to b the text that s, the inside of a string, stands for. It knows the escapes of two characters only.
func unescape(b, s []byte) ([]byte, bool) {
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(b, s...), true
		}
		b = append(b, s[:i]...)
		switch c := s[i+1]; c { // the last character of s is never a backslash that begins an escape
		case '"', '\\', '/':
			b = append(b, c)
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		default:
			return b, false
		}
		s = s[i+2:]
	}
}
