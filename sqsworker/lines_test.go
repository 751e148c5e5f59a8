package sqsworker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// jsonLog is a log whose lines a test reads.
type jsonLog struct{ logBook }

func (b *jsonLog) option(o *Options) {
	o.Logger = slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// lines returns those whose text begins so.
func (b *jsonLog) lines(t testing.TB, text string) (found []map[string]any) {
	t.Helper()
	for line := range strings.Lines(b.String()) {
		var m map[string]any
		must.Do(t, json.Unmarshal([]byte(line), &m))
		if strings.HasPrefix(m["msg"].(string), text) {
			found = append(found, m)
		}
	}
	return found
}

// wantLine checks that there is one such line, with these attributes.
func (b *jsonLog) wantLine(t testing.TB, text string, want map[string]any) {
	t.Helper()
	lines := b.lines(t, text)
	if len(lines) != 1 {
		t.Errorf("%d lines %q, want 1: %v", len(lines), text, lines)
		return
	}
	for name, value := range want {
		if got := lines[0][name]; got != value {
			t.Errorf("%s: %s is %v, want %v", text, name, got, value)
		}
	}
}

func TestStartIsLogged(t *testing.T) {
	for kind, s := range map[string]setup{"standard": {}, "FIFO": {fifo: true, maxReceives: 5}} {
		run(t, kind, s, func(x *fixture) {
			var book jsonLog
			j := x.start(ok, book.option, func(o *Options) { o.Concurrency, o.MaxInFlight = 3, 7 })
			time.Sleep(time.Second)
			j.stopClean()
			dlq := ""
			if s.maxReceives > 0 {
				dlq = x.dlq
			}
			book.wantLine(x, "sqsworker: started", map[string]any{
				"level": "INFO", "queue": x.url, "kind": kind, "concurrency": 3.0, "in_flight": 7.0,
				"visibility": 3e10, "dlq": dlq, "max_receive_count": float64(s.maxReceives),
			})
		})
	}
}

// sendEvents sends one message for each key, which is also its body, and on FIFO its group.
func (x *fixture) sendEvents(keys ...string) {
	x.Helper()
	for _, key := range keys {
		in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: &key, MessageAttributes: map[string]sqstypes.MessageAttributeValue{
			sqsonce.AttrEventKey: {DataType: aws.String("String"), StringValue: &key},
		}}
		if host.IsFIFO(x.url) {
			in.MessageGroupId, in.MessageDeduplicationId = &key, &key
		}
		must.Get(x.c.SendMessage(x.Context(), in))(x)
	}
}

func TestDeadLetteringIsLogged(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		run(t, fmt.Sprintf("fifo=%t", fifo), setup{fifo: fifo, maxReceives: 5}, func(x *fixture) {
			x.sendEvents("bad", "good")
			var book jsonLog
			j := x.start(rejectBad, book.option)
			time.Sleep(time.Minute)
			j.stopClean()
			want := map[string]any{"level": "INFO", "receive_count": 1.0, "reason": sqsonce.Reject(errTest).Error(), keyGroup: nil}
			if fifo {
				want[keyGroup] = "bad"
			}
			book.wantLine(x, "sqsworker: message sent to the dead-letter queue", want)
		})
	}
}

// TestLastReceiveIsLogged: one line for the delivery after which SQS moves the message, and none for those before it.
func TestLastReceiveIsLogged(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		run(t, fmt.Sprintf("stopped=%t", stopped), setup{maxReceives: 3}, func(x *fixture) {
			x.sendEvents("a")
			var book jsonLog
			runs := 0
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				if runs++; stopped && runs == 3 {
					<-ctx.Done()
					return ctx.Err()
				}
				return sqsonce.RetryAfter(time.Second, errTest)
			}, book.option)
			time.Sleep(time.Minute)
			j.stopClean()
			if runs != 3 {
				x.Errorf("%d runs, want 3", runs)
			}
			book.wantLine(x, "sqsworker: given back at its last receive", map[string]any{
				"level": "WARN", "receive_count": 3.0,
			})
		})
	}
}

// TestLinesHaveTheKey: each line about a message has the key that middleware told, and none before that: the message's may be of another record.
func TestLinesHaveTheKey(t *testing.T) {
	bubble(t, setup{maxReceives: 6}, func(x *fixture) {
		for i := range 4 {
			for _, kind := range []string{"quick", "long", "fails", "panics", "rejects", "stuck", "unavailable", "in progress", "settles"} {
				x.sendEvents(fmt.Sprintf("%s/%d", kind, i))
			}
		}
		x.srv.Set(fault.Plan{Seed: 3, Rules: []fault.Rule{
			{Op: opDelete, Nth: 1, Times: 2, Do: fault.FailEntries},
			{Op: opChange, Prob: 0.5, Do: fault.FailEntries},
			{Op: opChange, Prob: 0.1, Do: fault.FailEntries, Code: "ReceiptHandleIsInvalid"},
			{Op: opSend, Nth: 1, Do: fault.Error, Code: "AccessDenied"},
		}})
		var book jsonLog
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			kind, _, _ := strings.Cut(m.Body, "/")
			m.Body = "changed"
			for range 1000 { // while lines about it are written
				m.Attributes[sqsonce.AttrEventKey] = sqsonce.Attribute{Type: "String", String: "changed"}
			}
			if kind != "panics" {
				settle.ShowKey(ctx, "own", "c#own")
			}
			switch kind {
			case "long":
				time.Sleep(5 * time.Minute)
			case "fails":
				return errTest
			case "panics":
				panic("broken")
			case "rejects":
				return sqsonce.Reject(errTest)
			case "stuck":
				time.Sleep(10 * time.Minute)
			case "unavailable":
				return sqsonce.Unavailable(errTest)
			case "in progress":
				return sqsonce.ErrInProgress
			case "settles":
				sqsonce.OnSettled(ctx, func(bool) { panic("broken") })
			}
			return nil
		}, book.option, func(o *Options) {
			o.Timeout, o.VisibilityTimeout, o.Concurrency = timeoutOf(6*time.Minute), 20*time.Second, 40
			o.Backoff = func(int) time.Duration { panic("broken") }
		})
		time.Sleep(time.Hour)
		j.cancel()
		_ = j.wait()
		seen, keys := map[string]bool{}, map[string]int{}
		for _, line := range book.lines(t, "") {
			if line[keyMessage] == nil {
				continue
			}
			key := fmt.Sprint(line[keyEvent])
			if seen[line["msg"].(string)] = true; key != "own" && key != "<nil>" {
				t.Errorf("key %v: %v", key, line)
			}
			keys[key]++
		}
		if keys["own"] == 0 || keys["<nil>"] == 0 {
			t.Errorf("lines by key: %v", keys)
		}
		got := slices.Sorted(maps.Keys(seen))
		for _, want := range []string{
			"delete failed", "extension failed", "release failed", "lease lost", "handler failed", "handler does not return",
			"message sent to", "message not sent to", "given back at its last", "unavailable", "event in progress", "function of OnSettled", "Options.Backoff failed",
		} {
			if !slices.ContainsFunc(got, func(text string) bool { return strings.HasPrefix(text, "sqsworker: "+want) }) {
				t.Errorf("no line %q", want)
			}
		}
	})
}

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
