package fifo

import (
	"context"
	"slices"
)

// room is what is left of the buffer. Those that wait for some get it in the order they came. It belongs to the
// publisher's mutex.
type room struct {
	messages int
	bytes    int64
	waiting  []*waiter
}

type waiter struct {
	size  int64
	given chan struct{}
}

// take takes room for one message of size bytes, or returns whom to wait for it as.
func (r *room) take(size int64) *waiter {
	if len(r.waiting) == 0 && r.fits(size) {
		r.use(size)
		return nil
	}
	w := &waiter{size: size, given: make(chan struct{})}
	r.waiting = append(r.waiting, w)
	return w
}

func (r *room) fits(size int64) bool { return r.messages > 0 && r.bytes >= size }

func (r *room) use(size int64) { r.messages, r.bytes = r.messages-1, r.bytes-size }

// give gives back what take took.
func (r *room) give(size int64) {
	r.messages, r.bytes = r.messages+1, r.bytes+size
	r.serve()
}

// leave ends a wait. What was given meanwhile is given back.
func (r *room) leave(w *waiter) {
	if i := slices.Index(r.waiting, w); i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
		r.serve() // those behind may need less
		return
	}
	r.give(w.size)
}

func (r *room) serve() {
	for len(r.waiting) > 0 && r.fits(r.waiting[0].size) {
		r.use(r.waiting[0].size)
		close(r.waiting[0].given)
		r.waiting = slices.Delete(r.waiting, 0, 1)
	}
}

// acquire takes room in the buffer for one message.
func (p *Publisher) acquire(ctx context.Context, size int64) error {
	p.mu.Lock()
	w := p.room.take(size)
	p.mu.Unlock()
	if w == nil {
		return nil
	}
	var err error
	select {
	case <-w.given:
		return nil
	case <-ctx.Done():
		err = because(ErrBufferFull, context.Cause(ctx))
	case <-p.closing.Done():
		err = ErrClosed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.room.leave(w)
	return err
}
