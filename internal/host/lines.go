package host

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// MaxLines is how many lines may wait for the user's slog.Handler.
	MaxLines = 1024
	// KeyDropped is the attribute that says how many lines were dropped before its own.
	KeyDropped = "dropped_lines"
)

// Lines are log lines on their way to the user's slog.Handler. One goroutine writes them, so that a log that blocks, as a full
// pipe on stderr does, stops nobody who logs. The goroutine ends when nothing is left. Lines that do not fit, or for which the
// handler panics or calls runtime.Goexit, are dropped and counted. The zero value is ready.
type Lines struct {
	mu      sync.Mutex
	queue   []line
	dropped int           // not said yet
	written chan struct{} // closed when the goroutine ends; nil: there is none
}

type line struct {
	ctx    context.Context // of the call that logged, for its values
	to     slog.Handler
	record slog.Record
}

func (q *Lines) add(l line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) >= MaxLines {
		q.dropped++
		return
	}
	q.queue = append(q.queue, l)
	if q.written == nil {
		q.written = make(chan struct{})
		go q.write()
	}
}

// take returns the next line to write, and how many were dropped before it. Lines that do not fit are dropped while others wait, one of which
// says it. For a line that its handler drops the next one does, if any comes.
func (q *Lines) take() (l line, dropped int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		close(q.written)
		q.queue, q.written = nil, nil
		return line{}, 0, false
	}
	l, q.queue[0] = q.queue[0], line{}
	q.queue = q.queue[1:]
	dropped, q.dropped = q.dropped, 0
	return l, dropped, true
}

func (q *Lines) write() {
	ended, dropped := false, 0
	defer func() {
		if !ended { // the handler has called runtime.Goexit
			q.drop(dropped + 1)
			go q.write()
		}
	}()
	for {
		l, before, ok := q.take()
		if !ok {
			ended = true
			return
		}
		dropped = before
		if dropped > 0 {
			l.record = l.record.Clone()
			l.record.AddAttrs(slog.Int(KeyDropped, dropped))
		}
		if err := Recover(func() {
			if l.to.Enabled(l.ctx, l.record.Level) {
				_ = l.to.Handle(l.ctx, l.record) // slog.Logger drops the error too: where would it be logged?
				dropped = 0
			}
		}); err != nil {
			dropped++
		}
		q.drop(dropped)
	}
}

// drop has the next line say that so many were dropped.
func (q *Lines) drop(n int) {
	if n > 0 {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.dropped += n
	}
}

// Flush waits until no line is left, for at most d.
func (q *Lines) Flush(d time.Duration) {
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

// Handler returns a handler that adds to the lines what next is to write. Records keep their time. Their context keeps its
// values, such as the ID of a trace, and not its end: the line may be written after it.
func (q *Lines) Handler(next slog.Handler) slog.Handler {
	return lineHandler{lines: q, next: next}
}

// LateHandler is Handler for those whom next's Enabled must not stop either: every record is enabled, and next is asked when
// the line is written.
func (q *Lines) LateHandler(next slog.Handler) slog.Handler {
	return lineHandler{lines: q, next: next, late: true}
}

type hostKey struct{}

// Context returns a context with which the loggers of [QueuedLogger] add to q: the host that flushes q writes their lines too.
func (q *Lines) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, hostKey{}, q)
}

// QueuedLogger is [Logger] for those that run inside of hosts and have no end at which they could flush. What is logged with a
// host's context is added to the host's lines, all else to lines of the logger's own.
func QueuedLogger(l *slog.Logger) *slog.Logger {
	return slog.New(lineHandler{lines: &Lines{}, next: Logger(l).Handler(), late: true, hosted: true})
}

type lineHandler struct {
	lines  *Lines
	next   slog.Handler
	late   bool
	hosted bool // the lines of a host go first
}

func (h lineHandler) Enabled(ctx context.Context, level slog.Level) bool {
	enabled := true // also where it panics: the line is then counted as dropped
	if !h.late {
		_ = Recover(func() { enabled = h.next.Enabled(ctx, level) })
	}
	return enabled
}

func (h lineHandler) Handle(ctx context.Context, r slog.Record) error {
	lines := h.lines
	if q, ok := ctx.Value(hostKey{}).(*Lines); ok && h.hosted {
		lines = q
	}
	lines.add(line{context.WithoutCancel(ctx), h.next, r})
	return nil
}

func (h lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.next = h.next.WithAttrs(attrs)
	return h
}

func (h lineHandler) WithGroup(name string) slog.Handler {
	h.next = h.next.WithGroup(name)
	return h
}
