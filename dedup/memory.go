package dedup

import (
	"container/list"
	"sync"
	"time"
)

// rememberFor bounds how long a completed key is answered from memory, and with it how late an operator's deletion of a
// record takes effect here.
const rememberFor = time.Minute

// memory is what this process knows by itself: the keys it holds, and the keys it saw completed. Only confirmed
// completions enter: a key that may not be completed must be asked for again.
type memory struct {
	size int

	mu   sync.Mutex
	held map[string]*hold
	done map[string]*list.Element // of *doneEntry
	ages *list.List               // the most recently used first
}

type doneEntry struct {
	key        string
	validation string
	until      time.Time
}

func newMemory(size int) memory {
	return memory{size: size, held: make(map[string]*hold), done: make(map[string]*list.Element), ages: list.New()}
}

// enter notes that h is about to acquire key. Where another hold of this process certainly has it, that is returned
// instead. A hold whose lease was lost or may be over is passed by: the store knows more.
func (m *memory) enter(key string, h *hold) *hold {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other := m.held[key]; other != nil && other.live() {
		return other
	}
	m.held[key] = h
	return nil
}

func (m *memory) leave(key string, h *hold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[key] == h {
		delete(m.held, key)
	}
}

// complete remembers a key whose record is completed. The payload's hash is kept with it: a duplicate with another
// payload is refused from memory too.
func (m *memory) complete(key, validation string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.size < 1 {
		return
	}
	el := m.done[key]
	switch {
	case el != nil:
	case len(m.done) < m.size:
		el = m.ages.PushFront(new(doneEntry))
	default: // full: the oldest makes room, and is used again
		el = m.ages.Back()
		delete(m.done, el.Value.(*doneEntry).key)
	}
	*el.Value.(*doneEntry) = doneEntry{key: key, validation: validation, until: time.Now().Add(rememberFor)}
	m.done[key] = el
	m.ages.MoveToFront(el)
}

func (m *memory) completed(key string) (Result, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	el := m.done[key]
	if el == nil {
		return Result{}, false
	}
	e := el.Value.(*doneEntry)
	if remaining(e.until, time.Now()) <= 0 {
		return Result{}, false // it makes room as the oldest, or is completed again
	}
	m.ages.MoveToFront(el)
	return Result{Validation: e.validation}, true
}
