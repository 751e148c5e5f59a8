package esm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// parseRule reads one alternative of a list: a value to equal, or an object with one operator.
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

// numeric takes pairs of comparison and number, all of which must hold: [">", 10, "<=", 20].
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
		return present && ok && !slices.ContainsFunc(all, func(holds func(float64) bool) bool { return !holds(n) })
	}, nil
}
