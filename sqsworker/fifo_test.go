package sqsworker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// inOrder checks that the successful runs of each group are 0, 1, 2 ... without a gap or a repeat.
func inOrder(t testing.TB, done []string) {
	t.Helper()
	next := map[string]int{}
	for _, body := range done {
		group, n, _ := strings.Cut(body, ":")
		if n != fmt.Sprint(next[group]) {
			t.Errorf("group %s: %s handled, want %d first; all: %v", group, n, next[group], done)
			return
		}
		next[group]++
	}
}

// TestNextStartsAfterTheDelete: if the next message started earlier, a redelivery of the one before could run after it.
func TestNextStartsAfterTheDelete(t *testing.T) {
	bubble(t, setup{fifo: true, faults: []fault.Rule{{Op: opDelete, Nth: 1, Times: 3, Do: fault.Error, Code: "InternalError"}}}, func(x *fixture) {
		x.send("g:0", "g:1")
		bad := make(chan int, 2)
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			if m.Body == "g:1" {
				bad <- len(x.queued())
			}
			return nil
		}, func(o *Options) { o.WaitTime = time.Second })
		time.Sleep(30 * time.Second)
		j.stopClean()
		if n := <-bad; n != 1 {
			t.Errorf("g:1 started with %d messages in the queue, want only its own", n)
		}
	})
}

// TestWaitingGroupDoesNotLinger: a delete is sent at once if another message of its group waits for it. The delete of the
// last one lingers.
func TestWaitingGroupDoesNotLinger(t *testing.T) {
	bubble(t, setup{fifo: true}, func(x *fixture) {
		x.send("g:0", "g:1", "g:2", "g:3")
		var r runs
		j := x.start(r.take(0), func(o *Options) { o.DeleteLinger = time.Second })
		time.Sleep(500 * time.Millisecond)
		if runs, left := len(r.list()), len(x.queued()); runs != 4 || left != 1 {
			t.Errorf("after half of the linger %d runs, %d messages left; want 4, 1", runs, left)
		}
		time.Sleep(time.Second)
		x.wantEmpty()
		j.stopClean()
	})
}

func TestFairQueueGroupsStayParallel(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		for _, body := range []string{"a", "b", "c"} {
			in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: &body, MessageGroupId: aws.String("tenant")}
			must.Get(x.c.SendMessage(x.Context(), in))(t)
		}
		var r runs
		j := x.start(r.take(time.Second))
		j.stopEmptyAfter(5 * time.Second)
		if r.most != 3 {
			t.Errorf("%d at once, want 3: a group on a standard queue orders nothing", r.most)
		}
	})
}

func TestHeadIsRetriedInProcess(t *testing.T) {
	bubble(t, setup{fifo: true, maxReceives: 2}, func(x *fixture) {
		x.send("g:0", "g:1", "g:2")
		var r runs
		var book hookBook
		var counts []int
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			defer r.begin(m.Body)()
			counts = append(counts, m.ReceiveCount)
			if m.Body == "g:0" && r.count("g:0") <= 2 {
				return errTest
			}
			return nil
		}, book.option, func(o *Options) { o.MaxAttempts = 3 })
		j.stopEmptyAfter(2 * time.Minute)
		want := []string{"g:0", "g:0", "g:0", "g:1", "g:2"}
		if got := r.list(); !slices.Equal(got, want) {
			t.Errorf("runs: %v, want %v", got, want)
		}
		if slices.Max(counts) != 1 {
			t.Errorf("receive counts %v, want no second receive", counts)
		}
		for i, d := range book.starts[:3] {
			if d.Run != i+1 || !d.Received.Equal(book.starts[0].Received) {
				t.Errorf("start %d: run %d, received %s; want one receive", i, d.Run, d.Received)
			}
		}
	})
}

// TestFailingGroupIsGivenBackInOrder: without a dead-letter queue a group whose head fails goes back after its three attempts.
func TestFailingGroupIsGivenBackInOrder(t *testing.T) {
	bubble(t, setup{fifo: true}, func(x *fixture) {
		x.send("g:0", "g:1", "g:2", "h:0")
		var runs []string
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			if m.Body == "h:0" {
				return nil
			}
			runs = append(runs, fmt.Sprint(m.Body, " ", m.ReceiveCount)) // one handler at a time
			if m.Body == "g:0" && m.ReceiveCount < 3 {
				return errTest
			}
			return nil
		}, func(o *Options) { o.Backoff = func(int) time.Duration { return time.Second } })
		j.stopEmptyAfter(time.Minute)
		if want := []string{"g:0 1", "g:0 1", "g:0 1", "g:0 2", "g:0 2", "g:0 2", "g:0 3", "g:1 3", "g:2 3"}; !slices.Equal(runs, want) {
			t.Errorf("runs and their receives: %v, want %v", runs, want)
		}
	})
}

// TestFollowersNeverReachTheDLQUntried: each redelivery of the failing head costs its followers a receive.
func TestFollowersNeverReachTheDLQUntried(t *testing.T) {
	for _, attempts := range []int{1, 3} {
		for _, maxReceives := range []int{1, 2, 3} {
			run(t, fmt.Sprintf("attempts=%d max=%d", attempts, maxReceives), setup{fifo: true, maxReceives: maxReceives}, func(x *fixture) {
				x.send("g:bad", "g:1", "g:2", "g:3")
				var r runs
				j := x.start(func(_ context.Context, m *sqsonce.Message) error {
					defer r.begin(m.Body)()
					if m.Body == "g:bad" {
						return errTest
					}
					return nil
				}, func(o *Options) { o.MaxAttempts = attempts })
				j.stopEmptyAfter(10 * time.Minute)
				dead := x.dead()
				if len(dead) != 1 || dead[0].Body != "g:bad" {
					x.Errorf("dead-letter queue: %+v, want only the bad one", dead)
				}
				for _, b := range []string{"g:1", "g:2", "g:3"} {
					if r.count(b) != 1 {
						x.Errorf("%s: %d runs, want 1", b, r.count(b))
					}
				}
			})
		}
	}
}

// TestLostHandleStopsTheGroup: the lease of the head is lost. Its followers are dropped, neither extended nor given back,
// and nothing of the group starts before the head's handler has returned.
func TestLostHandleStopsTheGroup(t *testing.T) {
	rule := fault.Rule{Op: opChange, Nth: 1, Do: fault.FailEntries, Entries: []int{0}, Code: "ReceiptHandleIsInvalid"}
	bubble(t, setup{fifo: true, faults: []fault.Rule{rule}}, func(x *fixture) {
		x.send("g:0", "g:1", "g:2")
		var r runs
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			defer r.begin(m.Body)()
			if m.ReceiveCount == 1 {
				time.Sleep(80 * time.Second) // ignores its context
				return errTest
			}
			return nil
		}, func(o *Options) { o.StopGrace = time.Hour })
		time.Sleep(25 * time.Second)
		if n := x.calls(opChange); n != 1 {
			t.Errorf("%d visibility changes, want only the refused one", n)
		}
		if got := r.list(); len(got) != 1 {
			t.Errorf("runs: %v, want only the head", got)
		}
		j.stopEmptyAfter(3 * time.Minute)
		if want := []string{"g:0", "g:0", "g:1", "g:2"}; !slices.Equal(r.list(), want) || len(r.twice) != 0 {
			t.Errorf("runs: %v (at once: %v), want %v", r.list(), r.twice, want)
		}
	})
}

// TestStuckHeadRunsAgain: a head that was stuck is not stuck when it has returned, nor in its next run. Each of its runs
// occupies one slot.
func TestStuckHeadRunsAgain(t *testing.T) {
	bubble(t, setup{fifo: true}, func(x *fixture) {
		x.send("a:1", "b:1", "b:2", "b:3")
		var r runs
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			defer r.begin(m.Body)()
			switch {
			case m.Body != "a:1":
				time.Sleep(time.Minute) // b ends when a is done
			case r.count(m.Body) == 1:
				<-ctx.Done()
				return errTest // within StopGrace, which ends during the next run
			case r.count(m.Body) == 2:
				<-ctx.Done()
				time.Sleep(10 * time.Second)
				return errTest
			}
			time.Sleep(5 * time.Second)
			return nil
		}, func(o *Options) {
			o.Concurrency, o.Timeout = 2, timeoutOf(10*time.Second)
			o.Backoff = func(int) time.Duration { return time.Second }
		})
		wantStuck := func(want int64) {
			if s := j.Stats(); s.Stuck != want {
				t.Errorf("Stuck: got %d after run %d, want %d", s.Stuck, r.count("a:1"), want)
			}
		}
		time.Sleep(15 * time.Second)
		wantStuck(1) // b
		time.Sleep(10 * time.Second)
		wantStuck(2)
		time.Sleep(9 * time.Second) // a's third run
		wantStuck(1)
		time.Sleep(10 * time.Minute)
		if s := j.Stats(); s.Stuck != 0 || s.Running != 0 {
			t.Errorf("in the end: got %+v, want none stuck", s)
		}
		j.stopEmptyAfter(0)
	})
}

// A message whose retention ends stays while the head of its group may start: it only waits for a slot then, or for its next attempt.
func TestExpiresBehindARunningHandlerOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begin    func(*loop, *delivery)
		expected state
	}{
		"slot":      {func(*loop, *delivery) {}, following},
		"attempt":   {func(l *loop, head *delivery) { l.holdParked(head, heldAttempt, time.Minute, nil) }, following},
		"elsewhere": {func(l *loop, head *delivery) { l.holdParked(head, heldElsewhere, time.Minute, nil) }, rejecting},
		"runs":      {func(l *loop, head *delivery) { l.handlerBegins(head) }, rejecting},
	} {
		l, ds := newGroup(t, 2)
		l.queue.retention, l.queue.deadLetter, ds[1].m.SentAt = time.Hour, goodURL, l.now().Add(-time.Hour)
		l.clock = serverClock{date: l.now(), sent: l.now()}
		c.begin(l, ds[0])
		if l.expireFollowing(ds); ds[1].state != c.expected {
			t.Errorf("%s: state %d, want %d", name, ds[1].state, c.expected)
		}
	}
}
