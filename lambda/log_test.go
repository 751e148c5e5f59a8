package lambda

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
)

// What is logged without a logger of the test's own is not printed.
func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// userLog is a slog.Handler with code of a test's own before its methods.
type userLog struct {
	slog.Handler
	enabled, handle func(context.Context)
}

func (l userLog) Enabled(ctx context.Context, level slog.Level) bool {
	l.enabled(ctx)
	return l.Handler.Enabled(ctx, level)
}

func (l userLog) Handle(ctx context.Context, r slog.Record) error {
	l.handle(ctx)
	return l.Handler.Handle(ctx, r)
}

// option makes the log one that calls f in a method.
func (b *logBook) option(method string, f func(context.Context)) func(*Options) {
	l := userLog{b.logger().Handler(), func(context.Context) {}, func(context.Context) {}}
	if method == "Enabled" {
		l.enabled = f
	} else {
		l.handle = f
	}
	return func(o *Options) { o.Logger = slog.New(l) }
}

// TestBrokenLog: a log that blocks delays an answer, and changes none. A batch that succeeds logs nothing.
func TestBrokenLog(t *testing.T) {
	const margin = time.Second // 5% of 20 s
	for _, tt := range []struct {
		name    string
		h       sqsonce.Handler
		arn     string // of the event, if it is another
		failed  string
		refused bool
		took    time.Duration
		dead    int
		silent  bool
	}{
		{name: "success", h: fails(nil), silent: true},
		{name: "failure", h: fails(errTest), failed: "a"},
		{name: "Reject", h: fails(sqsonce.Reject(errTest)), dead: 1},
		{name: "hung handler", h: ignores(time.Hour), failed: "a", took: 20*time.Second - margin/2},
		{name: "refused event", h: fails(nil), arn: "arn:aws:sqs:jobs", refused: true},
	} {
		for _, method := range []string{"Enabled", "Handle"} {
			runWithQueue(t, tt.name+" in "+method, false, nil, func(x *fixture) {
				opened := make(chan struct{})
				f := x.wrap(tt.h, x.log.option(method, func(context.Context) { <-opened }))
				x.send("a")
				event := x.receive()
				if tt.refused {
					event.Records[0].EventSourceARN = tt.arn
				}
				want := tt.took
				if !tt.silent {
					want += logFlush
				}
				for range 2 { // the line of the first invocation still blocks the second one's
					begun := time.Now()
					if tt.refused {
						if _, err := f(timeout(x.T, 20*time.Second), event); err == nil {
							x.Error("not refused")
						}
					} else if got := x.failed(f, 20*time.Second, event); got != tt.failed {
						x.Errorf("failed %q, want %q", got, tt.failed)
					}
					if took := time.Since(begun); took != want {
						x.Errorf("answered after %v, want %v", took, want)
					}
				}
				if n := len(x.srv.Messages(x.dlq)); n != 2*tt.dead {
					x.Errorf("%d messages in the dead-letter queue, want %d", n, 2*tt.dead)
				}
				close(opened)
				time.Sleep(2 * time.Hour) // the abandoned handlers return
			})
		}
	}
}

// TestAnswerWaitsForTheLog: the lines are written before the answer, as long as there is time for that.
func TestAnswerWaitsForTheLog(t *testing.T) {
	for _, tt := range []struct{ timeout, line, took time.Duration }{
		{timeout: 0, line: 20 * time.Millisecond, took: 40 * time.Millisecond},
		{timeout: time.Minute, line: 20 * time.Millisecond, took: 40 * time.Millisecond},
		{timeout: 0, line: time.Hour, took: 50 * time.Millisecond},
		{timeout: time.Minute, line: time.Hour, took: 50 * time.Millisecond},
		{timeout: 100 * time.Millisecond, line: time.Hour, took: 25 * time.Millisecond},
		{timeout: -time.Second, line: time.Hour, took: 0},
	} {
		must.Run(t, fmt.Sprintf("timeout %v, a line takes %v", tt.timeout, tt.line), func(t *testing.T) {
			var book logBook
			f := wrap(t, fails(errTest), book.option("Handle", func(context.Context) { time.Sleep(tt.line) }))
			ctx := context.Background()
			if tt.timeout != 0 {
				ctx = timeout(t, tt.timeout)
			}
			begun := time.Now()
			if got := invoke(t, f, ctx, batch("1")); got != "1" {
				t.Errorf("failed %q, want 1", got)
			}
			if took := time.Since(begun); took != tt.took {
				t.Errorf("answered after %v, want %v", took, tt.took)
			}
			if lines := book.count("\n"); tt.line < logFlush && lines != 2 {
				t.Errorf("%d lines written, want the failure and the summary:\n%s", lines, &book)
			}
			time.Sleep(24 * time.Hour)
		})
	}
}

// TestAnswerWaitsForLinesOfDedup: they are among the invocation's. A log that blocks stops no handler of a Once.
func TestAnswerWaitsForLinesOfDedup(t *testing.T) {
	for line, took := range map[time.Duration]time.Duration{20 * time.Millisecond: 20 * time.Millisecond, time.Hour: logFlush} {
		synctest.Test(t, func(t *testing.T) {
			var book logBook
			opt := book.option("Handle", func(context.Context) { time.Sleep(line) })
			var o Options
			opt(&o)
			d := must.Get(dedup.New(memstore.New(), "billing", func(d *dedup.Options) { d.Logger = o.Logger }))(t)
			begun := time.Now()
			if got := invoke(t, wrap(t, d.Handler(fails(nil)), opt), timeout(t, time.Minute), batch("1", "2", "3")); got != "" {
				t.Errorf("failed %q, want none", got)
			}
			if got := time.Since(begun); got != took {
				t.Errorf("a line takes %v: answered after %v, want %v", line, got, took)
			}
			if lines := book.count("without an event ID"); line < logFlush && lines != 1 {
				t.Errorf("%d lines of dedup before the answer, want 1:\n%s", lines, &book)
			}
			time.Sleep(24 * time.Hour)
		})
	}
}

// TestLogGetsTheContext: a log may take the ID of a trace from the invocation's context.
func TestLogGetsTheContext(t *testing.T) {
	type key struct{}
	for _, method := range []string{"Enabled", "Handle"} {
		synctest.Test(t, func(t *testing.T) {
			var book logBook
			var traced, ended atomic.Int64
			f := wrap(t, fails(errTest), book.option(method, func(ctx context.Context) {
				if ctx.Value(key{}) == "trace" {
					traced.Add(1)
				}
				if ctx.Err() != nil {
					ended.Add(1)
				}
			}))
			invoke(t, f, context.WithValue(t.Context(), key{}, "trace"), batch("1"))
			if book.count("\n") != 2 || traced.Load() != 2 || ended.Load() != 0 {
				t.Errorf("%s: %d lines, %d with the trace, %d whose context has ended; want 2, 2, 0", method, book.count("\n"), traced.Load(), ended.Load())
			}
		})
	}
}

// TestStartWithABlockedLog: what is logged before the first invocation stops no start.
func TestStartWithABlockedLog(t *testing.T) {
	for _, method := range []string{"Enabled", "Handle"} {
		synctest.Test(t, func(t *testing.T) {
			var book logBook
			opened := make(chan struct{})
			begun := time.Now()
			_, err := newAdapter(fails(nil), []func(*Options){book.option(method, func(context.Context) { <-opened })}, func() (Client, error) { return nil, errTest })
			if took := time.Since(begun); err != nil || took != logFlush {
				t.Errorf("%s: got %v after %v, want none after %v", method, err, took, logFlush)
			}
			close(opened)
			synctest.Wait()
			if book.count("no SQS client") != 1 {
				t.Errorf("%s: got %q, want the missing client", method, &book)
			}
		})
	}
}
