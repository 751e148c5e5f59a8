package sqsworker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"testing/synctest"
	"time"

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

// logging returns a logger as a worker has it.
func logging(next slog.Handler) (*lines, *slog.Logger) {
	q := &lines{}
	return q, slog.New(lineHandler{q, host.Logger(slog.New(next)).Handler()})
}

// A log that blocks stops neither the heartbeats nor the stop.
func TestBlockedLog(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a", "b")
		blocked := newClog()
		var r runs
		j := x.start(r.take(5*time.Minute), func(o *Options) {
			o.Logger, o.Visibility = slog.New(slog.NewTextHandler(blocked, nil)), 10*time.Second
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

func TestRunWaitsForTheLog(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		j := x.start(ok, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(slowLog{x.log}, nil)) })
		time.Sleep(time.Minute + time.Second)
		j.stopClean()
		if !x.log.has("stopped") {
			t.Error("the last line is not written when Run returns")
		}
	})
}

// What does not fit is dropped, and the next line that is written says how much.
func TestDroppedLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := newClog()
		_, log := logging(slog.NewTextHandler(blocked, nil))
		log.Info("first")
		synctest.Wait()
		for range maxLines + 7 {
			log.Info("more")
		}
		close(blocked.open)
		synctest.Wait()
		log.Info("last")
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(blocked.text.String()), "\n")
		if len(lines) != 1+maxLines+1 {
			t.Fatalf("%d lines, want %d", len(lines), 1+maxLines+1)
		}
		for i, line := range lines {
			if got, want := strings.Contains(line, keyDropped+"=7"), i == 1; got != want {
				t.Errorf("line %d: %s", i, line)
			}
		}
	})
}

// A line keeps the time, the attributes and the groups with which it was made.
func TestLinesAreKeptAsTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := newClog()
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
		q.flush(time.Minute)
		for line := range strings.Lines(out.String()) {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			results = append(results, m)
		}
		return results
	})
	if err != nil {
		t.Error(err)
	}
}

// brokenLog panics, or ends its goroutine, for every second line.
type brokenLog struct {
	slog.Handler
	mu    sync.Mutex
	calls int
	fail  func()
}

func (b *brokenLog) Handle(ctx context.Context, r slog.Record) error {
	b.mu.Lock()
	b.calls++
	bad := b.calls%2 == 1
	b.mu.Unlock()
	if bad {
		b.fail()
	}
	return b.Handler.Handle(ctx, r)
}

func TestLogThatFails(t *testing.T) {
	for name, fail := range map[string]func(){"panics": func() { panic("broken") }, "ends its goroutine": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var book logBook
				q, log := logging(&brokenLog{Handler: slog.NewTextHandler(&book, nil), fail: fail})
				for i := range 6 {
					log.Info("line", "i", i)
				}
				q.flush(time.Second)
				if n := book.count("line"); n != 3 {
					t.Errorf("%d lines written, want the three that do not fail: %s", n, book.text.String())
				}
			})
		})
	}
}
