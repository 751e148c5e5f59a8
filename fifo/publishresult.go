package fifo

import "context"

// PublishResult is an accepted event that will have a result.
type PublishResult struct {
	event, group string
	publisher    *Publisher
	done         chan struct{} // closed after receipt and err are set, and the hooks were called
	receipt      Receipt
	err          error

	// The fields below belong to the publisher's mutex.
	hasResult bool   // receipt and err are set
	waiters   int    // callers that will read the result
	read      bool   // a caller has the result, or was told that it is unknown
	serial    uint64 // of its entry
	latch     *latch // set by a failure
	lane      *lane  // set by a failure; nil: the shared one
	counted   int    // in failures.more, while failures.flushed has this value
}

// Get returns the event's result: a [Receipt], or a [*PublishError]. If ctx ends first, it returns the context's cause, and the
// event stays accepted. You may call Get again, also concurrently.
func (p *PublishResult) Get(ctx context.Context) (Receipt, error) {
	if p.isDone() && p.err == nil {
		return p.receipt, nil
	}
	pub := p.publisher
	pub.mu.Lock()
	p.waiters++
	pub.mu.Unlock()
	select {
	case <-p.done:
	case <-ctx.Done():
	}
	pub.mu.Lock()
	p.waiters--
	hasResult := p.hasResult
	if hasResult {
		pub.markRead(p)
	}
	pub.mu.Unlock()
	if !hasResult {
		return Receipt{}, context.Cause(ctx)
	}
	<-p.done
	return p.receipt, p.err
}

func (p *PublishResult) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// failedResult returns the result of an event that was not accepted.
func failedResult(e Event, err error) *PublishResult {
	p := &PublishResult{event: e.ID, group: e.Group, done: make(chan struct{}), hasResult: true, err: err}
	close(p.done)
	return p
}
