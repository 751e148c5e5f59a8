package dedup

import (
	"container/list"
	"sync"
	"time"
)

// rememberFor is how long a completed key is remembered. After an operator reopened or deleted a record, its event does not run
// here for that long, unless its message has the redriven attribute.
const rememberFor = time.Minute

// cache is an LRU of the keys whose record this process saw completed. Only a complete that the store confirmed enters:
// after any other the store must be asked again.
type cache struct {
	size int

	mu      sync.Mutex
	entries map[string]*list.Element // of *cacheEntry
	recent  *list.List               // the most recently used first
}

type cacheEntry struct {
	key        string
	validation string
	until      time.Time
}

func newCache(size int) cache {
	return cache{size: size, entries: make(map[string]*list.Element), recent: list.New()}
}

// add remembers a completed key with its payload's hash: a duplicate with another payload is refused without a request
// too.
func (c *cache) add(key, validation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size < 1 {
		return
	}
	el := c.entries[key]
	switch {
	case el != nil:
	case len(c.entries) < c.size:
		el = c.recent.PushFront(new(cacheEntry))
	default: // full: the entry that was not used for longest is used again
		el = c.recent.Back()
		delete(c.entries, el.Value.(*cacheEntry).key)
	}
	*el.Value.(*cacheEntry) = cacheEntry{key: key, validation: validation, until: time.Now().Add(rememberFor)}
	c.entries[key] = el
	c.recent.MoveToFront(el)
}

// get returns the payload hash with which a key's record was completed, and false for a key that is not remembered.
func (c *cache) get(key string) (Result, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.entries[key]
	if el == nil {
		return Result{}, false
	}
	e := el.Value.(*cacheEntry)
	if remaining(e.until, time.Now()) <= 0 {
		return Result{}, false // add uses the entry again
	}
	c.recent.MoveToFront(el)
	return Result{Validation: e.validation}, true
}
