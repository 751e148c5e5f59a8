package esm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// pattern is a filter pattern, or a part of one: a list of rules for a value, of which one must match, or names with the
// pattern for each, of which all must.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html#filtering-syntax
type pattern struct {
	rules  []rule
	fields map[string]*pattern
	either []*pattern // $or
}

// rule matches a value that is not an object: string, float64, bool, nil.
type rule func(v any, present bool) bool

func (p *pattern) empty() bool { return p.rules == nil && len(p.fields) == 0 && len(p.either) == 0 }

func parsePattern(path string, v any) (*pattern, error) {
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			return nil, fmt.Errorf("%s: the list of values is empty", path)
		}
		p := &pattern{}
		for _, alternative := range v {
			r, err := parseRule(alternative)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			p.rules = append(p.rules, r)
		}
		return p, nil
	case map[string]any:
		if len(v) == 0 {
			return nil, fmt.Errorf("%s: the object is empty", path)
		}
		p := &pattern{fields: map[string]*pattern{}}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := p.parseField(path, name, v[name]); err != nil {
				return nil, err
			}
		}
		return p, nil
	default:
		return nil, fmt.Errorf("%s: values are given as a list, such as [\"order\"]", path)
	}
}

func (p *pattern) parseField(path, name string, v any) error {
	if name != "$or" {
		field, err := parsePattern(path+"."+name, v)
		p.fields[name] = field
		return err
	}
	list, ok := v.([]any)
	if !ok || len(list) < 2 {
		return fmt.Errorf("%s: $or takes a list of at least two patterns", path)
	}
	for _, alternative := range list {
		if _, ok := alternative.(map[string]any); !ok {
			return fmt.Errorf("%s: $or takes a list of objects", path)
		}
		a, err := parsePattern(path, alternative)
		if err != nil {
			return err
		}
		p.either = append(p.either, a)
	}
	return nil
}

// match: of a list in the message, one element that matches is enough.
func (p *pattern) match(v any, present bool) bool {
	if list, ok := v.([]any); ok {
		return slices.ContainsFunc(list, func(e any) bool { return p.match(e, true) })
	}
	object, isObject := v.(map[string]any)
	if p.rules != nil {
		return slices.ContainsFunc(p.rules, func(r rule) bool { return r(v, present && !isObject) })
	}
	for name, field := range p.fields {
		value, ok := object[name]
		if !field.match(value, ok) {
			return false
		}
	}
	return len(p.either) == 0 || slices.ContainsFunc(p.either, func(a *pattern) bool { return a.match(v, present) })
}

// equal compares a value of a pattern and one of a message: same kind, same value.
func equal(want any) (rule, error) {
	switch want.(type) {
	case string, float64, bool, nil:
		return func(v any, present bool) bool { return present && v == want }, nil
	}
	return nil, errors.New("a value is a string, a number, true, false or null")
}
