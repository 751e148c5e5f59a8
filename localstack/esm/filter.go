package esm

import (
	"encoding/json"
	"errors"
	"fmt"
)

// filters are the patterns of a mapping. A message passes if it matches one of them, or if there is none.
type filters []*pattern

// parseFilters reads filter criteria patterns.
//
// https://docs.aws.amazon.com/lambda/latest/dg/with-sqs-filtering.html: SQS mappings only support filtering on the body
// key. Other keys are refused, and not taken as matching nothing: messages that match nothing are deleted.
func parseFilters(sources []string) (filters, error) {
	var fs filters
	var errs []error
	for i, source := range sources {
		p, err := parseFilter(source)
		if err != nil {
			errs = append(errs, &ConfigError{Field: fmt.Sprintf("Filters[%d]", i), Problem: err.Error()})
			continue
		}
		fs = append(fs, p)
	}
	return fs, errors.Join(errs...)
}

// parseFilter returns the pattern for the body; one without rules and fields matches every body.
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

// match applies the rule for bodies of one form and patterns of the other: a body that is a JSON object never matches a
// pattern for plain strings, nor a plain string one for JSON.
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
