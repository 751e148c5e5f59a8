package fifo

import (
	"container/list"
	"context"
	"fmt"
)

// capacity is the free part of Options.MaxMessages and MaxBytes. Events that wait for capacity get it in the order they came.
// It belongs to the publisher's mutex.
type capacity struct {
	messages int
	bytes    int64
	waiters  list.List // of *waiter
}

type waiter struct {
	size    int64
	granted chan struct{}
	place   *list.Element
}

// reserve takes capacity for one message of size bytes. It returns nil, or a waiter to wait for.
func (c *capacity) reserve(size int64) *waiter {
	if c.waiters.Len() == 0 && c.fits(size) {
		c.take(size)
		return nil
	}
	w := &waiter{size: size, granted: make(chan struct{})}
	w.place = c.waiters.PushBack(w)
	return w
}

func (c *capacity) fits(size int64) bool { return c.messages > 0 && c.bytes >= size }

func (c *capacity) take(size int64) { c.messages, c.bytes = c.messages-1, c.bytes-size }

// free returns the capacity of one message.
func (c *capacity) free(size int64) {
	c.messages, c.bytes = c.messages+1, c.bytes+size
	c.grant()
}

// cancel ends a wait. If the waiter got its capacity meanwhile, the capacity is freed.
func (c *capacity) cancel(w *waiter) {
	if w.place == nil {
		c.free(w.size)
		return
	}
	c.waiters.Remove(w.place)
	c.grant() // the next waiter may need less
}

func (c *capacity) grant() {
	for first := c.waiters.Front(); first != nil; first = c.waiters.Front() {
		w := first.Value.(*waiter)
		if !c.fits(w.size) {
			return
		}
		c.take(w.size)
		c.waiters.Remove(first)
		w.place = nil
		close(w.granted)
	}
}

// reserveCapacity waits until there is capacity for one message of size bytes.
func (p *Publisher) reserveCapacity(ctx context.Context, l *lane, size int64) error {
	if ctx.Err() != nil {
		return fmt.Errorf("fifo: nothing was sent: %w", foreign(context.Cause(ctx)))
	}
	p.mu.Lock()
	w := p.capacity.reserve(size)
	p.mu.Unlock()
	if w == nil {
		return nil
	}
	var err error
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		err = because(ErrBufferFull, foreign(context.Cause(ctx)))
	case <-l.ctx.Done():
		err = because(ErrBufferFull, l.why())
	case <-p.closing:
		err = ErrClosed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.capacity.cancel(w)
	return err
}
