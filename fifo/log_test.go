package fifo_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testlog"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// What is logged without a logger of the test's own is not printed.
func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// logBook is a log that a test reads.
type logBook struct{ testlog.Book }

func (b *logBook) option(o *fifo.Options) {
	o.Logger = slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// count returns the number of lines of a level with a text.
func (b *logBook) count(level, text string) (n int) {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, "level="+level) && strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// badHandler breaks in one of its methods.
type badHandler struct {
	slog.Handler
	enabled, handle func()
}

func (h badHandler) Enabled(ctx context.Context, l slog.Level) bool {
	h.enabled()
	return h.Handler.Enabled(ctx, l)
}

func (h badHandler) Handle(ctx context.Context, r slog.Record) error {
	h.handle()
	return h.Handler.Handle(ctx, r)
}

// A log that blocks or calls the publisher costs its line.
func TestBrokenLog(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(opened chan struct{}, p *fifo.Publisher){
		"blocks":              func(opened chan struct{}, _ *fifo.Publisher) { <-opened },
		"calls the publisher": func(_ chan struct{}, p *fifo.Publisher) { _ = p.Flush(context.Background()) },
	} {
		for _, method := range []string{"Enabled", "Handle"} {
			runIn(t, name+" in "+method, orders, func(x *fixture) {
				opened := make(chan struct{})
				var p *fifo.Publisher
				h := badHandler{slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}), func() {}, func() {}}
				if method == "Enabled" {
					h.enabled = func() { breaks(opened, p) }
				} else {
					h.handle = func() { breaks(opened, p) }
				}
				p = x.publisher(func(o *fifo.Options) { o.Logger = slog.New(h) })
				start := time.Now()
				must.Get(p.PublishAll(x.Context(), tenEvents()))(x)
				if took := time.Since(start); took > 2*time.Second {
					x.Errorf("took %v, want the time of four attempts", took)
				}
				must.Do(x, p.Close(x.Context()))
				close(opened)
				time.Sleep(time.Minute)
			}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Times: 3, Do: fault.LoseReply})
		}
	}
}

// The lines of a call are written when it returns: a function is frozen then, and a program ends.
func TestLinesAreWritten(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"PublishAll", "Close"} {
		inBubble(t, orders, func(x *fixture) {
			var book logBook
			p := x.publisher(book.option, func(o *fifo.Options) {
				o.Linger = -1
				o.Logger = slog.New(badHandler{o.Logger.Handler(), func() {}, func() { time.Sleep(time.Millisecond) }})
			})
			ctx, cancel := context.WithTimeout(x.Context(), time.Millisecond)
			defer cancel()
			if last == "PublishAll" {
				_, _ = p.PublishAll(ctx, []fifo.Event{event("g", 1)})
			} else {
				_, _ = p.Enqueue(x.Context(), event("g", 1))
				_ = p.Close(ctx)
			}
			if n := book.count("DEBUG", "attempt failed"); n == 0 || n != x.sent.attemptsOf("g/v1") {
				x.Errorf("%s: %d lines, %d attempts", last, n, x.sent.attemptsOf("g/v1"))
			}
		}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Reset})
	}
}

// Trouble that meets many events has one line, and a further one when it comes back after a quiet minute.
func TestWarnsOncePerEpisode(t *testing.T) {
	t.Parallel()
	for text, rule := range map[string]fault.Rule{
		"fifo: unknown outcome of an attempt": {Do: fault.LoseReply},
		"fifo: SQS throttles the queue":       {Do: fault.Error, Code: "ThrottlingException"},
	} {
		inBubble(t, orders, func(x *fixture) {
			var book logBook
			p := x.publisher(book.option)
			rule.Op, rule.Prob = "SendMessageBatch", 1
			trouble := func(round, lines int) {
				x.Helper()
				x.srv.Set(fault.Plan{Rules: []fault.Rule{rule}})
				time.AfterFunc(100*time.Second, func() { x.srv.Set(fault.Plan{}) })
				must.Get(p.PublishAll(x.Context(), each(50, round)))(x)
				if n := book.count("WARN", text); n != lines || book.count("DEBUG", "attempt failed") < 100*round {
					x.Errorf("%d lines %q in round %d, want %d:\n%.3000s", n, text, round, lines, book.String())
				}
			}
			trouble(1, 1)
			time.Sleep(30 * time.Second)
			trouble(2, 1)
			time.Sleep(2 * time.Minute)
			trouble(3, 2)
			for line := range strings.Lines(book.String()) {
				if strings.Contains(line, text) && !strings.Contains(line, " queue="+x.url) {
					x.Errorf("no queue in %s", line)
				}
			}
		})
	}
}

// A group that accepts no events says so once, until somebody reads the failure or resumes it.
func TestWarnsOfAHaltedGroup(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		var book logBook
		p := x.publisher(book.option)
		for round := 1; round <= 2; round++ {
			x.enqueue(p, event("g", 10*round))
			time.Sleep(time.Second)
			if n := book.count("WARN", "group halted"); n != round-1 {
				x.Errorf("%d lines before an event came, want %d", n, round-1)
			}
			for i := range 5 {
				if _, err := p.Enqueue(x.Context(), event("g", 10*round+i+1)); err == nil {
					x.Error("accepted behind a failure")
				}
			}
			x.enqueue(p, event("h", round))
			time.Sleep(time.Second)
			if n := book.count("WARN", "group halted"); n != round {
				x.Errorf("%d lines, want %d:\n%s", n, round, book.String())
			}
			p.Resume("g")
			p.Resume("h")
		}
		if !strings.Contains(book.String(), "event=g/v11 group=g queue="+x.url+" error=") {
			x.Errorf("want event, group, queue and error:\n%s", book.String())
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Error, Code: "AccessDenied"})
}

// contextHandler keeps what the contexts of lines have, by the lines' texts.
type contextHandler struct {
	slog.Handler
	got map[string]any
}

func (h contextHandler) Handle(ctx context.Context, r slog.Record) error {
	if v := ctx.Value(eventKey{}); h.got[r.Message] == nil {
		h.got[r.Message] = v
	}
	return nil
}

type eventKey struct{}

// A line about an event has the context that the Accept hook made for it: a handler of the log finds the event's trace there.
func TestLinesHaveTheEventsContext(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		h := contextHandler{slog.NewTextHandler(&logBook{}, &slog.HandlerOptions{Level: slog.LevelDebug}), map[string]any{}}
		p := x.publisher(func(o *fifo.Options) {
			o.Logger = slog.New(h)
			o.OnFailure = func(fifo.Event, *fifo.PublishError) { panic("oops") }
			o.Hooks = []fifo.Hooks{{Accept: func(ctx context.Context, a fifo.Acceptance) (context.Context, fifo.Carry) {
				return context.WithValue(ctx, eventKey{}, a.Event.ID), fifo.Carry{}
			}}}
		})
		x.enqueue(p, event("g", 1))
		time.Sleep(90 * time.Second)
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Prob: 1, Do: fault.LoseReply}}})
		x.enqueue(p, event("h", 1))
		time.Sleep(time.Second)
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Prob: 1, Do: fault.FailEntries, Code: "InvalidMessageContents"}}})
		time.Sleep(10 * time.Minute)
		_, _ = p.Enqueue(x.Context(), event("g", 2))
		time.Sleep(time.Second)
		synctest.Wait() // the race detector does not see a sleep
		for text, v := range h.got {
			if v == nil {
				x.Errorf("%s: no context", text)
			}
		}
		if len(h.got) != 6 {
			x.Errorf("%v, want six kinds of lines", h.got)
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Reset})
}
