package expr

import (
	"slices"
	"strings"
	"sync"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// Env is what a request's placeholders stand for.
type Env struct {
	Names  map[string]string // "#n": name
	Values attr.Map          // ":v": value
}

func (e *Env) name(n string) string {
	if n[0] == '#' {
		return e.Names[n]
	}
	return n
}

// Expression is any parsed expression.
type Expression interface{ uses() *refs }

// defined refuses placeholders that stand for nothing.
func (e *Env) defined(kind string, r *refs) error {
	for _, n := range r.names {
		if e.Names[n] == "" { // nor may it stand for the empty name
			return &Error{"Invalid " + kind + ": An expression attribute name used in the document path is not defined; attribute name: " + n}
		}
	}
	for _, v := range r.values {
		if e.Values.Get(v) == nil {
			return &Error{"Invalid " + kind + ": An expression attribute value used in expression is not defined; attribute value: " + v}
		}
	}
	return nil
}

// Check refuses placeholders that are misspelt, and those that none of the request's expressions uses. nil expressions
// are skipped.
func (e *Env) Check(expressions ...Expression) error {
	var names, values []string
	for _, x := range expressions {
		if x != nil {
			names = append(names, x.uses().names...)
			values = append(values, x.uses().values...)
		}
	}
	var unused []string
	for n, name := range e.Names {
		if name == "" {
			return &Error{`ExpressionAttributeNames contains invalid value: Empty attribute name; key: "` + n + `"`}
		}
		if err := placeholder("ExpressionAttributeNames", n, '#'); err != nil {
			return err
		}
		if !slices.Contains(names, n) {
			unused = append(unused, n)
		}
	}
	if len(unused) > 0 {
		slices.Sort(unused)
		return &Error{"Value provided in ExpressionAttributeNames unused in expressions: keys: {" + strings.Join(unused, ", ") + "}"}
	}
	for _, f := range e.Values {
		if err := placeholder("ExpressionAttributeValues", f.Name, ':'); err != nil {
			return err
		}
		if !slices.Contains(values, f.Name) {
			unused = append(unused, f.Name)
		}
	}
	if len(unused) > 0 {
		return &Error{"Value provided in ExpressionAttributeValues unused in expressions: keys: {" + strings.Join(unused, ", ") + "}"}
	}
	return nil
}

// placeholder checks the spelling of a placeholder's key.
func placeholder(where, key string, sigil byte) error {
	ok := len(key) > 1 && key[0] == sigil
	for i := 1; ok && i < len(key); i++ {
		ok = word(key[i])
	}
	if !ok {
		return &Error{where + ` contains invalid key: Syntax error; key: "` + key + `"`}
	}
	return nil
}

// Expressions are parsed once by text: programs send the same few over and over. A cache that has grown past maxCached
// starts again, so that generated texts cannot fill the memory.
const maxCached = 4096

type cache[T any] struct {
	mu      sync.RWMutex
	entries map[string]T
}

func (c *cache[T]) get(src string, parse func() (T, error)) (T, error) {
	c.mu.RLock()
	v, ok := c.entries[src]
	c.mu.RUnlock()
	if ok {
		return v, nil
	}
	v, err := parse()
	if err != nil {
		return v, err // mistakes are not worth remembering
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxCached {
		c.entries = map[string]T{}
	}
	c.entries[src] = v
	return v, nil
}

var (
	conditions  cache[*Condition]
	filters     cache[*Condition]
	keyConds    cache[*KeyCondition]
	updates     cache[*Update]
	projections cache[*Projection]
	statements  cache[*prepared]
)

// ParseCondition parses a ConditionExpression.
func ParseCondition(src string) (*Condition, error) {
	return conditions.get(src, func() (*Condition, error) { return parseCondition("ConditionExpression", src) })
}

// ParseFilter parses a FilterExpression.
func ParseFilter(src string) (*Condition, error) {
	return filters.get(src, func() (*Condition, error) { return parseCondition("FilterExpression", src) })
}

// ParseKeyCondition parses a KeyConditionExpression.
func ParseKeyCondition(src string) (*KeyCondition, error) {
	return keyConds.get(src, func() (*KeyCondition, error) { return parseKeyCondition(src) })
}

// ParseUpdate parses an UpdateExpression.
func ParseUpdate(src string) (*Update, error) {
	return updates.get(src, func() (*Update, error) { return parseUpdate(src) })
}

// ParseProjection parses a ProjectionExpression.
func ParseProjection(src string) (*Projection, error) {
	return projections.get(src, func() (*Projection, error) { return parseProjection(src) })
}
