package fifo

import "context"

// Pending is an accepted event that will have a result.
type Pending struct {
	event, group string
	done         chan struct{} // closed after receipt and err are set
	receipt      Receipt
	err          error
}

// Wait returns the event's result: a [Receipt], or a [*PublishError]. If ctx ends first, it returns the context's cause,
// and the event stays accepted. Wait may be called again, also concurrently.
func (p *Pending) Wait(ctx context.Context) (Receipt, error) {
	if p.isDone() {
		return p.receipt, p.err
	}
	select {
	case <-p.done:
		return p.receipt, p.err
	case <-ctx.Done():
		return Receipt{}, context.Cause(ctx)
	}
}

func (p *Pending) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// failedPending returns the Pending of an event that was not accepted.
func failedPending(e Event, err error) *Pending {
	p := &Pending{event: e.ID, group: e.Group, done: make(chan struct{}), err: err}
	close(p.done)
	return p
}

func (p *Pending) publishError(err error) *PublishError {
	return &PublishError{EventID: p.event, Group: p.group, Err: err}
}
