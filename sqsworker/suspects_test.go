package sqsworker

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// Messages that are tried again and again keep no suspect from its turn, and a suspect hides no question that fails wrongly. hosttest
// has the crashes.
func TestSuspectBesideUnavailable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err error
		at  int // of the suspect in the queue
	}{
		"claims":         {sqsonce.Unavailable(errRefused), 24},
		"wrong question": {sqsonce.UnavailableUntil(errRefused, refused), 5},
	} {
		bubble(t, setup{maxReceives: 2}, func(x *fixture) {
			for n := range 25 {
				x.send(fmt.Sprint("own", n))
				if n == c.at {
					x.send("suspect")
				}
			}
			var found, ran, others atomic.Int32
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				if m.Body != "suspect" {
					until(ctx, 10*time.Second+time.Duration(others.Add(1)%10)*time.Second)
					return c.err
				}
				if found.Add(1) == 1 {
					return settle.NewSuspect(sqsonce.Unavailable(errTest), time.Now())
				}
				ran.Add(1)
				return nil
			})
			time.Sleep(10 * time.Minute)
			if ran.Load() != 1 {
				t.Errorf("%s: ran %d times, not ready: %q", name, ran.Load(), j.NotReady())
			}
			j.stopClean()
		})
	}
}

// A handler that hangs holds up neither suspects nor the messages that wait for them for long.
func TestSuspectBesideHungHandler(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		var found, done atomic.Int32
		free := make(chan struct{})
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			switch {
			case m.Body == "hangs":
				<-free
			case m.Body == "suspect" && found.Add(1) == 1:
				return settle.NewSuspect(sqsonce.Unavailable(errTest), time.Now())
			default:
				done.Add(1)
			}
			return nil
		})
		x.send("hangs", "suspect")
		time.Sleep(time.Minute)
		x.send("other")
		time.Sleep(13 * time.Minute)
		if done.Load() != 0 {
			t.Errorf("%d done beside a handler that runs for less than %s", done.Load(), suspectPatience)
		}
		time.Sleep(2 * time.Minute)
		if done.Load() != 2 {
			t.Errorf("%d of 2 done beside a handler that hangs", done.Load())
		}
		close(free)
		j.stopClean()
	})
}

// A head that has crashed a process alone leaves its group, unrun, when another crash could be the last for those behind it. One that SQS
// has moved here was not received here as often as its count says.
func TestLoneSuspectAtTheHead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		most, received int
		moved          bool
		ran            int
	}{{5, 4, false, 1}, {5, 3, false, 2}, {3, 4, true, 2}, {2, 1, false, 2}} {
		bubble(t, setup{fifo: true, maxReceives: c.most}, func(x *fixture) {
			x.send("g:1", "g:2")
			for range c.received - 1 {
				x.receive(time.Second)
				time.Sleep(2 * time.Second)
			}
			if c.moved {
				x.receive(time.Second) // SQS moves them
				last := x.create("last.fifo", map[string]string{"FifoQueue": "true"})
				x.url, x.dlq = x.dlq, last
				x.setPolicy(policy("last.fifo", c.most))
			}
			var ran atomic.Int32
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				if m.Body == "g:1" && settle.Suspects(ctx) > 0 { // as dedup does
					return settle.NewLoneSuspect(sqsonce.Unavailable(errTest), time.Now())
				}
				ran.Add(1)
				return nil
			})
			time.Sleep(time.Minute)
			j.stopClean()
			if dead := len(x.srv.Messages(x.dlq)); int(ran.Load()) != c.ran || dead != 2-c.ran {
				t.Errorf("%+v: %d ran, %d dead-lettered", c, ran.Load(), dead)
			}
		})
	}
}
