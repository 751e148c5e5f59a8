// Package expr is DynamoDB's expression language: condition, filter, key condition, update and projection expressions,
// and PartiQL statements on one item. An expression is parsed once for each text, bound to the placeholders of a
// request, and applied to items.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.html
package expr

import (
	"slices"
	"strings"
	"sync"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// Error is why an expression is refused. The message is DynamoDB's.
type Error struct{ Message string }

func (e *Error) Error() string { return e.Message }

// Expression is any parsed expression.
type Expression interface{ uses() *refs }

// refs are the placeholders that an expression uses, in the order in which they first appear in it, and the names with which its
// paths into lists and maps begin.
type refs struct{ names, values, nested []string }

func (r *refs) uses() *refs { return r }

// Env is the values of a request's placeholders.
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

// Nested returns the attributes into which the expressions have paths.
func (e *Env) Nested(expressions ...Expression) []string {
	var names []string
	for _, x := range expressions {
		for _, n := range x.uses().nested {
			use(&names, e.name(n))
		}
	}
	return names
}

// defined refuses placeholders that have no name or value.
func (e *Env) defined(kind string, r *refs) error {
	for _, n := range r.names {
		if e.Names[n] == "" { // an empty name is refused too
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

// Check refuses placeholders with a wrong spelling, and those that none of the request's expressions uses.
func (e *Env) Check(expressions ...Expression) error {
	var names, values []string
	for _, x := range expressions {
		names = append(names, x.uses().names...)
		values = append(values, x.uses().values...)
	}
	var unused []string
	for n, name := range e.Names {
		if err := attr.CheckName(name); err != nil {
			return &Error{`ExpressionAttributeNames contains invalid value: ` + err.Error() + `; key: "` + n + `"`}
		}
		if err := checkPlaceholder("ExpressionAttributeNames", n, '#'); err != nil {
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
		if err := checkPlaceholder("ExpressionAttributeValues", f.Name, ':'); err != nil {
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

// checkPlaceholder checks the spelling of a placeholder.
func checkPlaceholder(where, key string, sigil byte) error {
	ok := len(key) > 1 && key[0] == sigil
	for i := 1; ok && i < len(key); i++ {
		ok = word(key[i])
	}
	if !ok {
		return &Error{where + ` contains invalid key: Syntax error; key: "` + key + `"`}
	}
	return nil
}

// cache has parsed expressions by text: a program sends the same few texts again and again.
type cache[T any] struct {
	mu      sync.RWMutex
	entries map[string]T
}

// maxCached limits the memory for texts that are generated. A full cache starts again empty.
const maxCached = 4096

func (c *cache[T]) get(src string, parse func() (T, error)) (T, error) {
	c.mu.RLock()
	v, ok := c.entries[src]
	c.mu.RUnlock()
	if ok {
		return v, nil
	}
	v, err := parse()
	if err != nil {
		return v, err
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
	conditions    cache[*Condition]
	filters       cache[*Condition]
	keyConditions cache[*KeyCondition]
	updates       cache[*Update]
	projections   cache[*Projection]
	statements    cache[*prepared]
)

// ParseCondition parses a ConditionExpression. Like all errors of this package, its errors are of type [Error].
func ParseCondition(src string) (*Condition, error) {
	return conditions.get(src, func() (*Condition, error) { return parseCondition("ConditionExpression", src) })
}

// ParseFilter parses a FilterExpression.
func ParseFilter(src string) (*Condition, error) {
	return filters.get(src, func() (*Condition, error) { return parseCondition("FilterExpression", src) })
}

// ParseKeyCondition parses a KeyConditionExpression.
func ParseKeyCondition(src string) (*KeyCondition, error) {
	return keyConditions.get(src, func() (*KeyCondition, error) { return parseKeyCondition(src) })
}

// ParseUpdate parses an UpdateExpression.
func ParseUpdate(src string) (*Update, error) {
	return updates.get(src, func() (*Update, error) { return parseUpdate(src) })
}

// ParseProjection parses a ProjectionExpression.
func ParseProjection(src string) (*Projection, error) {
	return projections.get(src, func() (*Projection, error) { return parseProjection(src) })
}
