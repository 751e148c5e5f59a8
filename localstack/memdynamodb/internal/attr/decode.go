package attr

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
	"unique"
)

// SyntaxError is JSON that does not have the form of an attribute value. All other faults of a value are an
// [InvalidError].
type SyntaxError struct{ Message string }

func (e *SyntaxError) Error() string { return e.Message }

// InvalidError is an attribute value that DynamoDB refuses. The message is DynamoDB's.
type InvalidError struct{ Message string }

func (e *InvalidError) Error() string { return e.Message }

const (
	invalid      = "One or more parameter values were invalid: "
	maxNesting   = 32
	emptyValue   = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
	severalTypes = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
)

// Decode reads one attribute value, such as {"S":"a"}. The error is a [SyntaxError] or an [InvalidError].
func Decode(data []byte) (Value, error) {
	d := decoder{data: data}
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	return v, d.end()
}

// DecodeList reads a list of attribute values, such as [{"S":"a"},{"N":"1"}]. A null is an empty list. Errors are those
// of [Decode].
func DecodeList(data []byte) (List, error) {
	d := decoder{data: data}
	if d.word("null") {
		return nil, d.end()
	}
	l, err := d.list(0)
	if err != nil {
		return nil, err
	}
	return l, d.end()
}

// DecodeMap reads a map of attribute values, such as the item {"id":{"S":"a"}}. A null is a nil map. Errors are those of
// [Decode].
func DecodeMap(data []byte) (Map, error) {
	d := decoder{data: data}
	if d.word("null") {
		return nil, nil
	}
	m, err := d.fields(0)
	if err != nil {
		return nil, err
	}
	return m, d.end()
}

// UnmarshalJSON reads a map that is a member of a request.
func (m *Map) UnmarshalJSON(data []byte) (err error) {
	*m, err = DecodeMap(data)
	return err
}

// decoder reads attribute values in one pass over the text. With encoding/json each value would be a map with one
// member, and its text would be read again for each level of lists and maps around it.
type decoder struct {
	data []byte
	pos  int
}

// value reads one attribute value: an object with exactly one member, whose name is the type. depth is the number of
// lists and maps around it.
func (d *decoder) value(depth int) (Value, error) {
	if depth > maxNesting {
		return nil, &InvalidError{"Nesting Levels have exceeded supported limits"}
	}
	var v Value
	several := false
	err := d.object(func(kind string) (err error) {
		several = v != nil
		v, err = d.typed(kind, depth)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case several:
		return nil, &InvalidError{severalTypes}
	case v == nil:
		return nil, &InvalidError{emptyValue}
	}
	return v, nil
}

func (d *decoder) typed(kind string, depth int) (Value, error) {
	switch kind {
	case "S":
		s, err := d.text()
		return String(s), err
	case "N":
		return d.number()
	case "B":
		s, err := d.bytes()
		return Binary(s), err
	case "BOOL":
		b, err := d.boolean()
		return Bool(b), err
	case "NULL":
		b, err := d.boolean()
		if err == nil && !b {
			err = &InvalidError{invalid + "Null attribute value types must have the value of true"}
		}
		return Null{}, err
	case "SS":
		return set(d, "string", d.text, func(s []string) Value { return StringSet(s) })
	case "NS":
		return set(d, "number", d.number, func(n []Number) Value { return NumberSet(n) })
	case "BS":
		return set(d, "binary", d.bytes, func(b []string) Value { return BinarySet(b) })
	case "L":
		return d.list(depth + 1)
	case "M":
		return d.fields(depth + 1)
	}
	return nil, &InvalidError{emptyValue}
}

func (d *decoder) list(depth int) (List, error) {
	l := List{}
	err := d.array(func() error {
		v, err := d.value(depth)
		l = append(l, v)
		return err
	})
	return l, err
}

// fields reads the fields of a map or of an item.
func (d *decoder) fields(depth int) (Map, error) {
	var all Map
	err := d.object(func(name string) error {
		if err := CheckName(name); err != nil {
			return err
		}
		v, err := d.value(depth)
		// The items of a table have the same names. With unique.Make they share the text of each name.
		all = append(all, Field{unique.Make(name).Value(), v})
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	m := make(Map, 0, len(all)) // of the exact size, because an item stays in its table
	for i, f := range all {
		// Of a name that is there twice the last one counts, as in encoding/json.
		if i+1 == len(all) || all[i+1].Name != f.Name {
			m = append(m, f)
		}
	}
	return m, nil
}

// maxName is the limit of an attribute's name, in bytes.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-naming-rules
const maxName = 64<<10 - 1

// CheckName returns an [InvalidError] for what cannot be the name of an attribute.
func CheckName(name string) error {
	switch {
	case name == "":
		return &InvalidError{"Empty attribute name"}
	case len(name) > maxName:
		return &InvalidError{"Attribute name is too large, must be less than 65536 bytes"}
	}
	return nil
}

// set reads the members of a set, which has at least one member and none twice.
func set[T ~string](d *decoder, kind string, read func() (T, error), convert func([]T) Value) (Value, error) {
	var members []T
	var twice bool
	err := d.array(func() error {
		m, err := read()
		twice = twice || slices.Contains(members, m)
		members = append(members, m)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(members) == 0:
		return nil, &InvalidError{invalid + "An " + kind + " set  may not be empty"}
	case twice:
		return nil, &InvalidError{invalid + "Input collection [" + join(members) + "] contains duplicates."}
	}
	return convert(members), nil
}

func join[T ~string](members []T) string {
	s := make([]string, len(members))
	for i, m := range members {
		s[i] = string(m)
	}
	return strings.Join(s, ", ")
}

func (d *decoder) number() (Number, error) {
	s, err := d.text()
	if err != nil {
		return "", err
	}
	n, err := ParseNumber(s)
	switch {
	case errors.Is(err, ErrNotANumber) && s == "":
		return "", &InvalidError{"The parameter cannot be converted to a numeric value"}
	case errors.Is(err, ErrNotANumber):
		return "", &InvalidError{"The parameter cannot be converted to a numeric value: " + s}
	case err != nil:
		return "", &InvalidError{err.Error()}
	}
	return n, nil
}

func (d *decoder) bytes() (string, error) {
	s, err := d.text()
	if err != nil {
		return "", err
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", &SyntaxError{fmt.Sprintf("Base64 encoded length is expected a multiple of 4 bytes but found: %d", len(s))}
	}
	return string(b), nil
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

func (d *decoder) text() (string, error) {
	if d.next() != '"' {
		return "", d.unexpected("String")
	}
	start, plain := d.pos, true
	for i := start + 1; i < len(d.data); i++ {
		switch c := d.data[i]; {
		case c < ' ':
			return "", &SyntaxError{"Unexpected control character in a string"}
		case c >= utf8.RuneSelf:
			plain = false
		case c == '\\':
			plain = false
			i++ // the escaped character may be a quote
		case c == '"':
			d.pos = i + 1
			if plain {
				return string(d.data[start+1 : i]), nil
			}
			var s string
			if err := json.Unmarshal(d.data[start:d.pos], &s); err != nil {
				return "", &SyntaxError{err.Error()}
			}
			return s, nil
		}
	}
	return "", &SyntaxError{"Unexpected end of JSON input"}
}

// object reads an object. It calls member with each name, and member reads the value.
func (d *decoder) object(member func(name string) error) error {
	return d.sequence('{', '}', "a structure or map", "a name", func() error {
		name, err := d.text()
		if err != nil {
			return err
		}
		if !d.take(':') {
			return d.unexpected("a value")
		}
		return member(name)
	})
}

// array reads an array. It calls element for each element, and element reads it.
func (d *decoder) array(element func() error) error {
	return d.sequence('[', ']', "a list", "an element", element)
}

// sequence reads elements with commas between them, from open to end.
func (d *decoder) sequence(open, end byte, what, part string, element func() error) error {
	if !d.take(open) {
		return d.unexpected(what)
	}
	if d.take(end) {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if d.take(end) {
			return nil
		}
		if !d.take(',') {
			return d.unexpected(part)
		}
	}
}

// next skips white space and returns the byte at pos, 0 at the end.
func (d *decoder) next() byte {
	for ; d.pos < len(d.data); d.pos++ {
		if c := d.data[d.pos]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// take reads the byte c, if it comes next.
func (d *decoder) take(c byte) bool {
	if d.next() != c {
		return false
	}
	d.pos++
	return true
}

// word reads the word w, if it comes next.
func (d *decoder) word(w string) bool {
	if d.next() != w[0] || len(d.data) < d.pos+len(w) || string(d.data[d.pos:d.pos+len(w)]) != w {
		return false
	}
	d.pos += len(w)
	return true
}

// end refuses text behind the value.
func (d *decoder) end() error {
	if d.next(); d.pos < len(d.data) {
		return d.unexpected("the end")
	}
	return nil
}

// unexpected is the error of a value of another kind than want.
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
