package sqsworker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	// maxLines is how many lines may wait for the user's slog.Handler.
	maxLines = 1024
	// logFlush is how long the end of Run waits for the lines that are left.
	logFlush = time.Second
)

// lines are the log lines of a worker on their way to the user's slog.Handler. One goroutine writes them, so that a log that
// blocks, as a full pipe on stderr does, stops neither the loop nor its heartbeats. The goroutine ends when nothing is left.
// Lines that do not fit are dropped and counted.
type lines struct {
	mu      sync.Mutex
	queue   []line
	dropped int           // not said yet
	written chan struct{} // closed when the goroutine ends; nil: there is none
}

type line struct {
	to     slog.Handler
	record slog.Record
}

func (q *lines) add(l line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) >= maxLines {
		q.dropped++
		return
	}
	q.queue = append(q.queue, l)
	if q.written == nil {
		q.written = make(chan struct{})
		go q.write()
	}
}

// take returns the next line to write. Lines are dropped only while others wait, so that there is always one to say it.
func (q *lines) take() (l line, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		close(q.written)
		q.queue, q.written = nil, nil
		return line{}, false
	}
	l, q.queue[0] = q.queue[0], line{}
	q.queue = q.queue[1:]
	if q.dropped > 0 {
		l.record = l.record.Clone()
		l.record.AddAttrs(slog.Int(keyDropped, q.dropped))
		q.dropped = 0
	}
	return l, true
}

func (q *lines) write() {
	finished := false
	defer func() {
		if !finished {
			go q.write() // a slog.Handler has ended the goroutine, as t.Fatal of a test does
		}
	}()
	for {
		l, ok := q.take()
		if !ok {
			finished = true
			return
		}
		_ = l.to.Handle(context.Background(), l.record) // slog.Logger drops the error too: where would it be logged?
	}
}

// flush waits until no line is left, for at most d.
func (q *lines) flush(d time.Duration) {
	q.mu.Lock()
	written := q.written
	q.mu.Unlock()
	if written == nil {
		return
	}
	select {
	case <-written:
	case <-time.After(d):
	}
}

// lineHandler adds to lines what next is to write. Records keep their time; next gets no context, since the worker logs with
// none.
type lineHandler struct {
	lines *lines
	next  slog.Handler
}

func (h lineHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h lineHandler) Handle(_ context.Context, r slog.Record) error {
	h.lines.add(line{h.next, r})
	return nil
}

func (h lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return lineHandler{h.lines, h.next.WithAttrs(attrs)}
}

func (h lineHandler) WithGroup(name string) slog.Handler {
	return lineHandler{h.lines, h.next.WithGroup(name)}
}

// logStart says what the worker runs with: a queue that has no policy has no dlq and a max_receive_count of 0.
func (w *Worker) logStart(q *queue) {
	kind := "standard"
	if w.fifo {
		kind = "FIFO"
	}
	w.log.Info("sqsworker: started", "kind", kind, "concurrency", w.opts.Concurrency, "in_flight", w.opts.InFlight,
		"visibility", w.opts.Visibility, "dlq", q.deadLetter, "max_receive_count", q.maxReceives)
}

// logLastReceive is for a message that is given back.
func (l *loop) logLastReceive(d *delivery) {
	if l.atLastReceive(d) && !l.queue.guessed {
		l.log.Warn("sqsworker: given back at its last receive: SQS moves the message to the dead-letter queue",
			d.about()...)
	}
}

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

// eventKey is the key of a message as it was received, in a log line: handlers may change theirs. It costs as much as the
// body is long, so it is derived when a line is written, and not at all without one. What has no key has no attribute.
type eventKey struct {
	raw      *sqstypes.Message
	queueARN string
}

// LogValue implements [slog.LogValuer].
func (k eventKey) LogValue() slog.Value {
	key, _, err := decode(k.raw, k.queueARN).Key()
	if err != nil {
		return slog.GroupValue()
	}
	return slog.StringValue(key)
}
