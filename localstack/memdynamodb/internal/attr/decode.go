package attr

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unique"
)

// SyntaxError is JSON that is no attribute value at all; anything else wrong with a value is an [InvalidError].
type SyntaxError struct{ Message string }

func (e *SyntaxError) Error() string { return e.Message }

// InvalidError is an attribute value that DynamoDB refuses, in its words.
type InvalidError struct{ Message string }

func (e *InvalidError) Error() string { return e.Message }

const (
	invalid      = "One or more parameter values were invalid: "
	maxNesting   = 32
	emptyValue   = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
	severalTypes = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
)

// DecodeMap reads a map of attribute values, such as an item: {"id":{"S":"a"}}. A null is a nil map.
func DecodeMap(data []byte) (Map, error) {
	d := Decoder{data: data}
	if d.null() {
		return nil, nil
	}
	m, err := d.Fields()
	if err != nil {
		return nil, err
	}
	return m, d.end()
}

// Decode reads one attribute value, such as {"S":"a"}.
func Decode(data []byte) (Value, error) {
	d := Decoder{data: data}
	v, err := d.Value()
	if err != nil {
		return nil, err
	}
	return v, d.end()
}

// Fields reads a map of attribute values, such as an item.
func (d *Decoder) Fields() (Map, error) { return d.fields(0) }

// Value reads one attribute value, such as {"S":"a"}.
func (d *Decoder) Value() (Value, error) { return d.value(0) }

// fields reads the fields of a map.
func (d *Decoder) fields(depth int) (Map, error) {
	base := len(d.open)
	sorted := true
	err := d.Object(func(raw []byte) error {
		// Items of a table have the same names: one text serves them all.
		name := unique.Make(string(raw)).Value()
		v, err := d.value(depth)
		if err != nil {
			return err
		}
		if n := len(d.open); n > base && d.open[n-1].Name >= name {
			sorted = false
		}
		d.open = append(d.open, Field{name, v})
		return nil
	})
	if err != nil {
		return nil, err
	}
	m := make(Map, len(d.open)-base) // no larger than it is: it stays in the table
	copy(m, d.open[base:])
	d.open = d.open[:base]
	if sorted {
		return m, nil
	}
	slices.SortStableFunc(m, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	// Of a name given twice the last counts, as JSON parsers have it.
	out := m[:0]
	for i, f := range m {
		if i+1 == len(m) || m[i+1].Name != f.Name {
			out = append(out, f)
		}
	}
	return out, nil
}

// value reads one attribute value: an object with exactly one member, whose name is the type.
func (d *Decoder) value(depth int) (Value, error) {
	if depth > maxNesting {
		return nil, &InvalidError{"Nesting Levels have exceeded supported limits"}
	}
	var v Value
	several := false
	err := d.Object(func(kind []byte) error {
		if v != nil {
			several = true
		}
		var err error
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

func (d *Decoder) typed(kind []byte, depth int) (Value, error) {
	switch string(kind) {
	case "S":
		s, err := d.Text()
		return String(s), err
	case "N":
		return d.number()
	case "B":
		s, err := d.bytes()
		return Binary(s), err
	case "BOOL":
		b, err := d.Bool()
		return Bool(b), err
	case "NULL":
		b, err := d.Bool()
		if err == nil && !b {
			err = &InvalidError{invalid + "Null attribute value types must have the value of true"}
		}
		return Null{}, err
	case "SS":
		return members(d, "string", d.Text, func(s []string) Value { return StringSet(s) })
	case "NS":
		return members(d, "number", d.number, func(n []Number) Value { return NumberSet(n) })
	case "BS":
		return members(d, "binary", d.bytes, func(b []string) Value { return BinarySet(b) })
	case "L":
		l := List{}
		err := d.Array(func() error {
			v, err := d.value(depth + 1)
			l = append(l, v)
			return err
		})
		return l, err
	case "M":
		return d.fields(depth + 1)
	}
	return nil, &InvalidError{emptyValue}
}

// members reads a set: not empty, no member twice.
func members[T ~string](d *Decoder, kind string, read func() (T, error), make func([]T) Value) (Value, error) {
	var set []T
	var twice bool
	err := d.Array(func() error {
		m, err := read()
		twice = twice || slices.Contains(set, m)
		set = append(set, m)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(set) == 0:
		return nil, &InvalidError{invalid + "An " + kind + " set  may not be empty"}
	case twice:
		return nil, &InvalidError{invalid + "Input collection [" + joinMembers(set) + "] contains duplicates."}
	}
	return make(set), nil
}

func joinMembers[T ~string](set []T) string {
	s := make([]string, len(set))
	for i, m := range set {
		s[i] = string(m)
	}
	return strings.Join(s, ", ")
}

func (d *Decoder) number() (Number, error) {
	s, err := d.Text()
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

func (d *Decoder) bytes() (string, error) {
	s, err := d.Text()
	if err != nil {
		return "", err
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", &SyntaxError{"Base64 encoded length is expected a multiple of 4 bytes but found: " + fmt.Sprint(len(s))}
	}
	return string(b), nil
}

// UnmarshalJSON reads a map where it is a member of a request.
func (m *Map) UnmarshalJSON(data []byte) error {
	v, err := DecodeMap(data)
	*m = v
	return err
}

var _ json.Unmarshaler = (*Map)(nil)
