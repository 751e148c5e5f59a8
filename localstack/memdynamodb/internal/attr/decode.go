package attr

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unique"

	"github.com/sqsonce/sqsonce/localstack/internal/jsonscan"
)

// SyntaxError is JSON that does not have the form of an attribute value. All other faults of a value are an
// [InvalidError].
type SyntaxError = jsonscan.SyntaxError

// InvalidError is an attribute value that DynamoDB refuses. The message is DynamoDB's.
type InvalidError struct{ Message string }

func (e *InvalidError) Error() string { return e.Message }

const (
	invalid    = "One or more parameter values were invalid: "
	maxNesting = 32
)

// A value has exactly one type.
var (
	ErrNoType   = &InvalidError{"Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"}
	ErrTwoTypes = &InvalidError{"Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"}
)

// Decode reads one attribute value, such as {"S":"a"}. The error is a [SyntaxError] or an [InvalidError].
func Decode(data []byte) (Value, error) {
	d := decoder{jsonscan.New(data)}
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	return v, d.End()
}

// ScanJSON reads a list of attribute values, such as [{"S":"a"},{"N":"1"}]. A null is a nil list. Errors are those of [Decode].
func (l *List) ScanJSON(s *jsonscan.Scanner) (err error) {
	*l = nil
	if !s.Word("null") {
		*l, err = decoder{s}.list(make(List, 0, 8), 0) // the parameters of a statement, which do not stay in a table
	}
	return err
}

// ScanJSON reads a map of attribute values, such as the item {"id":{"S":"a"}}. A null is a nil map. Errors are those of [Decode].
func (m *Map) ScanJSON(s *jsonscan.Scanner) (err error) {
	*m = nil
	if !s.Word("null") {
		*m, err = decoder{s}.fields(0)
	}
	return err
}

// UnmarshalJSON is ScanJSON for a whole text.
func (m *Map) UnmarshalJSON(data []byte) error { return jsonscan.Unmarshal(data, m) }

// decoder reads attribute values in one pass over the text. With encoding/json each value would be a map with one
// member, and its text would be read again for each level of lists and maps around it.
type decoder struct{ *jsonscan.Scanner }

// value reads one attribute value: an object with exactly one member, whose name is the type. depth is the number of
// lists and maps around it.
func (d decoder) value(depth int) (Value, error) {
	if depth > maxNesting {
		return nil, &InvalidError{"Nesting Levels have exceeded supported limits"}
	}
	var v Value
	several := false
	err := d.Object(func(kind []byte) (err error) {
		several = v != nil
		v, err = d.typed(string(kind), depth)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case several:
		return nil, ErrTwoTypes
	case v == nil:
		return nil, ErrNoType
	}
	return v, nil
}

func (d decoder) typed(kind string, depth int) (Value, error) {
	switch kind {
	case "S":
		s, err := d.Text()
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
		return set(d, "string", d.Text, func(s []string) Value { return StringSet(s) })
	case "NS":
		return set(d, "number", d.number, func(n []Number) Value { return NumberSet(n) })
	case "BS":
		return set(d, "binary", d.bytes, func(b []string) Value { return BinarySet(b) })
	case "L":
		return d.list(List{}, depth+1)
	case "M":
		return d.fields(depth + 1)
	}
	return nil, ErrNoType
}

func (d decoder) list(l List, depth int) (List, error) {
	err := d.Array(func() error {
		v, err := d.value(depth)
		l = append(l, v)
		return err
	})
	return l, err
}

// fields reads the fields of a map or of an item.
func (d decoder) fields(depth int) (Map, error) {
	var all Map
	err := d.Object(func(text []byte) error {
		name := string(text)
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
func set[T ~string](d decoder, kind string, read func() (T, error), convert func([]T) Value) (Value, error) {
	var members []T
	var twice bool
	err := d.Array(func() error {
		m, err := read()
		twice = twice || slices.Contains(members, m)
		members = append(members, m)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(members) == 0 && kind == "binary":
		return nil, &InvalidError{invalid + "Binary sets should not be empty"}
	case len(members) == 0:
		return nil, &InvalidError{invalid + "An " + kind + " set  may not be empty"}
	case twice:
		return nil, &InvalidError{invalid + "Input collection " + duplicates(kind, members) + "contains duplicates."}
	}
	return convert(members), nil
}

// duplicates shows the members as AWS does: sorted up to the first one that was there before, then that one, then the rest. It names no
// numbers. Recorded: paritysuite/dynamodb-conformance, error-messages/valueLayers.test.ts.
func duplicates[T ~string](kind string, members []T) string {
	if kind == "number" {
		return ""
	}
	repeated := 0
	for slices.Index(members, members[repeated]) == repeated {
		repeated++
	}
	slices.Sort(members[:repeated])
	shown := make([]string, len(members))
	for i, m := range members {
		shown[i] = `"` + string(m) + `"`
		if kind == "binary" {
			shown[i] = `"` + base64.StdEncoding.EncodeToString([]byte(m)) + `"`
		}
	}
	if kind == "binary" {
		return "[" + strings.Join(shown, ",") + "]of type BS "
	}
	return "[" + strings.Join(shown, ", ") + "] "
}

func (d decoder) number() (Number, error) {
	s, err := d.Text()
	if err != nil {
		return "", err
	}
	n, err := ParseNumber(s)
	switch {
	case errors.Is(err, ErrNotANumber):
		return "", &InvalidError{"The parameter cannot be converted to a numeric value: " + s}
	case err != nil:
		return "", &InvalidError{err.Error()}
	}
	return n, nil
}

func (d decoder) bytes() (string, error) {
	s, err := d.Text()
	if err != nil {
		return "", err
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", &SyntaxError{Message: fmt.Sprintf("Base64 encoded length is expected a multiple of 4 bytes but found: %d", len(s))}
	}
	return string(b), nil
}

func (d decoder) boolean() (bool, error) {
	switch {
	case d.Word("true"):
		return true, nil
	case d.Word("false"):
		return false, nil
	}
	return false, d.Unexpected("Boolean")
}
