package lambda

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
)

// some rejects the messages whose ID ends in one of the digits, and lets the others take d.
func some(digits string, d time.Duration) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		if strings.Contains(digits, m.ID[len(m.ID)-1:]) {
			return sqsonce.Reject(errTest)
		}
		return takes(d)(ctx, m)
	}
}

// TestSlowDeadLetterQueueTakesNoSlots: handlers run while messages are being sent to a dead-letter queue that is slow.
func TestSlowDeadLetterQueueTakesNoSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &stubClient{before: hangs(opSend, 5*time.Second)}
		f := wrap(t, some("01234", 100*time.Millisecond), func(o *Options) { o.Client, o.DeadLetterQueue = c, stubDLQ })
		got := invoke(t, f, timeout(t, 30*time.Second), batch(numbered(1000)...))
		for id := range strings.FieldsSeq(got) {
			if strings.Contains("56789", id[len(id)-1:]) {
				t.Fatalf("%s is healthy and failed", id)
			}
		}
		if _, n := c.counts(); n < 50 || n != 500-len(strings.Fields(got)) {
			t.Errorf("%d dead-lettered, %d failed, want 500 together and at least 50 in 30 s", n, len(strings.Fields(got)))
		}
		time.Sleep(time.Hour)
	})
}

// TestSendsAreBounded: as many messages are sent at once as handlers may run.
func TestSendsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		active, most := 0, 0
		c := &stubClient{before: func(context.Context, string) error {
			mu.Lock()
			active++
			most = max(most, active)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			active--
			mu.Unlock()
			return nil
		}}
		f := wrap(t, some("0123456789", 0), func(o *Options) { o.Client, o.DeadLetterQueue, o.Concurrency = c, stubDLQ, 4 })
		begun := time.Now()
		if got := invoke(t, f, timeout(t, time.Minute), batch(numbered(20)...)); got != "" || most != 4 || time.Since(begun) != 5*time.Second {
			t.Errorf("failed %q, %d sends at once in %v; want none, 4 in 5s", got, most, time.Since(begun))
		}
	})
}

// TestOverdueSendIsTheLast: after a send that was not answered in time the invocation sends no more. The other rejected
// messages are failures as any other, and get their delay.
func TestOverdueSendIsTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &stubClient{}
		sends := 0
		c.before = func(ctx context.Context, op string) error {
			if op != opSend {
				return nil
			}
			c.mu.Lock()
			sends++
			c.mu.Unlock()
			<-ctx.Done()
			return ctx.Err()
		}
		f := wrap(t, some("0123456789", 0), func(o *Options) { o.Client, o.DeadLetterQueue = c, stubDLQ })
		begun := time.Now()
		got := len(strings.Fields(invoke(t, f, timeout(t, 5*time.Minute), batch(numbered(100)...))))
		if took := time.Since(begun); got != 100 || sends != 10 || took != sendTimeout {
			t.Errorf("%d failed, %d sends in %v; want 100, 10 in %v", got, sends, took, sendTimeout)
		}
		if delayed, _ := c.counts(); delayed != 100 {
			t.Errorf("%d got their delay, want all", delayed)
		}
		// The next invocation asks again.
		c.before = nil
		if got := invoke(t, f, timeout(t, time.Minute), batch("10", "11")); got != "" {
			t.Errorf("later: failed %q, want none", got)
		}
	})
}

// TestOverdueURLEndsTheSends: so does the call for the dead-letter queue's URL.
func TestOverdueURLEndsTheSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &stubClient{}
		f := wrap(t, some("0123456789", 0), func(o *Options) { o.Client = c })
		c.before = func(_ context.Context, op string) error {
			c.mu.Lock()
			urls := c.urls
			c.mu.Unlock()
			if op == opURL && urls > 0 { // not that of the function's queue
				time.Sleep(time.Minute)
			}
			return nil
		}
		begun := time.Now()
		got := len(strings.Fields(invoke(t, f, timeout(t, 5*time.Minute), batch(numbered(100)...))))
		if took := time.Since(begun); got != 100 || took != callTimeout {
			t.Errorf("%d failed in %v; want 100 in %v", got, took, callTimeout)
		}
		time.Sleep(time.Hour)
	})
}

// TestRefusedSendIsNotTheLast: an answer, whatever it is, comes in time.
func TestRefusedSendIsNotTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &stubClient{}
		refused := false
		c.before = func(context.Context, string) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			if !refused {
				refused = true
				return errors.New("refused")
			}
			return nil
		}
		f := wrap(t, some("0123456789", 0), func(o *Options) { o.Client, o.DeadLetterQueue, o.Concurrency = c, stubDLQ, 1 })
		if got := invoke(t, f, timeout(t, time.Minute), batch("1", "2", "3")); got != "1" {
			t.Errorf("failed %q, want 1", got)
		}
	})
}

// TestSlowAttributesTakeNoSlot: asking for the visibility timeout or the redrive policy keeps no handler from running.
func TestSlowAttributesTakeNoSlot(t *testing.T) {
	for name, err := range map[string]error{"in progress": sqsonce.ErrInProgress, "failed": errTest} {
		synctest.Test(t, func(t *testing.T) {
			c := &stubClient{before: hangs(opAttributes, 3*time.Second)}
			begun := time.Now()
			h := handlers{"a1": fails(err), "b1": func(context.Context, *sqsonce.Message) error {
				if took := time.Since(begun); took != 0 {
					t.Errorf("%s: started after %v, want at once", name, took)
				}
				return nil
			}}
			f := wrap(t, h.handle, func(o *Options) { o.Client, o.DeadLetterQueue, o.Concurrency = c, stubDLQ, 1 })
			invoke(t, f, timeout(t, time.Minute), fifoBatch("a1", "b1"))
		})
	}
}

// TestSendsAtTheClose: what waits for the dead-letter queue when the results are closed has failed, with its delay, and is no
// abandoned handler.
func TestSendsAtTheClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logBook
		var sends atomic.Int64
		c := &stubClient{before: hangs(opSend, time.Hour), sending: func(string) { sends.Add(1) }}
		f := wrap(t, some("0123456789", 0), func(o *Options) { o.Client, o.DeadLetterQueue, o.Logger = c, stubDLQ, book.logger() })
		got := len(strings.Fields(invoke(t, f, timeout(t, 6*time.Second), batch(numbered(50)...))))
		if delayed, _ := c.counts(); got != 50 || delayed != 50 {
			t.Errorf("%d failed, %d got their delay; want 50", got, delayed)
		}
		if book.count("handler abandoned") > 0 || book.count("failed=50") != 1 {
			t.Errorf("log:\n%s", &book)
		}
		time.Sleep(2 * time.Hour)
		if got := book.count("handler failed"); got != 50 || sends.Load() != 10 {
			t.Errorf("%d failures in the log, %d sends; want 50 and the 10 before the close", got, sends.Load())
		}
	})
}
