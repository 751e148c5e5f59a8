package expr

import (
	"slices"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// sum is what ADD makes: a number added, or a set's union. What is missing counts as zero or as the empty set.
func sum(old, v attr.Value) (attr.Value, error) {
	if old == nil {
		return v, nil
	}
	switch v := v.(type) {
	case attr.Number:
		if old, ok := old.(attr.Number); ok {
			return arithmetic(old.Add(v))
		}
	case attr.StringSet:
		if old, ok := old.(attr.StringSet); ok {
			return attr.StringSet(union(old, v)), nil
		}
	case attr.NumberSet:
		if old, ok := old.(attr.NumberSet); ok {
			return attr.NumberSet(union(old, v)), nil
		}
	case attr.BinarySet:
		if old, ok := old.(attr.BinarySet); ok {
			return attr.BinarySet(union(old, v)), nil
		}
	}
	return nil, errType
}

// difference is what DELETE leaves of a set; nil, an attribute removed, if nothing is left or nothing was there.
func difference(old, v attr.Value) (attr.Value, error) {
	if old == nil {
		return nil, nil
	}
	switch v := v.(type) {
	case attr.StringSet:
		if old, ok := old.(attr.StringSet); ok {
			if rest := without(old, v); len(rest) > 0 {
				return attr.StringSet(rest), nil
			}
			return nil, nil
		}
	case attr.NumberSet:
		if old, ok := old.(attr.NumberSet); ok {
			if rest := without(old, v); len(rest) > 0 {
				return attr.NumberSet(rest), nil
			}
			return nil, nil
		}
	case attr.BinarySet:
		if old, ok := old.(attr.BinarySet); ok {
			if rest := without(old, v); len(rest) > 0 {
				return attr.BinarySet(rest), nil
			}
			return nil, nil
		}
	}
	return nil, errType
}

func union[T comparable](a, b []T) []T {
	out := slices.Clone(a)
	for _, m := range b {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

func without[T comparable](a, b []T) []T {
	return slices.DeleteFunc(slices.Clone(a), func(m T) bool { return slices.Contains(b, m) })
}
