package sqsworker

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// What is logged without a logger of the test's own is not printed.
func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// clog is a log whose writes block until it is opened.
type clog struct {
	logBook
	open chan struct{}
}

func newClog() *clog { return &clog{open: make(chan struct{})} }

func (c *clog) Write(p []byte) (int, error) {
	<-c.open
	return c.logBook.Write(p)
}

// A log that blocks stops neither the heartbeats nor the stop.
func TestBlockedLog(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a", "b")
		blocked := newClog()
		var r runs
		j := x.start(r.take(5*time.Minute), func(o *Options) {
			o.Logger, o.VisibilityTimeout = slog.New(slog.NewTextHandler(blocked, nil)), 10*time.Second
		})
		time.Sleep(10 * time.Minute)
		x.wantEmpty()
		if s := j.Stats(); s.LeasesLost != 0 || s.Done != 2 || len(r.list()) != 2 {
			t.Errorf("runs: %v; %+v", r.list(), s)
		}
		j.wantHealth("while the log is blocked", 200, 200)
		began := time.Now()
		j.stopClean()
		if took := time.Since(began); took > 16*time.Second {
			t.Errorf("stopped after %s, want the rest of a poll and a second", took)
		}
		if blocked.has("stopped") {
			t.Error("the log was not blocked")
		}
		close(blocked.open)
		synctest.Wait()
		if !blocked.has("stopped") {
			t.Error("lines are lost although they fit")
		}
	})
}

// slowLog takes a while for each line.
type slowLog struct{ *logBook }

func (s slowLog) Write(p []byte) (int, error) {
	time.Sleep(100 * time.Millisecond)
	return s.logBook.Write(p)
}

// What dedup and the stores log with a handler's context is among the worker's lines.
func TestRunWaitsForLinesOfHandlers(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a")
		log := host.QueuedLogger(slog.New(slog.NewTextHandler(slowLog{x.log}, nil)))
		j := x.start(func(ctx context.Context, _ *sqsonce.Message) error {
			<-ctx.Done()
			log.InfoContext(ctx, "line of the handler")
			return ctx.Err()
		})
		time.Sleep(time.Minute)
		j.stopClean()
		if !x.log.has("line of the handler") {
			x.Error("the handler's line is not written when Run returns")
		}
	})
}
