package expr

import "sync"

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
