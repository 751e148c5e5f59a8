package fifo

import "context"

// acquire takes room in the buffer for one message of size bytes, in the order of the callers.
func (p *Publisher) acquire(ctx context.Context, size int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.closing, func() { cancel(ErrClosed) })()
	if p.messages.Acquire(ctx, 1) != nil {
		return noRoom(ctx)
	}
	if p.bytes.Acquire(ctx, size) != nil {
		p.messages.Release(1)
		return noRoom(ctx)
	}
	return nil
}

func noRoom(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != ErrClosed {
		return because(ErrBufferFull, cause)
	}
	return ErrClosed
}

func (p *Publisher) release(size int64) {
	p.messages.Release(1)
	p.bytes.Release(size)
}
