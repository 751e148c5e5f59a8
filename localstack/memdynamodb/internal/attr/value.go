// Package attr holds DynamoDB's attribute values: their types, JSON form, sizes, order and equality.
package attr

import "slices"

// Value is one of String, Number, Binary, Bool, Null, StringSet, NumberSet, BinarySet, List and Map. Values are never
// changed once made: an item handed out stays what it was when later writes replace it.
type Value interface {
	// Type is the name of the type on the wire, such as "S".
	Type() string
}

type (
	// String is a string of UTF-8.
	String string
	// Number is a decimal in canonical form, as [ParseNumber] makes it: equal numbers have equal text.
	Number string
	// Binary is a string of bytes.
	Binary string
	// Bool is true or false.
	Bool bool
	// Null is the null value.
	Null struct{}
	// StringSet is a set of strings in the order first written.
	StringSet []string
	// NumberSet is a set of numbers.
	NumberSet []Number
	// BinarySet is a set of byte strings.
	BinarySet []string
	// List is a list of values of any types.
	List []Value
	// Map is a map, or a whole item, as fields sorted by name. A slice needs a fraction of a map's memory.
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

// TypeNames are all the types, in the order DynamoDB's messages list them.
var TypeNames = []string{"B", "NULL", "SS", "BOOL", "L", "BS", "N", "NS", "S", "M"}

// find is a binary search without a call for each step: it is what this server does most.
func (m Map) find(name string) (int, bool) {
	from, to := 0, len(m)
	for from < to {
		at := int(uint(from+to) / 2)
		switch n := m[at].Name; {
		case n == name:
			return at, true
		case n < name:
			from = at + 1
		default:
			to = at
		}
	}
	return from, false
}

// Get returns the value of a field, nil if there is none.
func (m Map) Get(name string) Value {
	if i, ok := m.find(name); ok {
		return m[i].Value
	}
	return nil
}

// With returns a copy of m in which the field has the value.
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

// Without returns m without the field.
func (m Map) Without(name string) Map {
	i, ok := m.find(name)
	if !ok {
		return m
	}
	c := make(Map, 0, len(m)-1)
	return append(append(c, m[:i]...), m[i+1:]...)
}
