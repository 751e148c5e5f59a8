package fifo

import (
	"context"
	"time"
)

// logFlush is how long PublishAll, Flush and Close wait for the lines that are left: a function is frozen after PublishAll, and a
// program ends after Close.
const logFlush = 50 * time.Millisecond

// logRetry is for an attempt that failed. What certainly is not in the queue is tried until its caller gives up, and a caller
// of Enqueue may never: a line says so once a minute. The caller holds the lock.
func (p *Publisher) logRetry(e *entry, r attemptResult) {
	attrs := []any{"event", e.pending.event, "group", e.pending.group, "attempt", e.attempts, "unknown", r.proof == provesNothing, "error", r.err}
	p.opts.Logger.DebugContext(e.context(), "fifo: attempt failed, the event is sent again", attrs...)
	now := time.Now()
	if tried := now.Sub(e.started); tried >= warnAfter && now.Sub(p.warned) >= warnAfter {
		p.warned = now
		p.opts.Logger.WarnContext(e.context(), "fifo: no attempt has succeeded for a minute: the publisher sends the event again",
			append(attrs, "queue", p.queueURL, "tried_for", tried.Round(time.Second), "accepted", p.opts.MaxMessages-p.capacity.messages)...)
	}
}

// context is that of the Accept hooks, for lines about the event: a handler of the log finds a trace in it.
func (e *entry) context() context.Context {
	if e.hooked == nil {
		return context.Background()
	}
	return e.hooked.ctx
}

// episode is trouble that goes on. Trouble within warnAfter of the last belongs to it. It has one line, however many events it
// meets. The counters of Stats have the number.
type episode struct{ last time.Time }

// begins notes an occurrence, and reports whether it is the first one of an episode.
func (e *episode) begins(now time.Time) bool {
	last := e.last
	e.last = now
	return now.Sub(last) >= warnAfter
}

// logUnknown is for an attempt with an unknown outcome. The caller holds the lock.
func (p *Publisher) logUnknown(e *entry, r attemptResult) {
	if p.unknown.begins(time.Now()) {
		p.opts.Logger.WarnContext(e.context(), "fifo: unknown outcome of an attempt: the event may be in the queue (logged once until a minute passes without one)",
			"event", e.pending.event, "group", e.pending.group, "queue", p.queueURL, "attempt", e.attempts, "error", r.err)
	}
}

// logThrottled is for a request that SQS throttled. The caller holds the lock.
func (p *Publisher) logThrottled(now time.Time, err error) {
	if p.throttling.begins(now) {
		p.opts.Logger.Warn("fifo: SQS throttles the queue: all requests wait (logged once until a minute passes without throttling)",
			"queue", p.queueURL, "delay", p.throttle.until.Sub(now), "error", err)
	}
}

// logHalted is for an event that a group does not accept. The first one behind a failure is enough. The caller holds the lock.
func (p *Publisher) logHalted(e *entry, l *latch) {
	if !l.logged {
		l.logged = true
		p.opts.Logger.WarnContext(e.context(), "fifo: group halted: read the results of its failed events or call Resume before you publish to it",
			"event", e.event.ID, "group", e.event.Group, "queue", p.queueURL, "error", l.err)
	}
}
