package attr

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// decoder reads JSON in one pass straight into values; encoding/json would read every level of an item again.
type decoder struct {
	data []byte
	pos  int
	open Map // the fields read so far of the maps that are not closed yet, the innermost last
}

func (d *decoder) space() {
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
func (d *decoder) next() byte {
	d.space()
	if d.pos < len(d.data) {
		return d.data[d.pos]
	}
	return 0
}

func (d *decoder) take(c byte) bool {
	if d.next() != c {
		return false
	}
	d.pos++
	return true
}

func (d *decoder) word(w string) bool {
	d.space()
	if strings.HasPrefix(string(d.data[d.pos:min(d.pos+len(w), len(d.data))]), w) {
		d.pos += len(w)
		return true
	}
	return false
}

func (d *decoder) null() bool { return d.word("null") }

func (d *decoder) end() error {
	if d.next() != 0 {
		return d.unexpected("the end")
	}
	return nil
}

func (d *decoder) unexpected(want string) error {
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

// object reads an object; member reads the value after each name.
func (d *decoder) object(member func(name string) error) error {
	if !d.take('{') {
		return d.unexpected("a structure or map")
	}
	if d.take('}') {
		return nil
	}
	for {
		name, err := d.text()
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

func (d *decoder) array(element func() error) error {
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

func (d *decoder) boolean() (bool, error) {
	switch {
	case d.word("true"):
		return true, nil
	case d.word("false"):
		return false, nil
	}
	return false, d.unexpected("Boolean")
}

// text reads a string. Only strings with escapes need encoding/json.
func (d *decoder) text() (string, error) {
	if d.next() != '"' {
		return "", d.unexpected("String")
	}
	start := d.pos
	escaped := false
	for i := start + 1; i < len(d.data); i++ {
		switch c := d.data[i]; {
		case c == '\\':
			escaped = true
			i++
		case c < 0x20:
			return "", &SyntaxError{"Unexpected control character in a string"}
		case c == '"':
			d.pos = i + 1
			raw := d.data[start+1 : i]
			if !escaped && utf8.Valid(raw) {
				return string(raw), nil
			}
			var s string
			if err := json.Unmarshal(d.data[start:i+1], &s); err != nil {
				return "", &SyntaxError{err.Error()}
			}
			return s, nil
		}
	}
	return "", &SyntaxError{"Unexpected end of JSON input"}
}
