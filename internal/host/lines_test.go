package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/slogtest"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

// blockedWriter blocks until it is opened. Its text is read when nothing writes.
type blockedWriter struct {
	open chan struct{}
	text strings.Builder
}

func newBlockedWriter() *blockedWriter { return &blockedWriter{open: make(chan struct{})} }

func (w *blockedWriter) Write(p []byte) (int, error) {
	<-w.open
	return w.text.Write(p)
}

// logging returns a logger as hosts have it.
func logging(next slog.Handler) (*Lines, *slog.Logger) {
	q := &Lines{}
	return q, slog.New(q.Handler(Logger(slog.New(next)).Handler()))
}

// What does not fit is dropped, and the next line that is written says how much.
func TestDroppedLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := newBlockedWriter()
		_, log := logging(slog.NewTextHandler(blocked, nil))
		log.Info("first")
		synctest.Wait()
		for range MaxLines + 7 {
			log.Info("more")
		}
		close(blocked.open)
		synctest.Wait()
		log.Info("last")
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(blocked.text.String()), "\n")
		if len(lines) != 1+MaxLines+1 {
			t.Fatalf("%d lines, want %d", len(lines), 1+MaxLines+1)
		}
		for i, line := range lines {
			if got, want := strings.Contains(line, KeyDropped+"=7"), i == 1; got != want {
				t.Errorf("line %d: %s", i, line)
			}
		}
	})
}

// panicLog panics for one text.
type panicLog struct{ slog.Handler }

func (panicLog) Enabled(_ context.Context, level slog.Level) bool {
	if level == slog.LevelError {
		panic("no such level")
	}
	return level != slog.LevelDebug
}

func (l panicLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "bad" {
		panic("no such text")
	}
	return l.Handler.Handle(ctx, r)
}

// A handler that panics for a line drops that line, and the next one that is written says so.
func TestLogThatPanics(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]func(*Lines, slog.Handler) slog.Handler{"early": (*Lines).Handler, "late": (*Lines).LateHandler} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			q := &Lines{}
			log := slog.New(handler(q, panicLog{slog.NewTextHandler(&out, nil)}))
			for range 3 {
				log.Info("bad")
				log.Error("bad level")
				log.Debug("not enabled")
				q.Flush(time.Minute)
			}
			log.Info("good")
			q.Flush(time.Minute)
			if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "msg=good "+KeyDropped+"=6") {
				t.Errorf("got %s, want the good line, which counts the others", text)
			}
		})
	}
}

// exitLog ends its goroutine for one text.
type exitLog struct{ slog.Handler }

func (l exitLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "exit" {
		runtime.Goexit()
	}
	return l.Handler.Handle(ctx, r)
}

// So does one that ends its goroutine. The lines after it are written all the same.
func TestLogThatExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		q, log := logging(exitLog{slog.NewTextHandler(&out, nil)})
		for _, text := range []string{"exit", "exit", "good", "exit"} {
			log.Info(text)
		}
		begun := time.Now()
		q.Flush(time.Minute)
		if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "msg=good "+KeyDropped+"=2") || time.Since(begun) > 0 {
			t.Errorf("got %s after %v, want the good line at once, which counts those before", text, time.Since(begun))
		}
	})
}

// A line keeps the time, the attributes and the groups with which it was made.
func TestLinesAreKeptAsTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := newBlockedWriter()
		_, log := logging(slog.NewJSONHandler(blocked, nil))
		made := time.Now()
		log.With("a", 1).WithGroup("g").Info("text", "b", 2)
		time.Sleep(time.Hour)
		close(blocked.open)
		synctest.Wait()
		want := fmt.Sprintf(`{"time":%q,"level":"INFO","msg":"text","a":1,"g":{"b":2}}`, made.Format(time.RFC3339Nano))
		if got := strings.TrimSpace(blocked.text.String()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestLogHandlerMeetsItsContract(t *testing.T) {
	var out bytes.Buffer
	q, log := logging(slog.NewJSONHandler(&out, nil))
	err := slogtest.TestHandler(log.Handler(), func() (results []map[string]any) {
		q.Flush(time.Minute)
		for line := range strings.Lines(out.String()) {
			var m map[string]any
			must.Do(t, json.Unmarshal([]byte(line), &m))
			results = append(results, m)
		}
		return results
	})
	if err != nil {
		t.Error(err)
	}
}

// A handler may take lines of some levels only, and say so when they are written.
func TestLinesThatAreNotEnabled(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	q := &Lines{}
	h := q.Handler(slog.NewTextHandler(&out, nil))
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelWarn} {
		_ = h.Handle(t.Context(), slog.NewRecord(time.Now(), level, level.String(), 0))
	}
	q.Flush(time.Minute)
	if text := out.String(); !strings.Contains(text, "msg=WARN") || strings.Contains(text, "msg=DEBUG") {
		t.Errorf("got %s, want the line that is enabled", text)
	}
}

// contextLog notes the contexts that its methods get.
type contextLog struct {
	slog.Handler
	got *[]context.Context
}

func (l contextLog) Enabled(ctx context.Context, level slog.Level) bool {
	*l.got = append(*l.got, ctx)
	return l.Handler.Enabled(ctx, level)
}

func (l contextLog) Handle(ctx context.Context, r slog.Record) error {
	*l.got = append(*l.got, ctx)
	return l.Handler.Handle(ctx, r)
}

// A handler may take the ID of a trace from the context, also when the context has ended before the line is written.
func TestLinesKeepTheContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	var out bytes.Buffer
	var got []context.Context
	q := &Lines{}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "trace"))
	cancel()
	slog.New(q.LateHandler(contextLog{slog.NewTextHandler(&out, nil), &got})).InfoContext(ctx, "line")
	q.Flush(time.Minute)
	if len(got) != 2 {
		t.Fatalf("%d calls, want Enabled and Handle", len(got))
	}
	for i, c := range got {
		if c.Value(key{}) != "trace" || c.Err() != nil {
			t.Errorf("call %d: value %v, error %v; want the value and no end", i, c.Value(key{}), c.Err())
		}
	}
}

// stuckLog blocks in Enabled until it is opened.
type stuckLog struct {
	slog.Handler
	open chan struct{}
}

func (l stuckLog) Enabled(ctx context.Context, level slog.Level) bool {
	<-l.open
	return l.Handler.Enabled(ctx, level)
}

func (l stuckLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return stuckLog{l.Handler.WithAttrs(attrs), l.open}
}

func (l stuckLog) WithGroup(name string) slog.Handler {
	return stuckLog{l.Handler.WithGroup(name), l.open}
}

// Whoever logs does not wait for Enabled of a late handler, nor of one that is made from it.
func TestLateHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		q := &Lines{}
		opened := make(chan struct{})
		time.AfterFunc(time.Minute, func() { close(opened) })
		log := slog.New(q.LateHandler(stuckLog{slog.NewTextHandler(&out, nil), opened}))
		begun := time.Now()
		log.Debug("not enabled")
		log.With("a", 1).WithGroup("g").Info("text", "b", 2)
		if took := time.Since(begun); took != 0 {
			t.Errorf("logging took %v", took)
		}
		q.Flush(time.Hour)
		if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "msg=text a=1 g.b=2") {
			t.Errorf("got %s, want the line that is enabled", text)
		}
	})
}

// TestQueuedLogger: it adds to its host's lines, which the host flushes, and to its own where there is no host.
func TestQueuedLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := newBlockedWriter()
		log := QueuedLogger(slog.New(slog.NewTextHandler(blocked, nil))).With("a", 1)
		var q Lines
		log.InfoContext(q.Context(t.Context()), "hosted")
		begun := time.Now()
		if q.Flush(time.Second); time.Since(begun) != time.Second {
			t.Error("the host does not wait for the line of its context")
		}
		close(blocked.open)
		if q.Flush(time.Second); time.Since(begun) != time.Second {
			t.Error("the host waits for what is written")
		}
		log.Info("alone")
		synctest.Wait()
		for _, text := range []string{"msg=hosted a=1", "msg=alone a=1"} {
			if !strings.Contains(blocked.text.String(), text) {
				t.Errorf("got %s, want %s", &blocked.text, text)
			}
		}
	})
}

func TestLoggerDefault(t *testing.T) {
	var out bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(old)
	Logger(nil).Warn("to the default")
	if !strings.Contains(out.String(), "to the default") {
		t.Errorf("got %q, want the default logger to be used", &out)
	}
}
