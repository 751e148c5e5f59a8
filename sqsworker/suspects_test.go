package sqsworker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/localstack/fault"
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
				t.Errorf("%s: ran %d times, not ready: %q", name, ran.Load(), j.whyNotReady())
			}
			j.stopClean()
		})
	}
}

// A handler that hangs holds up neither suspects nor the messages that wait for them for long, and not beyond their retention.
func TestSuspectBesideHungHandler(t *testing.T) {
	t.Parallel()
	for retention, patience := range map[string]time.Duration{"345600": suspectPatience, "600": 9 * time.Minute} {
		runParallel(t, retention, setup{maxReceives: 2}, func(x *fixture) {
			x.setAttribute("MessageRetentionPeriod", retention)
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
			time.Sleep(patience - 2*time.Minute)
			if done.Load() != 0 {
				x.Errorf("%d done beside a handler that runs for less than %s", done.Load(), patience)
			}
			time.Sleep(90 * time.Second)
			if done.Load() != 2 {
				x.Errorf("%d of 2 done beside a handler that hangs", done.Load())
			}
			close(free)
			j.stopClean()
		})
	}
}

// However many suspects there are, and however long they run, the worker receives again after 35 min, where nothing else runs.
func TestManySuspects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fifo     bool
		suspects int
		suspect  func(error, time.Time) error
	}{
		"crashed apart":              {suspects: 15, suspect: settle.NewLoneSuspect},
		"a crash is held against it": {fifo: true, suspects: 6, suspect: settle.NewSuspect},
	} {
		runParallel(t, name, setup{fifo: c.fifo, maxReceives: 2}, func(x *fixture) {
			for n := range c.suspects {
				x.send(fmt.Sprintf("s%d:1", n), fmt.Sprintf("s%d:2", n))
			}
			var other time.Duration
			var found sync.Map
			start := time.Now()
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				if m.Body == "other:1" {
					other = time.Since(start)
					return nil
				}
				if _, again := found.LoadOrStore(m.Body, true); !again {
					until(ctx, 10*time.Second) // until all are received
					return c.suspect(sqsonce.Unavailable(errTest), time.Now())
				}
				until(ctx, 3*time.Hour)
				return nil
			}, func(o *Options) { o.Concurrency, o.VisibilityTimeout = 40, 5*time.Minute })
			time.Sleep(time.Minute)
			x.send("other:1")
			time.Sleep(100 * time.Minute)
			j.stopClean()
			if other == 0 || other > 36*time.Minute {
				x.Errorf("another message ran after %s, 0: never", other)
			}
		})
	}
}

// A suspect waits for all that is here: messages that wait for a slot, deletes, and heads whose next attempt is less than 40 s away.
func TestSuspectWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fifo bool
		err  error         // of the others' first runs, which take 2 s each
		want time.Duration // until the suspect runs
	}{
		"slots":           {err: sqsonce.RetryAfter(time.Hour, errTest), want: 4 * time.Second},
		"deletes":         {want: 9 * time.Second},
		"an attempt soon": {fifo: true, err: sqsonce.RetryAfter(38*time.Second, errTest), want: 47 * time.Second},
		"a later attempt": {fifo: true, err: sqsonce.RetryAfter(50*time.Second, errTest), want: 4 * time.Second},
	} {
		runParallel(t, name, setup{fifo: c.fifo, maxReceives: 2}, func(x *fixture) {
			var began, ran time.Time // one handler at a time
			failed := map[string]bool{}
			j := x.startPrefetching(func(ctx context.Context, m *sqsonce.Message) error {
				switch {
				case m.Body == "s:suspect" && began.IsZero():
					time.Sleep(time.Second)
					began = time.Now()
					return settle.NewSuspect(sqsonce.Unavailable(errTest), began)
				case m.Body == "s:suspect":
					ran = time.Now()
				case !failed[m.Body]:
					failed[m.Body] = true
					time.Sleep(2 * time.Second)
					return c.err
				}
				return nil
			}, func(o *Options) { o.Concurrency, o.MaxInFlight, o.WaitTime = 1, 20, time.Second })
			x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opDelete, Prob: 1, Do: fault.Delay, Delay: 5 * time.Second}}})
			x.send("s:suspect")
			j.Resume()
			time.Sleep(100 * time.Millisecond)
			x.send("a:1", "b:1")
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			if got := ran.Sub(began); got < c.want || got > c.want+2*time.Second {
				x.Errorf("the suspect ran after %s, want %s", got, c.want)
			}
			j.stopClean()
		})
	}
}

// A suspect runs in its turn, in debt, also under a limit that would postpone it: its turn would come while another suspect waits for it.
func TestSuspectsUnderALimit(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 2}, func(x *fixture) {
		var mu sync.Mutex
		found, ran := map[string]bool{}, 0
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case !found[m.Body]:
				found[m.Body] = true
				return settle.NewSuspect(sqsonce.Unavailable(errTest), time.Now())
			case !settle.InDebt(ctx):
				return sqsonce.Postpone(10*time.Second, errTest)
			}
			ran++
			return nil
		})
		x.send("s1", "s2")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if ran != 2 || j.Stats().Received != 2 {
			x.Errorf("%d of 2 suspects have run, %d receives", ran, j.Stats().Received)
		}
		j.stopClean()
	})
}

// Before suspects run apart they start beside what runs, within 2 s, and nothing else starts shortly before or after one of them.
func TestSuspectsBeside(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		var mu sync.Mutex
		var starts []string
		found, begun := map[string]bool{}, time.Time{}
		j := x.startPrefetching(func(_ context.Context, m *sqsonce.Message) error {
			mu.Lock()
			if m.Body[0] == 's' && !found[m.Body] {
				defer mu.Unlock()
				found[m.Body] = true
				return settle.NewSuspect(sqsonce.Unavailable(errTest), time.Now())
			}
			starts = append(starts, fmt.Sprint(m.Body[:1], time.Since(begun).Round(100*time.Millisecond)))
			mu.Unlock()
			time.Sleep(5 * time.Second)
			return nil
		}, func(o *Options) { o.Concurrency, o.MaxInFlight = 4, 20 })
		x.send("other", "s1", "s2", "s3", "waits")
		begun = time.Now()
		j.Resume()
		j.stopEmptyAfter(time.Minute)
		if want := []string{"o0s", "s700ms", "s1.3s", "s2s", "w5s"}; !slices.Equal(starts, want) {
			t.Errorf("starts: %q, want %q", starts, want)
		}
	})
}

// Until the suspect that was started last has run for a while no other one starts, also where it waits for a slot.
func TestProving(t *testing.T) {
	l := newTestLoop(t)
	d := l.addTest("a", 1)
	d.began = l.now()
	for s := deciding; s <= gone; s++ {
		l.setState(d, s)
		if got := l.proving(d); got != (s == ready || s == running) {
			t.Errorf("state %d: got %t", s, got)
		}
	}
	l.setState(d, running)
	if d.began = l.now().Add(-suspectProves); l.proving(d) || l.proving(nil) {
		t.Error("a suspect that has run for a while, or none, is waited for")
	}
}

// A head that is accused leaves its group, unrun, also where only messages behind another head would lose their last receive but one.
func TestAccusedBesideAGroup(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true, maxReceives: 5}, func(x *fixture) {
		x.send("g:1", "g:2", "h:1")
		for range 3 {
			x.receive(time.Second)
			time.Sleep(2 * time.Second)
		}
		ran, found := map[string]bool{}, false
		var mu sync.Mutex
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case m.Body == "h:1":
				ran[m.Body] = settle.Suspects(ctx) == 0
				return settle.NewLoneSuspect(sqsonce.Unavailable(errTest), time.Now())
			case m.Body == "g:1" && !found:
				found = true
				return settle.NewSuspect(sqsonce.Unavailable(errTest), time.Now().Add(-time.Minute))
			}
			ran[m.Body] = true
			return nil
		})
		time.Sleep(time.Minute)
		j.stopClean()
		if dead := len(x.srv.Messages(x.dlq)); ran["h:1"] || !ran["g:1"] || !ran["g:2"] || dead != 1 {
			t.Errorf("ran: %v, %d dead-lettered", ran, dead)
		}
	})
}

// A head that has crashed a process alone leaves its group, unrun, when another crash could be the last for those behind it. One that SQS
// has moved here was not received here as often as its count says. Where the policy can't be read nobody knows which crash is the last.
func TestLoneSuspectAtTheHead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		most, received int
		moved, denied  bool
		ran            int
	}{{5, 4, false, false, 1}, {5, 3, false, false, 2}, {3, 4, true, false, 2}, {2, 1, false, false, 2}, {10, 3, false, true, 2}} {
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
			if c.denied {
				x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opAttributes, Prob: 1, Do: fault.Error, Code: "AccessDenied"}}})
			}
			var ran atomic.Int32
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				if m.Body == "g:1" && settle.Suspects(ctx) > 0 { // as dedup does
					return settle.NewLoneSuspect(sqsonce.Unavailable(errTest), time.Now())
				}
				ran.Add(1)
				return nil
			}, func(o *Options) { o.DeadLetterQueue = x.dlq })
			time.Sleep(time.Minute)
			j.stopClean()
			if dead := len(x.srv.Messages(x.dlq)); int(ran.Load()) != c.ran || dead != 2-c.ran {
				t.Errorf("%+v: %d ran, %d dead-lettered", c, ran.Load(), dead)
			}
		})
	}
}

// A head that is accused, and that the dead-letter queue refuses, waits for that queue: it is never run next to other messages, where it
// would crash them too.
func TestLoneSuspectThatTheDLQRefuses(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true, maxReceives: 5}, func(x *fixture) {
		x.send("g:1", "g:2")
		for range 3 {
			x.receive(time.Second)
			time.Sleep(2 * time.Second)
		}
		x.srv.Set(fault.Plan{Rules: []fault.Rule{
			{Op: opSend, Prob: 1, Do: fault.Error, Code: "AccessDenied"}, {Op: "GetQueueUrl", Prob: 1, Do: fault.Error, Code: "AccessDenied"},
		}})
		var beside, behind atomic.Int32
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			switch {
			case m.Body == "g:2":
				behind.Add(1)
			case settle.Suspects(ctx) > 0: // as dedup does
				return settle.NewLoneSuspect(sqsonce.Unavailable(errTest), time.Now())
			case !settle.RunsSuspect(ctx):
				beside.Add(1)
				return errTest
			}
			return nil
		})
		time.Sleep(5 * time.Minute)
		if n := x.queued()[0].ReceiveCount; beside.Load() > 0 || behind.Load() > 0 || len(x.queued()) != 2 || n != 4 {
			x.Errorf("ran %d times beside others, %d ran behind it, %d in the queue, received %d times", beside.Load(), behind.Load(), len(x.queued()), n)
		}
		x.srv.Set(fault.Plan{})
		j.stopEmptyAfter(2 * time.Minute)
		if len(x.dead()) != 1 || beside.Load() > 0 || behind.Load() != 1 {
			x.Errorf("%d dead-lettered, ran %d times beside others, %d ran behind it", len(x.dead()), beside.Load(), behind.Load())
		}
	})
}
