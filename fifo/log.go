package fifo

import "time"

// logFlush is how long PublishAll, Flush and Close wait for the lines that are left: a function is frozen after PublishAll, and a
// program ends after Close.
const logFlush = 50 * time.Millisecond

// logRetry is for an attempt that failed. What certainly is not in the queue is tried until its caller gives up, and a caller
// of Enqueue may never: a line says so once a minute. The caller holds the lock.
func (p *Publisher) logRetry(e *entry, r attemptResult) {
	attrs := []any{"event", e.pending.event, "group", e.pending.group, "attempt", e.attempts, "unknown", r.proof == provesNothing, "error", r.err}
	p.opts.Logger.Debug("fifo: attempt failed, the event is sent again", attrs...)
	now := time.Now()
	if tried := now.Sub(e.started); tried >= warnAfter && now.Sub(p.warned) >= warnAfter {
		p.warned = now
		p.opts.Logger.Warn("fifo: no attempt has succeeded for a minute, the event is sent again",
			append(attrs, "queue", p.queueURL, "tried_for", tried.Round(time.Second), "accepted", p.opts.MaxMessages-p.capacity.messages)...)
	}
}
