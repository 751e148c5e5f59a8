package counter

import (
	"sync"
	"time"
)

// mostSeen limits the keys of a Memory. Beyond it all are forgotten, which costs a request for each.
const mostSeen = 10_000

// Memory is what a process has seen of its keys. A statement whose condition has the number of tokens in it is refused
// where that is wrong, so the likely one is tried first.
type Memory struct {
	mu   sync.Mutex
	seen map[string]seen
}

// seen is the last answer of a key.
type seen struct {
	before, after int64 // lags
	at            time.Time
	alone         bool // nobody else has changed it since the answer before
}

// low is a lag that the key has at least.
func (s seen) low(now time.Time) int64 { return s.after - now.Sub(s.at).Microseconds() }

// Guess is the likely lag of a key. A key of this process alone has what is left of its last lag, one of several
// processes about the lag that it had, and a new key none.
func (m *Memory) Guess(key string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.seen[key]
	if !known {
		return -1
	}
	low := s.low(time.Now())
	if s.alone {
		return low
	}
	return max(low, s.before)
}

// Learn notes the lags that a key had before and after a call, which was sent at the given time.
func (m *Memory) Learn(key string, sent time.Time, before, after int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.seen[key]
	if m.seen == nil || len(m.seen) >= mostSeen && !known {
		m.seen = map[string]seen{}
	}
	// The clock of DynamoDB is known to a part of a second.
	alone := !known || before <= max(0, last.low(sent))+shortLine/10
	m.seen[key] = seen{before: before, after: after, at: time.Now(), alone: alone}
}
