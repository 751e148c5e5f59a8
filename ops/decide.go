package ops

import (
	"context"
	"fmt"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/opserr"
	"github.com/sqsonce/sqsonce/internal/opsview"
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
		return opserr.ErrNotSelected
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
		return opserr.ErrCameBack
	}
	if err := r.whyHeld(ctx, m); err != nil {
		return err
	}
	switch {
	case m.Problem != nil && !m.noRecord():
		return m.Problem
	case r.d.destination(m) == "":
		return opserr.ErrNoDestination
	case r.o.MaxRedriven > 0 && m.Redriven >= r.o.MaxRedriven:
		return opserr.ErrTooOften
	}
	return r.o.stateLeft(m)
}

// stateLeft is the decision by the state of the event.
func (o *RedriveOptions) stateLeft(m *Message) error {
	switch {
	case m.State == dedup.StateReleased,
		m.State == dedup.StateCrashed && o.Crashed,
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
	return fmt.Errorf("%w: %s: %s", ErrState, m.State, opsview.Do(m.State))
}
