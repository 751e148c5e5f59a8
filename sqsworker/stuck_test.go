package sqsworker

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// losesItsLease starts a worker whose first handler ignores its context until over is closed, and loses the lease of its
// message at the first extension. The message is visible again ten seconds after its receive.
func (x *fixture) losesItsLease(r *runs, over chan struct{}, optFns ...func(*Options)) *job {
	x.Helper()
	x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opChange, Nth: 1, Do: fault.FailEntries, Code: "ReceiptHandleIsInvalid"}}})
	var started atomic.Bool
	return x.start(func(_ context.Context, m *sqsonce.Message) error {
		defer r.begin(m.Body)()
		if !started.Swap(true) {
			<-over
			return errTest
		}
		return nil
	}, append([]func(*Options){func(o *Options) { o.VisibilityTimeout, o.Concurrency = 10*time.Second, 1 }}, optFns...)...)
}

// TestStuckHandlerFreesItsMessage: what comes again of it is given back, and another worker runs it.
func TestStuckHandlerFreesItsMessage(t *testing.T) {
	bothKinds(t, setup{}, func(x *fixture) {
		fifo := host.IsFIFO(x.url)
		x.send("g:a")
		over := make(chan struct{})
		var r, elsewhere runs
		j := x.losesItsLease(&r, over)
		x.send("g:b")
		time.Sleep(time.Minute)
		// Received at 0 s; at 10 s, given back for 10 s; at 20 s, for 20 s; at 40 s, for 40 s. On FIFO all with b.
		for _, m := range x.queued() {
			if m.Body == "g:a" && m.ReceiveCount != 4 {
				x.Errorf("%s was received %d times in a minute, want 4", m.Body, m.ReceiveCount)
			}
		}
		other := x.start(elsewhere.take(time.Second))
		time.Sleep(time.Hour)
		x.wantEmpty()
		if elsewhere.count("g:a") != 1 || r.count("g:a") != 1 {
			x.Errorf("runs: %v, elsewhere %v; want the message once in each", r.list(), elsewhere.list())
		}
		if order := elsewhere.list(); fifo && !slices.Equal(order, []string{"g:a", "g:b"}) {
			x.Errorf("order elsewhere: %v", order)
		}
		close(over)
		other.stopClean()
		j.stopClean()
	})
}

// A copy at its last receive waits behind it. It is given back when more receives are allowed.
func TestMoreReceivesBehindAStuckHandler(t *testing.T) {
	t.Parallel()
	bothKinds(t, setup{maxReceives: 2}, func(x *fixture) {
		x.send("g:a")
		over := make(chan struct{})
		var r runs
		j := x.losesItsLease(&r, over)
		time.Sleep(10 * time.Minute)
		x.setPolicy(policy(path.Base(x.dlq), 10))
		time.Sleep(10 * time.Minute)
		if q := x.queued(); len(q) != 1 || q[0].ReceiveCount <= 2 {
			x.Errorf("queue %+v, want a message that was given back", q)
		}
		close(over)
		time.Sleep(time.Hour)
		x.wantEmpty()
		j.stopClean()
	})
}

// TestCopyWaits: it does so while the handler may still return soon, and at its last receive, at which others would not get
// it.
func TestCopyWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		maxReceives int
		grace       time.Duration
	}{"not stuck yet": {grace: time.Hour}, "at last receive": {maxReceives: 2}} {
		for _, fifo := range []bool{false, true} {
			run(t, fmt.Sprintf("%s fifo=%t", name, fifo), setup{fifo: fifo, maxReceives: tc.maxReceives}, func(x *fixture) {
				x.send("g:a")
				over := make(chan struct{})
				var r runs
				j := x.losesItsLease(&r, over, func(o *Options) { o.StopGrace, o.Concurrency = tc.grace, 2 })
				time.Sleep(10 * time.Minute)
				if q := x.queued(); len(q) != 1 || q[0].ReceiveCount != 2 || r.count("g:a") != 1 {
					x.Errorf("queue %+v, runs %v; want a message that was received twice and run once", q, r.list())
				}
				close(over)
				time.Sleep(time.Second)
				x.wantEmpty()
				if dead := x.dead(); len(dead) != 0 || r.count("g:a") != 2 {
					x.Errorf("dead-letter queue %+v, runs %v; want a second run", dead, r.list())
				}
				j.stopClean()
			})
		}
	}
}

// TestFollowersWaitBehindAStuckHead: its lease is not lost, so nobody else can have the group.
func TestFollowersWaitBehindAStuckHead(t *testing.T) {
	bubble(t, setup{fifo: true}, func(x *fixture) {
		x.send("g:a", "g:b")
		var r runs
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			defer r.begin(m.Body)()
			if m.Body == "g:a" {
				time.Sleep(5 * time.Minute)
			}
			return nil
		}, func(o *Options) { o.Timeout = timeoutOf(time.Minute) })
		time.Sleep(4 * time.Minute)
		for _, m := range x.queued() {
			if m.ReceiveCount != 1 || !m.InFlight {
				t.Errorf("%s was received %d times, in flight %t; want once, and in flight", m.Body, m.ReceiveCount, m.InFlight)
			}
		}
		time.Sleep(time.Minute + time.Second)
		x.wantEmpty()
		j.stopClean()
	})
}

// A message behind a stuck handler of its group goes to the dead-letter queue before its retention ends.
func TestRetentionBehindAStuckHead(t *testing.T) {
	bubble(t, setup{fifo: true, maxReceives: 5}, func(x *fixture) {
		x.setAttribute("MessageRetentionPeriod", "600")
		x.send("g:a")
		j := x.start(func(context.Context, *sqsonce.Message) error { time.Sleep(12 * time.Minute); return nil }, func(o *Options) {
			o.VisibilityTimeout = 10 * time.Second // it is known soon that the first message is gone
		})
		time.Sleep(55 * time.Second)
		x.send("g:b")
		time.Sleep(15 * time.Minute) // SQS deletes the first message, and hands out the second one in its last minute
		j.stopClean()
		dead := x.dead()
		if len(dead) != 1 || !strings.Contains(dead[0].Attributes[sqsonce.AttrRejectReason], "retention ends") {
			t.Errorf("dead-lettered %+v, want the second message, because of its retention", dead)
		}
	})
}

// So do those behind a handler that still runs, here or elsewhere, and a later message of the group starts after both.
func TestRetentionBehindARunningHead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		takes     time.Duration
		elsewhere bool
		noDLQ     bool
		ran       string
	}{
		"it returns in the last minute":  {takes: 595 * time.Second, ran: "g:a g:c"},
		"it returns before the last 30s": {takes: 565 * time.Second, ran: "g:a g:1 g:2 g:3 g:c"},
		"its own retention ends":         {takes: 12 * time.Minute, ran: "g:c"},
		"it runs elsewhere":              {elsewhere: true, ran: "g:c"},
		"no dead-letter queue":           {takes: 12 * time.Minute, noDLQ: true, ran: "g:c"},
	} {
		s := setup{fifo: true, maxReceives: 5}
		if tc.noDLQ {
			s.maxReceives = 0
		}
		runParallel(t, name, s, func(x *fixture) {
			x.setAttribute("MessageRetentionPeriod", "600")
			behind := []string{"g:1", "g:2", "g:3"}
			x.send(append([]string{"g:a"}, behind...)...)
			var ran runs
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				if m.Body == "g:a" && tc.elsewhere {
					return sqsonce.RetryAfter(time.Hour, sqsonce.ErrInProgress)
				}
				if m.Body == "g:a" {
					until(ctx, tc.takes)
				}
				if ctx.Err() == nil {
					ran.begin(m.Body)()
				}
				return context.Cause(ctx)
			})
			time.Sleep(5 * time.Minute)
			x.send("g:c")
			j.stopEmptyAfter(8 * time.Minute)
			var dead []string
			for _, m := range x.dead() {
				if dead = append(dead, m.Body); !strings.Contains(m.Attributes[sqsonce.AttrRejectReason], "retention ends") {
					x.Errorf("%s has the reason %q", m.Body, m.Attributes[sqsonce.AttrRejectReason])
				}
			}
			if strings.Contains(tc.ran, "g:1") {
				behind = nil
			}
			lines := x.log.count("SQS deletes the message soon")
			if tc.noDLQ && (lines != 3 || len(dead) > 0) || !tc.noDLQ && !slices.Equal(dead, behind) || strings.Join(ran.list(), " ") != tc.ran {
				x.Errorf("dead-lettered %v, %d lines, ran %v; want %s\n%s", dead, lines, ran.list(), tc.ran, x.log)
			}
		})
	}
}

// At their last receive such messages wait here. They go to the dead-letter queue in order, each before its retention ends. The copy of
// the handler's own message is not among them, because the handler may yet succeed.
func TestRetentionAtLastReceiveBehindAStuckHead(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true, maxReceives: 2}, func(x *fixture) {
		x.setAttribute("MessageRetentionPeriod", "600")
		behind := []string{"g:1", "g:2", "g:3", "g:4", "g:5", "g:6", "g:7", "g:8"}
		x.send(append([]string{"g:a"}, behind...)...)
		var r runs
		over := make(chan struct{})
		j := x.losesItsLease(&r, over, func(o *Options) { o.Concurrency = 10 }) // all are received together
		time.Sleep(5 * time.Minute)
		x.send("g:c")
		time.Sleep(11 * time.Minute)
		x.send("g:d")
		time.Sleep(time.Minute)
		close(over)
		j.stopEmptyAfter(time.Minute)
		var dead []string
		for _, m := range x.dead() {
			if dead = append(dead, m.Body); !strings.Contains(m.Attributes[sqsonce.AttrRejectReason], "retention ends") {
				t.Errorf("%s has the reason %q", m.Body, m.Attributes[sqsonce.AttrRejectReason])
			}
		}
		if want := append(behind, "g:c"); !slices.Equal(dead, want) || !slices.Equal(r.list(), []string{"g:a", "g:d"}) {
			t.Errorf("dead-lettered %v, want %v; runs %v", dead, want, r.list())
		}
	})
}

// TestRefusedBehindAStuckHead: a dead-letter queue that refuses messages in the last part of their retention is asked once in 30 s, and
// the messages come back at most every half visibility timeout.
func TestRefusedBehindAStuckHead(t *testing.T) {
	t.Parallel()
	for _, maxReceives := range []int{0, 1000} {
		runParallel(t, fmt.Sprint(maxReceives), setup{fifo: true, maxReceives: maxReceives}, func(x *fixture) {
			x.setAttribute("MessageRetentionPeriod", "600")
			x.send("g:a")
			j := x.start(func(context.Context, *sqsonce.Message) error { time.Sleep(12 * time.Minute); return nil }, func(o *Options) {
				o.VisibilityTimeout, o.DeadLetterQueue = 10*time.Second, x.dlq
			})
			time.Sleep(55 * time.Second)
			x.send("g:b")
			time.Sleep(9*time.Minute + 5*time.Second) // SQS deletes the first message, and hands out the second one in its last minute
			x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opSend, Prob: 1, Do: fault.Error, Code: "AccessDenied"}}})
			before, sent := len(x.srv.Calls()), x.calls(opSend)
			time.Sleep(50 * time.Second)
			if calls, asked := len(x.srv.Calls())-before, x.calls(opSend)-sent; calls > 30 || asked < 1 || asked > 2 {
				x.Errorf("%d calls in 50 s, %d to the dead-letter queue; want 30 at most, and one in 30 s", calls, asked)
			}
			time.Sleep(4 * time.Minute)
			j.stopClean()
		})
	}
}

// TestLeavesAStuckHead: what is behind a message on its way to the dead-letter queue waits until that is decided. If it stays, it is next.
// What happens to its group meanwhile is not undone, and whatever happens the group goes on.
func TestLeavesAStuckHead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		meanwhile     func(l *loop, head, leaving, last *delivery)
		err           error // of the send
		leaving, last state // after it
	}{
		"taken":   {meanwhile: returns, leaving: gone, last: ready},
		"refused": {meanwhile: returns, err: errTest, leaving: ready, last: following},
		"refused behind a held head": {
			meanwhile: func(l *loop, head, _, _ *delivery) { l.holdParked(head, heldAttempt, time.Minute, nil) },
			err:       errTest, leaving: following, last: following,
		},
		"refused after its group was given back": {
			meanwhile: func(l *loop, head, _, _ *delivery) { l.releaseGroup(head.group, 0) },
			err:       errTest, leaving: gone, last: releasing,
		},
		"refused in a stop": {
			meanwhile: func(l *loop, _, _, _ *delivery) { l.stopping.begun, l.queue.maxReceives = true, 2 },
			err:       errTest, leaving: gone, last: releasing,
		},
		"refused in a stop before a last receive": {
			meanwhile: func(l *loop, _, _, _ *delivery) { l.stopping.begun = true },
			err:       errTest, leaving: following, last: following,
		},
		"its visibility timeout ends": {
			meanwhile: func(l *loop, head, leaving, last *delivery) {
				leaving.lease.span, l.queue.confirmed = 0, l.now() // SQS would move it
				returns(l, head, leaving, last)
			},
			err: errTest, leaving: gone, last: gone,
		},
		"its lease is lost": {
			meanwhile: func(l *loop, head, leaving, last *delivery) {
				l.loseLease(leaving, "test", nil)
				returns(l, head, leaving, last)
			},
			err: errTest, leaving: gone, last: gone,
		},
		"that of the head is lost": {
			meanwhile: func(l *loop, head, leaving, last *delivery) {
				l.loseLease(head, "test", nil)
				l.orphanReturned(head, result{})
			},
			err: errTest, leaving: gone, last: gone,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, ds := newGroup(t, 3)
			head, leaving, last := ds[0], ds[1], ds[2]
			g := head.group
			l.queue.retention, l.queue.deadLetter, leaving.m.SentAt = time.Hour, goodURL, l.now().Add(-time.Hour)
			l.queue.maxReceives, l.clock = 1, serverClock{date: l.now(), sent: l.now()}
			l.setState(head, running)
			head.stuck, head.cancel = true, func(error) {}
			l.giveBackBehind(head)
			tc.meanwhile(l, head, leaving, last)
			if last.state == ready {
				t.Error("the last one does not wait for the answer")
			}
			l.deadLettered(deadLettered{d: leaving, queueURL: goodURL, err: tc.err})
			if leaving.state == deleting || leaving.state == releasing {
				l.remove(leaving)
			}
			if leaving.state != tc.leaving || last.state != tc.last || g.leaving || g.stopped {
				t.Errorf("states %d and %d, want %d and %d; still leaving: %t", leaving.state, last.state, tc.leaving, tc.last, g.leaving)
			}
			if leaving.parked != head.parked || l.counts[rejecting] != 0 {
				t.Errorf("parked %t behind a head that is %t; %d are sent", leaving.parked, head.parked, l.counts[rejecting])
			}
		})
	}
}

// returns has the head return, and be deleted.
func returns(l *loop, head, _, _ *delivery) { l.remove(head) }

// TestCopyIsGivenBackLater: one that came before the handler counted as stuck is given back when it does.
func TestCopyIsGivenBackLater(t *testing.T) {
	bothKinds(t, setup{}, func(x *fixture) {
		x.send("g:a")
		over := make(chan struct{})
		var r, elsewhere runs
		j := x.losesItsLease(&r, over, func(o *Options) { o.StopGrace, o.Concurrency = 5*time.Minute, 2 })
		time.Sleep(4 * time.Minute)
		if q := x.queued(); len(q) != 1 || q[0].ReceiveCount != 2 {
			x.Errorf("queue %+v, want a message that waits in its second receive", q)
		}
		other := x.start(elsewhere.take(time.Second))
		time.Sleep(time.Hour)
		x.wantEmpty()
		if elsewhere.count("g:a") != 1 {
			x.Errorf("not run elsewhere; runs: %v", r.list())
		}
		close(over)
		other.stopClean()
		j.stopClean()
	})
}
