package fifo_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// What is logged without a logger of the test's own is not printed.
func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// logBook is a log that a test reads.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

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
			t.Run(name+" in "+method, func(t *testing.T) {
				t.Parallel()
				bubble(t, orders, func(x *fixture) {
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
					if _, err := p.PublishAll(x.Context(), tenEvents()); err != nil {
						x.Error(err)
					}
					if took := time.Since(start); took > 2*time.Second {
						x.Errorf("took %v, want the time of four attempts", took)
					}
					if err := p.Close(x.Context()); err != nil {
						x.Error(err)
					}
					close(opened)
					time.Sleep(time.Minute)
				}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Times: 3, Do: fault.LoseReply})
			})
		}
	}
}

// The lines of a call are written when it returns: a function is frozen then, and a program ends.
func TestLinesAreWritten(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"PublishAll", "Close"} {
		bubble(t, orders, func(x *fixture) {
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
