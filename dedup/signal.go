package dedup

import "sync"

// signal is a channel that is closed once. It is made for the first that waits for it: hardly ever anybody does.
type signal struct {
	mu   sync.Mutex
	sent bool
	c    chan struct{}
}

func (s *signal) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = true
	if s.c != nil {
		close(s.c)
	}
}

func (s *signal) received() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		s.c = make(chan struct{})
		if s.sent {
			close(s.c)
		}
	}
	return s.c
}
