package ops

import (
	"context"
	"errors"
	"fmt"
)

// Why a message is left.
var (
	ErrNotSelected   = errors.New("not selected by the options")
	ErrState         = errors.New("not sent in the state of its event")
	ErrNoDestination = errors.New("the queue that it came from is not known, or does not name this one as its dead-letter queue: set Options.Source")
	ErrTooOften      = errors.New("redriven RedriveOptions.MaxRedriven times before")
	ErrArrivedLater  = errors.New("more messages than the queue had at the start")
	ErrCameBack      = errors.New("redriven by this run, and came back")
	ErrHeldBehind    = errors.New("held behind a message of its group that was not redriven")
	ErrHoldOver      = errors.New("no longer certain that the message is hidden from other consumers")
)

// whyHeld returns what but the message itself holds it back, or nil.
func (r *run) whyHeld(ctx context.Context, m *Message) error {
	r.mu.Lock()
	stopped, failed := r.stopped[m.Group], r.failed
	r.mu.Unlock()
	selected, err := r.o.selects(m)
	switch {
	case err != nil:
		return err
	case !selected:
		return ErrNotSelected
	case stopped != nil:
		return stopped
	case failed != nil:
		return failed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// whyLeft returns why a redrive does not send the message, or nil.
func (r *run) whyLeft(ctx context.Context, m *Message) error {
	if historyOf(m.Attributes).run == r.report.Run { // whatever the options select: its state, class and ID are others now
		return ErrCameBack
	}
	if err := r.whyHeld(ctx, m); err != nil {
		return err
	}
	switch {
	case m.Problem != nil && !m.noRecord():
		return m.Problem
	case r.d.destination(m) == "":
		return ErrNoDestination
	case r.o.MaxRedriven > 0 && m.Redriven >= r.o.MaxRedriven:
		return ErrTooOften
	}
	return r.o.stateLeft(m)
}

// stateLeft is the decision by the state of the event.
func (o *RedriveOptions) stateLeft(m *Message) error {
	switch {
	case m.State == StateReleased,
		m.State == StateCrashed && o.Crashed,
		m.noRecord() && !m.Expired && o.Unknown,
		m.noRecord() && m.Expired && o.Expired,
		m.State == StateUnknown && o.WithoutRecords:
		return nil
	}
	return inState(m)
}

func inState(m *Message) error {
	if m.noRecord() {
		return fmt.Errorf("%w: %s: %w", ErrState, m.State, m.Problem)
	}
	return fmt.Errorf("%w: %s: %s", ErrState, m.State, m.State.Do())
}
