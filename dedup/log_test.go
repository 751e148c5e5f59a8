package dedup_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
)

// What is logged without a logger of the test's own is not printed.
func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// blockedLog blocks until it is opened.
type blockedLog struct {
	bytes.Buffer
	open chan struct{}
}

func (l *blockedLog) Write(p []byte) (int, error) {
	<-l.open
	return l.Buffer.Write(p)
}

// TestBlockedLog: nothing waits for the log. A complete is tried again while the line that says so is not written: else another
// delivery would repeat the event's effect. The lines come when the log does, with the values of their contexts.
func TestBlockedLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		blocked := &blockedLog{open: make(chan struct{})}
		f := newFaults()
		o := newOnce(t, f, func(o *dedup.Options) {
			o.Logger, o.PeerWait = slog.New(slog.NewTextHandler(blocked, &slog.HandlerOptions{Level: slog.LevelDebug})), -1
		})
		var e effects
		h := o.Handler(func(ctx context.Context, m *sqsonce.Message) error {
			time.Sleep(time.Minute) // renewals fail meanwhile
			return e.handler(ctx, m)
		})
		f.before = func(_ context.Context, op string, nth int) error {
			if op != "acquire" && nth%2 == 1 {
				return errStore
			}
			return nil
		}
		for i := range 3 {
			m := message("")
			m.ID, m.Attributes = string(rune('a'+i)), nil // the key is the message ID
			if err := h(t.Context(), m); err != nil {
				t.Errorf("message %s: got error %v", m.ID, err)
			}
		}
		o.Handler(e.handler) // a second handler is a line without a context
		if s := o.Stats(); e.got() != 3 || s.First != 3 || s.CompleteFailed != 0 || s.LeasesLost != 0 {
			t.Errorf("%d effects, %+v; want 3, all completed", e.got(), s)
		}
		close(blocked.open)
		synctest.Wait()
		for _, line := range []string{"without an event ID", "renewal failed", "record not completed: the store is asked again", "share their events"} {
			if !strings.Contains(blocked.String(), line) {
				t.Errorf("no line %q:\n%s", line, &blocked.Buffer)
			}
		}
	})
}

// TestOutageIsOneLine: ten handlers whose renewals, completes and releases fail have one line a minute between them, and each line that
// there is has its record and its message.
func TestOutageIsOneLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFaults()
		f.before = func(_ context.Context, op string, _ int) error {
			if op == "acquire" {
				return nil
			}
			return errStore
		}
		o := newOnce(t, f, func(o *dedup.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		h := o.Handler(func(_ context.Context, m *sqsonce.Message) error {
			time.Sleep(15 * time.Second)
			return map[bool]error{true: errStore}[strings.HasSuffix(m.ID, "0")]
		})
		for round := range 2 {
			var all sync.WaitGroup
			for i := range 10 {
				all.Go(func() {
					ctx, settle := hosted(20 * time.Second)
					_ = h(ctx, message(fmt.Sprintf("%d-%b", round, i)))
					_ = settle(false)
				})
			}
			all.Wait()
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || strings.Count(log.String(), "key=billing#orders|")+strings.Count(log.String(), "message_id=") != 4 {
			t.Errorf("got, in two minutes:\n%s", &log)
		}
	})
}

// TestEndOfAnOutageIsLogged: lines that say that the store fails are followed by one when it works again, whichever call finds it out.
func TestEndOfAnOutageIsLogged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to, takes time.Duration
		completed       bool // by an inbox's transaction
		err             error
	}{
		"a renewal":                    {9 * time.Second, 25 * time.Second, time.Minute, false, nil},
		"a complete":                   {55 * time.Second, 70 * time.Second, time.Minute, false, nil},
		"the first complete":           {9 * time.Second, 12 * time.Second, 12 * time.Second, false, nil},
		"a commit":                     {9 * time.Second, 12 * time.Second, 12 * time.Second, true, nil},
		"a release":                    {9 * time.Second, 12 * time.Second, 12 * time.Second, false, errStore},
		"a complete in the background": {9 * time.Second, 2 * time.Minute, 12 * time.Second, false, nil},
	} {
		must.Run(t, name, func(t *testing.T) {
			var log bytes.Buffer
			f, start := newFaults(), time.Now()
			f.before = func(_ context.Context, op string, _ int) error {
				if at := time.Since(start); op != "acquire" && at >= c.from && at < c.to {
					return errStore
				}
				return nil
			}
			o := newOnce(t, f, func(o *dedup.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			_ = guard(o, t.Context(), message("1"), func(context.Context, dedup.Lease) (bool, error) {
				time.Sleep(c.takes)
				if synctest.Wait(); name == "a renewal" && !strings.Contains(log.String(), "store works again") {
					t.Error("not logged while the handler runs")
				}
				return c.completed, c.err
			})
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			ends := strings.Count(log.String(), "store works again") + strings.Count(log.String(), "record of an earlier success completed")
			if began := strings.Count(log.String(), "level=WARN"); began == 0 || ends != 1 {
				t.Errorf("%d warnings, %d lines of the end, want one:\n%s", began, ends, &log)
			}
		})
	}
}
