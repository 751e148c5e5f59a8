package dedup

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/internal/settle"
)

// awaitAcquire returns the context of the acquire. It ends with own, the host's, or with the patience.
func (rl *recordLease) awaitAcquire(own context.Context, patience time.Duration) context.Context {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	rl.patient, rl.giveUp = context.WithCancelCause(own)
	rl.due = time.Now().Add(patience)
	rl.move(phaseAsked)
	return patientContext{rl.patient, rl.due}
}

// handlerContext returns a context that ends with ctx, or by the function. It is that of the acquire, if it did not end and the handler
// has no deadline of its own: one context fewer for each delivery.
func (rl *recordLease) handlerContext(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	if own, _ := settle.Host(ctx); own.Done() == ctx.Done() && rl.patient.Err() == nil {
		return rl.patient, rl.giveUp
	}
	return context.WithCancelCause(ctx)
}

// patientContext is a context that ends as its own does, and whose end by the acquire's patience is a deadline. The Err of
// contexts that are derived from it is context.Canceled, and their cause that of a deadline.
type patientContext struct {
	context.Context
	patience time.Time
}

func (c patientContext) Deadline() (time.Time, bool) {
	if deadline, ok := c.Context.Deadline(); ok && deadline.Before(c.patience) {
		return deadline, true
	}
	return c.patience, true
}

func (c patientContext) Err() error {
	err := c.Context.Err()
	if err != nil && context.Cause(c.Context) == context.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return err
}
