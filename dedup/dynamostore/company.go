package dynamostore

import (
	"sync"
	"time"
)

// company is who else is at work: the deliveries that are acquiring a record or hold one. A statement waits for others
// only where there are others it could wait for: a worker with one handler slot, or a Lambda function with one message
// at a time, never waits.
//
// Of more than eight at once only the latest are known, which is cheaper than to know all of them: who came before all of
// these, and is still at work, takes its time, and is nobody to wait for.
type company struct {
	mu     sync.Mutex
	latest [8]member
	next   int // the place to be taken when none is free
}

// member is an owner and when its lease is over at the latest. A holder that lost its lease says nothing to the store:
// without an end it would be company for ever.
type member struct {
	owner string // empty: it has left
	until time.Time
}

func (c *company) enter(owner string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.find(owner)
	if m == nil {
		m = c.find("") // a place that is free
	}
	if m == nil {
		m = &c.latest[c.next]
		c.next = (c.next + 1) % len(c.latest)
	}
	*m = member{owner, until}
}

func (c *company) leave(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.find(owner); m != nil {
		*m = member{}
	}
}

func (c *company) find(owner string) *member {
	for i := range c.latest {
		if c.latest[i].owner == owner {
			return &c.latest[i]
		}
	}
	return nil
}

// others reports whether anybody but owner is there.
func (c *company) others(owner string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.latest {
		if m := &c.latest[i]; m.owner != "" && m.owner != owner && m.until.After(now) {
			return true
		}
	}
	return false
}
