package sqsworker

import (
	"context"
	"log/slog"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// logFlush is how long the end of Run waits for the lines that are left.
const logFlush = time.Second

// logStart says what the worker runs with: a queue that has no policy has no dlq and a max_receive_count of 0.
func (w *Worker) logStart(q *queue) {
	kind := "standard"
	if w.fifo {
		kind = "FIFO"
	}
	w.log.Info("sqsworker: started", "kind", kind, "concurrency", w.opts.Concurrency, "in_flight", w.opts.MaxInFlight,
		"visibility", w.opts.VisibilityTimeout, "dlq", q.deadLetter, "max_receive_count", q.maxReceives,
		"process", host.Process()) // as the records of its events name it
}

// logLastReceive is for a message that is given back. Where the dead-letter queue is missing, SQS delivers it again.
func (l *loop) logLastReceive(d *delivery) {
	if l.dlqConfirmed() && !d.moved && d.lease.count == l.queue.maxReceives {
		l.log.WarnContext(d.context(), "sqsworker: given back at its last receive: SQS moves the message to the dead-letter queue",
			d.about()...)
	}
}

// context is that of the Start hooks of the latest run, for lines about the delivery: a handler of the log finds a trace in it. It may
// be called on any goroutine.
func (d *delivery) context() context.Context { return d.call.Context(context.Background()) }

// event returns the attributes that name an event in a line, and others. It may be called on any goroutine.
func (d *delivery) event(others ...any) []any {
	return append([]any{keyMessage, d.m.ID, keyEvent, d.key}, others...)
}

// about returns the attributes of a line about a delivery, and others. Only the loop may call it.
func (d *delivery) about(others ...any) []any {
	attrs := d.event(keyCount, d.lease.count)
	if d.m.Group != "" {
		attrs = append(attrs, keyGroup, d.m.Group)
	}
	return append(attrs, others...)
}

// eventKey is the key of an event in a log line: the one that deduplication used, which a key function may have made. Before
// deduplication has it, and without deduplication, the line has no key, because a key from the message may be another event's.
type eventKey struct {
	handler context.Context // of settle.New for the last run; nil: none has begun
}

func (k eventKey) String() string {
	if k.handler == nil {
		return ""
	}
	return settle.KnownKey(k.handler)
}

// LogValue implements [slog.LogValuer].
func (k eventKey) LogValue() slog.Value {
	if key := k.String(); key != "" {
		return slog.StringValue(key)
	}
	return slog.GroupValue()
}
