package dynamostore

import (
	"sync"
	"time"
)

// company is who else is at work: the deliveries that are acquiring a record or hold one. A statement waits for others
// only where there are others it could wait for: a worker with one handler slot, or a Lambda function with one message
// at a time, never waits.
type company struct {
	mu sync.Mutex
	// members are owners, and when their lease is over at the latest. A holder that lost its lease says nothing to the
	// store: without an end it would be company for ever.
	members map[string]time.Time
	latest  [2]member // of them, to be seen without a search; no owner: it has left
}

type member struct {
	owner string
	until time.Time
}

func (c *company) enter(owner string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members == nil {
		c.members = map[string]time.Time{}
	}
	c.members[owner] = until
	if c.latest[0].owner != owner {
		c.latest[1] = c.latest[0]
	}
	c.latest[0] = member{owner, until}
}

func (c *company) leave(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.members, owner)
	for i := range c.latest {
		if c.latest[i].owner == owner {
			c.latest[i] = member{}
		}
	}
}

// others reports whether anybody but owner is there. It looks at the living once and at each of the dead once: those are
// forgotten.
func (c *company) others(owner string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.latest {
		if m.owner != "" && m.owner != owner && m.until.After(now) {
			return true
		}
	}
	for o, until := range c.members {
		switch {
		case o == owner:
		case until.After(now):
			return true
		default:
			delete(c.members, o)
		}
	}
	return false
}
