package fifo

import (
	"context"
	"errors"
)

// Pending is an event that was accepted and will be answered.
type Pending struct {
	event, group string
	done         chan struct{} // closed after receipt and err are set
	receipt      Receipt
	err          error
}

// Wait returns how the event fared: a [Receipt], or a [*PublishError]. Where ctx ends first it returns the context's
// cause and the event stays accepted; Wait may be called again, also concurrently.
func (p *Pending) Wait(ctx context.Context) (Receipt, error) {
	if p.answered() {
		return p.receipt, p.err
	}
	select {
	case <-p.done:
		return p.receipt, p.err
	case <-ctx.Done():
		return Receipt{}, context.Cause(ctx)
	}
}

func (p *Pending) answered() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// refused returns the Pending of an event that was not accepted.
func refused(e Event, err error) *Pending {
	p := &Pending{event: e.ID, group: e.Group, done: make(chan struct{}), err: err}
	close(p.done)
	return p
}

func (p *Pending) fail(err error) *PublishError {
	return &PublishError{EventID: p.event, Group: p.group, Err: err}
}

// cause returns what a PublishError says of its event.
func cause(err error) error {
	if pe, ok := errors.AsType[*PublishError](err); ok {
		return pe.Err
	}
	return err
}

// at returns err, the failure of one event, as that of the event at index in a call of PublishAll. A Pending's error is
// shared by all who wait for it, so it is copied.
func at(index int, err error) error {
	pe, ok := errors.AsType[*PublishError](err)
	if !ok {
		return err
	}
	indexed := *pe
	indexed.Index = index
	return &indexed
}
