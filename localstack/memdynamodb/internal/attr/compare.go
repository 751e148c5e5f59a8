package attr

import (
	"cmp"
	"slices"
	"strings"
)

// Equal reports whether two values have the same type and the same value. The order of a set's members does not count.
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
		return false // not comparable by ==
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

// Compare orders two strings, two numbers or two byte strings. Other pairs have no order: ok is false.
func Compare(a, b Value) (order int, ok bool) {
	switch a := a.(type) {
	case String:
		if b, same := b.(String); same {
			return cmp.Compare(a, b), true // by UTF-8 bytes, as DynamoDB sorts
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

// Contains reports whether v, a string, byte string, set or list, holds part.
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
