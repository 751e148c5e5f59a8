package outbox

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// The keys of log lines. Metric filters read those of the line "outbox: swept", so they don't change.
const (
	keyQueue    = "queue"
	keyGroup    = "group"
	keyEvent    = "event"
	keySequence = "sequence"
	keyError    = "error"
	keyGroups   = "groups"
	keyOldest   = "oldest_seconds"
	keyHalted   = "halted"
	keySkipped  = "skipped"
	keyOverdue  = "overdue_seconds"
)

// logFlush is how long a call waits at its end for the lines that are left. A log that blocks doesn't stop a call.
const logFlush = 50 * time.Millisecond

// logEvery is the least time between two lines of Run that say the same.
const logEvery = time.Minute

// episodes are when Run last wrote the lines that it writes once a minute.
type episodes struct{ swept, failed, waits, moves time.Time }

// due reports whether a line may be written again, and notes that it is.
func (r *Relay) due(last func(*episodes) *time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := last(&r.said)
	if now := time.Now(); at.IsZero() || now.Sub(*at) >= logEvery {
		*at = now
		return true
	}
	return false
}

func (r *Relay) logSwept(ctx context.Context, b Backlog) {
	r.opts.Logger.InfoContext(ctx, "outbox: swept", keyQueue, r.publisher.QueueURL(),
		keyGroups, b.Groups, keyOldest, b.Oldest.Seconds(), keyHalted, b.Halted, keySkipped, b.Skipped, keyOverdue, b.Overdue.Seconds())
}

// logFailed is for what meets other groups too.
func (r *Relay) logFailed(ctx context.Context, group string, err error) {
	if r.due(func(e *episodes) *time.Time { return &e.failed }) {
		r.opts.Logger.ErrorContext(ctx, "outbox: publishing fails, and the relay publishes again (logged once a minute)",
			append(host.ErrorAttrs(err), keyGroup, group)...)
	}
}

// logMove is for events that are due and can't be added to the outbox.
func (r *Relay) logMove(ctx context.Context, err error) {
	if r.due(func(e *episodes) *time.Time { return &e.moves }) {
		r.opts.Logger.ErrorContext(ctx, "outbox: due events can't be added to the outbox, and the relay tries again (logged once a minute)",
			host.ErrorAttrs(err)...)
	}
}

// logWaits is for a group that waits for an operator.
func (r *Relay) logWaits(ctx context.Context, group string, err error) {
	if r.due(func(e *episodes) *time.Time { return &e.waits }) {
		r.opts.Logger.ErrorContext(ctx, "outbox: a group waits for an operator (logged once a minute, for one group)",
			keyGroup, group, keyError, err)
	}
}
