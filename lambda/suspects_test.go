package lambda

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Suspects run one after the other, after the others and in the order of their starts, also when one of them calls runtime.Goexit, and
// when one is behind another one in its group, or behind one that goes to the dead-letter queue. A message that SQS has moved here was
// not received here as often as its count says.
func TestSuspectsOneByOne(t *testing.T) {
	for _, tt := range []struct {
		fifo      bool
		sent, ran []string
		suspects  map[string]time.Duration // when they started
		lone      string                   // it goes to the dead-letter queue
		moved     string                   // so would this one
		fails     int
		deletes   int // calls
	}{
		{
			false, []string{"late", "exits", "early", "other"}, []string{"other", "exits", "early", "late"},
			map[string]time.Duration{"late": 2, "exits": 0, "early": 1}, "", "", 1, 2,
		},
		{
			true, []string{"a0", "a1", "a2", "b0", "c0", "c1", "d0"}, []string{"d0", "a0", "b0", "c0", "a2", "c1"},
			map[string]time.Duration{"a0": 0, "a1": 1, "b0": 2, "c0": 3, "c1": 4}, "a1", "c0", 0, 5,
		},
	} {
		withQueue(t, tt.fifo, nil, func(x *fixture) {
			x.redrive(4)
			begun := time.Now()
			var ran []string
			var running atomic.Int32
			f := x.wrap(func(ctx context.Context, m *sqsonce.Message) error {
				if at, is := tt.suspects[m.Body]; is && settle.Suspects(ctx) > 0 { // as dedup does
					if m.Body == tt.lone || m.Body == tt.moved {
						return settle.NewLoneSuspect(sqsonce.Unavailable(errTest), begun.Add(at))
					}
					return settle.NewSuspect(sqsonce.Unavailable(errTest), begun.Add(at))
				}
				if running.Add(1) > 1 {
					x.Errorf("%s runs beside another one", m.Body)
				}
				defer running.Add(-1)
				ran = append(ran, m.Body)
				time.Sleep(time.Second)
				if m.Body == "exits" {
					runtime.Goexit()
				}
				return nil
			})
			x.send(tt.sent...)
			e := x.receive()
			for i := range e.Records {
				e.Records[i].Attributes["ApproximateReceiveCount"] = "3"
				if e.Records[i].Body == tt.moved {
					e.Records[i].Attributes["DeadLetterQueueSourceArn"] = fifoARN
				}
			}
			r, err := f(timeout(x.T, time.Minute), e)
			if err != nil || len(r.BatchItemFailures) != tt.fails || time.Since(begun) > 10*time.Second {
				t.Errorf("got %v, %v after %s, want %d failures at once", r, err, time.Since(begun), tt.fails)
			}
			if !slices.Equal(ran, tt.ran) {
				t.Errorf("ran %q, want %q", ran, tt.ran)
			}
			if n := x.calls("DeleteMessageBatch"); n != tt.deletes {
				t.Errorf("%d calls to delete what has succeeded, want %d: each message once", n, tt.deletes)
			}
			if dead := x.dead(); !strings.HasPrefix(dead, tt.lone) || tt.lone == "" && dead != "" {
				t.Errorf("dead-lettered: %q, want %q", dead, tt.lone)
			}
		})
	}
}

// TestDeleteBeforeSuspectsIsRepeated: what SQS has not deleted before one suspect is deleted before the next one.
func TestDeleteBeforeSuspectsIsRepeated(t *testing.T) {
	for name, fails := range map[string]fault.Rule{
		"call":  {Op: "DeleteMessageBatch", Nth: 1, Do: fault.Error, Code: "AccessDenied"},
		"entry": {Op: "DeleteMessageBatch", Nth: 1, Do: fault.FailEntries, Entries: []int{1}},
		"none":  {Op: "DeleteMessageBatch", Nth: 1, Do: fault.DropEntries},
	} {
		runWithQueue(t, name, false, []fault.Rule{fails}, func(x *fixture) {
			begun := time.Now()
			f := x.wrap(func(ctx context.Context, m *sqsonce.Message) error {
				at := time.Duration(strings.Index("123", m.Body))
				if at < 0 {
					return nil
				}
				if settle.Suspects(ctx) > 0 { // as dedup does
					return settle.NewSuspect(sqsonce.Unavailable(errTest), begun.Add(at))
				}
				if left := len(x.srv.Messages(x.url)); at > 0 && left != 3-int(at) {
					x.Errorf("%d in the queue when suspect %s starts, want it and those after it", left, m.Body)
				}
				return nil
			})
			x.send("1", "2", "3", "other", "another")
			e := x.receive()
			for i := range e.Records {
				e.Records[i].Attributes["ApproximateReceiveCount"] = "3"
			}
			if got := x.failed(f, time.Minute, e); got != "" || x.calls("DeleteMessageBatch") != 3 {
				x.Errorf("failed %q, %d calls to delete, want one before each suspect", got, x.calls("DeleteMessageBatch"))
			}
		})
	}
}

// TestSuspectThatHangs: at its last receive a suspect ignores the end of its context. It leaves its group, and the messages behind it and the
// other suspects run in the same invocation.
func TestSuspectThatHangs(t *testing.T) {
	for _, sent := range []string{"a0 a1 b0 b1", "a0 b0 b1"} {
		withQueue(t, true, nil, func(x *fixture) {
			x.redrive(3)
			begun := time.Now()
			var ran []string
			f := x.wrap(func(ctx context.Context, m *sqsonce.Message) error {
				if settle.Suspects(ctx) > 0 && strings.HasSuffix(m.Body, "0") { // as dedup does
					return settle.NewSuspect(sqsonce.Unavailable(errTest), begun.Add(time.Duration(m.Body[0])))
				}
				if m.Body == "a0" {
					return ignores(time.Hour)(ctx, m)
				}
				ran = append(ran, m.Body)
				return nil
			})
			x.send(strings.Fields(sent)...)
			e := x.receive()
			for i := range e.Records {
				e.Records[i].Attributes["ApproximateReceiveCount"] = "3"
			}
			r, err := f(timeout(x.T, time.Minute), e)
			if slices.Sort(ran); err != nil || len(r.BatchItemFailures) > 0 || !slices.Equal(ran, strings.Fields(sent)[1:]) {
				t.Errorf("got %v, %v, ran %q", r, err, ran)
			}
			if dead := x.dead(); !strings.HasPrefix(dead, "a0") {
				t.Errorf("dead-lettered: %q", dead)
			}
			time.Sleep(time.Hour) // it returns
		})
	}
}

// A suspect that ends after it was abandoned, while the next one runs, starts no other one next to that.
func TestAbandonedSuspectReturns(t *testing.T) {
	for _, end := range []sqsonce.Handler{fails(nil), fails(errTest), panics("boom"), exits} {
		withQueue(t, true, nil, func(x *fixture) {
			x.redrive(3)
			begun := time.Now()
			var running atomic.Int32
			f := x.wrap(func(ctx context.Context, m *sqsonce.Message) error {
				if settle.Suspects(ctx) > 0 { // as dedup does
					return settle.NewSuspect(sqsonce.Unavailable(errTest), begun.Add(time.Duration(m.Body[0])))
				}
				if m.Body == "a0" {
					time.Sleep(35 * time.Second)
					return end(ctx, m)
				}
				if running.Add(1) > 1 {
					t.Errorf("%s runs next to another suspect", m.Body)
				}
				time.Sleep(10 * time.Second)
				running.Add(-1)
				return nil
			})
			x.send("a0", "b0", "c0")
			e := x.receive()
			for i := range e.Records {
				e.Records[i].Attributes["ApproximateReceiveCount"] = "3"
			}
			if r, err := f(timeout(x.T, time.Minute), e); err != nil || len(r.BatchItemFailures) > 0 {
				t.Errorf("got %v, %v, want all done", r, err)
			}
		})
	}
}

// TestSuspectAtItsLastReceive: a handler that takes all the time does not keep a suspect, or a message behind it, from its last receive.
func TestSuspectAtItsLastReceive(t *testing.T) {
	for _, tt := range []struct{ received, ran string }{{"2", ""}, {"3", "a0 a1"}} {
		withQueue(t, true, nil, func(x *fixture) {
			x.redrive(3)
			var ran []string
			begun := time.Now()
			f := x.wrap(func(ctx context.Context, m *sqsonce.Message) error {
				switch {
				case m.Group != "a":
					return waits(ctx, m)
				case settle.Suspects(ctx) > 0 && m.Body == "a0": // as dedup does
					return settle.NewSuspect(sqsonce.Unavailable(errTest), begun)
				case time.Since(begun) < 20*time.Second:
					t.Errorf("%s runs after %s", m.Body, time.Since(begun))
				case settle.RunsSuspect(ctx):
					t.Errorf("%s would be accused alone of a crash, next to another handler", m.Body)
				}
				ran = append(ran, m.Body)
				return nil
			})
			x.send("slow", "a0", "a1")
			e := x.receive()
			for i := range e.Records[1:] {
				e.Records[1+i].Attributes["ApproximateReceiveCount"] = tt.received
			}
			_, err := f(timeout(x.T, time.Minute), e)
			if got := strings.Join(ran, " "); err != nil || got != tt.ran {
				t.Errorf("receive %s: ran %q, %v, want %q", tt.received, got, err, tt.ran)
			}
		})
	}
}

// TestLoneSuspectWithoutAClient: what has succeeded cannot be deleted before a suspect runs. One that has crashed a process alone fails
// unrun while others are in its batch. It runs when it is alone, and so does another suspect.
func TestLoneSuspectWithoutAClient(t *testing.T) {
	for _, tt := range []struct {
		lone      bool
		batch     []string
		ran, fail string
	}{
		{true, []string{"suspect", "other"}, "other", "suspect"}, {true, []string{"suspect"}, "suspect", ""},
		{false, []string{"suspect", "other"}, "other suspect", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var r runs
			h := r.wrap(fails(nil))
			f := wrap(t, func(ctx context.Context, m *sqsonce.Message) error {
				if m.ID != "suspect" || settle.Suspects(ctx) == 0 { // as dedup does
					return h(ctx, m)
				}
				if tt.lone {
					return settle.NewLoneSuspect(sqsonce.Unavailable(errTest), time.Now())
				}
				return settle.NewSuspect(sqsonce.Unavailable(errTest), time.Now())
			})
			e := batch(tt.batch...)
			e.Records[0].Attributes["ApproximateReceiveCount"] = "3"
			if got := invoke(t, f, timeout(t, time.Minute), e); got != tt.fail || strings.Join(r.list(), " ") != tt.ran {
				t.Errorf("%+v: failed %q, ran %q", tt, got, r.list())
			}
		})
	}
}
