package sqsworker

import "sync"

// mailbox takes events from any goroutine and hands them to the loop, all that have come at a time: one turn then
// answers for all of them, with fuller batches.
type mailbox struct {
	news chan struct{} // holds one while there are events

	mu     sync.Mutex
	events []func()
	spare  []func() // used again
	closed bool
}

func newMailbox() *mailbox { return &mailbox{news: make(chan struct{}, 1)} }

// put never blocks. In a closed mailbox an event is dropped: a stuck handler that returns then has nobody to tell.
func (b *mailbox) put(event func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.events = append(b.events, event)
	if len(b.events) == 1 { // take has emptied it, and with it the news
		b.news <- struct{}{}
	}
}

// take runs what there is. It is to be called once for each receive from news.
func (b *mailbox) take() {
	b.mu.Lock()
	events := b.events
	b.events, b.spare = b.spare, nil
	b.mu.Unlock()
	for _, event := range events {
		event()
	}
	clear(events)
	b.spare = events[:0]
}

func (b *mailbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.events = true, nil
}
