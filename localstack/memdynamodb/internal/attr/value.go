// Package attr holds DynamoDB's attribute values: their types, JSON form, sizes, order and equality.
package attr

import (
	"cmp"
	"slices"
	"strings"
)

// Value is one of String, Number, Binary, Bool, Null, StringSet, NumberSet, BinarySet, List and Map. No code changes a
// value after it is made, so that a reader can use an item while writes replace it in its table.
type Value interface {
	// Type is the name of the type in DynamoDB's JSON, such as "S".
	Type() string
}

type (
	// String is a string of UTF-8.
	String string
	// Number is a decimal in the canonical form of [ParseNumber]. Equal numbers have equal text.
	Number string
	// Binary is a string of bytes.
	Binary string
	// Bool is true or false.
	Bool bool
	// Null is the null value.
	Null struct{}
	// StringSet is a set of strings, in the order in which they came.
	StringSet []string
	// NumberSet is a set of numbers.
	NumberSet []Number
	// BinarySet is a set of byte strings.
	BinarySet []string
	// List is a list of values of any types.
	List []Value
	// Map is a map, or a whole item. Its fields are sorted by name. A Go map would need several times the memory.
	Map []Field
)

// Field is one attribute of a [Map].
type Field struct {
	Name  string
	Value Value
}

func (String) Type() string    { return "S" }
func (Number) Type() string    { return "N" }
func (Binary) Type() string    { return "B" }
func (Bool) Type() string      { return "BOOL" }
func (Null) Type() string      { return "NULL" }
func (StringSet) Type() string { return "SS" }
func (NumberSet) Type() string { return "NS" }
func (BinarySet) Type() string { return "BS" }
func (List) Type() string      { return "L" }
func (Map) Type() string       { return "M" }

// TypeNames are all the types, in the order of DynamoDB's messages.
var TypeNames = []string{"B", "NULL", "SS", "BOOL", "L", "BS", "N", "NS", "S", "M"}

func (m Map) find(name string) (at int, found bool) {
	return slices.BinarySearchFunc(m, name, func(f Field, name string) int { return strings.Compare(f.Name, name) })
}

// Get returns the value of a field, nil if there is none.
func (m Map) Get(name string) Value {
	if i, ok := m.find(name); ok {
		return m[i].Value
	}
	return nil
}

// With returns a copy of m with the field set to v.
func (m Map) With(name string, v Value) Map {
	i, ok := m.find(name)
	if ok {
		c := slices.Clone(m)
		c[i].Value = v
		return c
	}
	c := make(Map, 0, len(m)+1)
	c = append(c, m[:i]...)
	c = append(c, Field{name, v})
	return append(c, m[i:]...)
}

// Without returns a copy of m without the field, or m itself if it has no such field.
func (m Map) Without(name string) Map {
	i, ok := m.find(name)
	if !ok {
		return m
	}
	c := make(Map, 0, len(m)-1)
	return append(append(c, m[:i]...), m[i+1:]...)
}

// Equal reports whether two values have the same type and the same value. In sets, the order of the members does not
// count.
func Equal(a, b Value) bool {
	switch a := a.(type) {
	case StringSet:
		b, ok := b.(StringSet)
		return ok && sameMembers(a, b)
	case NumberSet:
		b, ok := b.(NumberSet)
		return ok && sameMembers(a, b)
	case BinarySet:
		b, ok := b.(BinarySet)
		return ok && sameMembers(a, b)
	case List:
		b, ok := b.(List)
		return ok && slices.EqualFunc(a, b, Equal)
	case Map:
		b, ok := b.(Map)
		return ok && slices.EqualFunc(a, b, func(x, y Field) bool { return x.Name == y.Name && Equal(x.Value, y.Value) })
	}
	switch b.(type) {
	case StringSet, NumberSet, BinarySet, List, Map:
		return false // a has another type, and == panics for slices
	}
	return a == b
}

func sameMembers[T cmp.Ordered](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// Compare orders two strings, two numbers or two byte strings. For other pairs ok is false.
func Compare(a, b Value) (order int, ok bool) {
	switch a := a.(type) {
	case String:
		if b, same := b.(String); same {
			return cmp.Compare(a, b), true // by UTF-8 bytes, as in DynamoDB
		}
	case Number:
		if b, same := b.(Number); same {
			return a.Compare(b), true
		}
	case Binary:
		if b, same := b.(Binary); same {
			return cmp.Compare(a, b), true
		}
	}
	return 0, false
}

// Contains reports whether v, a string, byte string, set or list, contains part. A list contains its elements.
func Contains(v, part Value) bool {
	switch v := v.(type) {
	case String:
		p, ok := part.(String)
		return ok && strings.Contains(string(v), string(p))
	case Binary:
		p, ok := part.(Binary)
		return ok && strings.Contains(string(v), string(p))
	case StringSet:
		p, ok := part.(String)
		return ok && slices.Contains(v, string(p))
	case NumberSet:
		p, ok := part.(Number)
		return ok && slices.Contains(v, p)
	case BinarySet:
		p, ok := part.(Binary)
		return ok && slices.Contains(v, string(p))
	case List:
		return slices.ContainsFunc(v, func(e Value) bool { return Equal(e, part) })
	}
	return false
}

// Size is the size of an item in bytes, for the limit of 400 KB and for capacity units: that of its names and values.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func (m Map) Size() int {
	n := 0
	for _, f := range m {
		n += len(f.Name) + Size(f.Value)
	}
	return n
}

// Size is the size of one value in bytes.
func Size(v Value) int {
	switch v := v.(type) {
	case String:
		return len(v)
	case Binary:
		return len(v)
	case Number:
		return numberSize(v)
	case Bool, Null:
		return 1
	case StringSet:
		return stringsSize(v)
	case BinarySet:
		return stringsSize(v)
	case NumberSet:
		n := 0
		for _, e := range v {
			n += numberSize(e)
		}
		return n
	case List:
		n := 3
		for _, e := range v {
			n += 1 + Size(e)
		}
		return n
	case Map:
		return 3 + len(v) + v.Size()
	}
	return 0
}

func stringsSize(set []string) int {
	n := 0
	for _, e := range set {
		n += len(e)
	}
	return n
}

// numberSize is one byte for each two significant digits, one byte more, and one for a minus sign. The pairs of digits
// begin at the decimal point.
func numberSize(n Number) int {
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(string(n), "-"), ".")
	size := 1
	if strings.HasPrefix(string(n), "-") {
		size++
	}
	if whole == "0" {
		whole = ""
	}
	pairs := (len(whole)+1)/2 + (len(fraction)+1)/2
	// Pairs of zeros at either end have no size. The last digit of a fraction is never a zero.
	switch {
	case fraction == "":
		pairs -= (len(whole) - len(strings.TrimRight(whole, "0"))) / 2
	case whole == "":
		pairs -= (len(fraction) - len(strings.TrimLeft(fraction, "0"))) / 2
	}
	return size + pairs
}
