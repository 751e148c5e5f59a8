package esm

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// filters are the patterns of a mapping. A message must match one of them, unless the list is empty.
type filters []*pattern

// parseFilters parses filter criteria patterns. SQS mappings support filtering only on the body key:
// https://docs.aws.amazon.com/lambda/latest/dg/with-sqs-filtering.html
// Another key is an error. If it were a pattern that no message matches, the mapping would delete all messages.
func parseFilters(sources []string) (filters, error) {
	var fs filters
	var errs []error
	for i, source := range sources {
		p, err := parseFilter(source)
		if err != nil {
			errs = append(errs, &configError{Field: fmt.Sprintf("Filters[%d]", i), Problem: err.Error()})
			continue
		}
		fs = append(fs, p)
	}
	return fs, errors.Join(errs...)
}

// parseFilter returns the pattern for the body. A pattern without rules and fields matches every body.
func parseFilter(source string) (*pattern, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal([]byte(source), &top); err != nil {
		return nil, fmt.Errorf("is not a JSON object: %w", err)
	}
	if top == nil {
		return nil, errors.New("is null, not a JSON object")
	}
	for key := range top {
		if key != "body" {
			return nil, fmt.Errorf("has the key %q; SQS mappings filter on body only", key)
		}
	}
	body, ok := top["body"]
	if !ok {
		return &pattern{}, nil
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, err
	}
	return parsePattern("body", v)
}

// match reports whether a body matches. A body that is a JSON object never matches a pattern for plain strings, and a plain
// string never matches a pattern for JSON.
func (fs filters) match(body string) bool {
	if len(fs) == 0 {
		return true
	}
	var object map[string]any
	isObject := json.Unmarshal([]byte(body), &object) == nil && object != nil
	for _, p := range fs {
		switch {
		case p.empty():
			return true
		case p.rules == nil && isObject && p.match(object, true):
			return true
		case p.rules != nil && !isObject && p.match(body, true):
			return true
		}
	}
	return false
}

// pattern is a filter pattern or a part of one: either a list of rules for a value, of which one must match, or fields
// with a pattern for each, all of which must match.
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

// match reports whether v matches. Of a list in the message, one element must match.
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

// equal matches a value that has the same type and is equal.
func equal(want any) (rule, error) {
	switch want.(type) {
	case string, float64, bool, nil:
		return func(v any, present bool) bool { return present && v == want }, nil
	}
	return nil, errors.New("a value is a string, a number, true, false or null")
}

// parseRule parses one alternative of a list: a value, or an object with one operator.
func parseRule(v any) (rule, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return equal(v)
	}
	if len(object) != 1 {
		return nil, errors.New("a rule has exactly one operator")
	}
	var operator string
	for operator = range object {
	}
	return parseOperator(operator, object[operator])
}

func parseOperator(operator string, operand any) (rule, error) {
	switch operator {
	case "prefix":
		return text(operator, operand, strings.HasPrefix)
	case "suffix":
		return text(operator, operand, strings.HasSuffix)
	case "equals-ignore-case":
		return text(operator, operand, strings.EqualFold)
	case "exists":
		want, ok := operand.(bool)
		if !ok {
			return nil, errors.New("exists takes true or false")
		}
		return func(_ any, present bool) bool { return present == want }, nil
	case "anything-but":
		return anythingBut(operand)
	case "numeric":
		return numeric(operand)
	default:
		return nil, fmt.Errorf("operator %q is not supported", operator)
	}
}

func text(operator string, operand any, match func(s, operand string) bool) (rule, error) {
	want, ok := operand.(string)
	if !ok {
		return nil, fmt.Errorf("%s takes a string", operator)
	}
	return func(v any, present bool) bool {
		s, ok := v.(string)
		return present && ok && match(s, want)
	}, nil
}

func anythingBut(operand any) (rule, error) {
	list, ok := operand.([]any)
	if !ok {
		list = []any{operand}
	}
	for _, v := range list {
		switch v.(type) {
		case string, float64:
		default:
			return nil, errors.New("anything-but takes strings and numbers")
		}
	}
	return func(v any, present bool) bool { return present && !slices.Contains(list, v) }, nil
}

var comparisons = map[string]func(v, limit float64) bool{
	"=":  func(v, limit float64) bool { return v == limit },
	"<":  func(v, limit float64) bool { return v < limit },
	"<=": func(v, limit float64) bool { return v <= limit },
	">":  func(v, limit float64) bool { return v > limit },
	">=": func(v, limit float64) bool { return v >= limit },
}

// numeric takes pairs of a comparison and a number, all of which must be true: [">", 10, "<=", 20].
func numeric(operand any) (rule, error) {
	bad := errors.New(`numeric takes a comparison and a number, or two of each, such as [">", 10, "<=", 20]`)
	list, ok := operand.([]any)
	if !ok || len(list) != 2 && len(list) != 4 {
		return nil, bad
	}
	var all []func(float64) bool
	for pair := range slices.Chunk(list, 2) {
		name, _ := pair[0].(string)
		compare := comparisons[name]
		limit, ok := pair[1].(float64)
		if compare == nil || !ok {
			return nil, bad
		}
		all = append(all, func(v float64) bool { return compare(v, limit) })
	}
	return func(v any, present bool) bool {
		n, ok := v.(float64)
		return present && ok && !slices.ContainsFunc(all, func(isTrue func(float64) bool) bool { return !isTrue(n) })
	}, nil
}
