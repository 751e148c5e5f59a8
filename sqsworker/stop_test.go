package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// lostThenSlow has the next receive fail, and the question that follows take 4 s.
var lostThenSlow = fault.Plan{Rules: []fault.Rule{{Op: opReceive, Nth: 1, Do: fault.Reset}, {Op: opAttributes, Prob: 1, Do: fault.Delay, Delay: 4 * time.Second}}}

// TestStopWaitsForThePoll: a poll that is under way is not cancelled, and what it still brings is given back. One that waits for the answer
// to its question is not sent.
func TestStopWaitsForThePoll(t *testing.T) {
	for _, asking := range []bool{false, true} {
		bubble(t, setup{}, func(x *fixture) {
			var r runs
			j := x.start(r.take(time.Second))
			time.Sleep(5 * time.Second)
			received := int64(1)
			if asking {
				x.srv.Set(lostThenSlow)
				time.Sleep(j.opts.WaitTime - 3*time.Second)
				received = 0
			}
			j.cancel()
			synctest.Wait()
			time.Sleep(time.Second)
			x.send("a")
			j.stopClean()
			if got := j.Stats(); got.Received != received || got.Released != received || got.Abandoned != 0 {
				t.Errorf("stats: %+v, want %d received and released", got, received)
			}
			if got := x.receive(time.Minute); len(got) != 1 {
				t.Errorf("another consumer got %d messages right after the stop, want 1", len(got))
			}
			if n := len(r.list()); n != 0 {
				t.Errorf("%d handlers started during the stop", n)
			}
		})
	}
}

func TestStopReleasesWhatWasNotStarted(t *testing.T) {
	bothKinds(t, setup{}, func(x *fixture) {
		var r runs
		j := x.startPrefetching(r.take(10*time.Second), func(o *Options) { o.Concurrency, o.MaxInFlight, o.WaitTime = 2, 20, time.Second })
		for i := range 10 {
			x.send(fmt.Sprintf("g%d:%d", i%3, i))
		}
		j.Resume()
		time.Sleep(2 * time.Second)
		j.cancel()
		time.Sleep(100 * time.Millisecond)
		if n := x.inFlight(); n != 2 {
			x.Errorf("%d in flight right after the stop began, want the two running", n)
		}
		j.stopClean()
		// The poll under way may receive what was given back, and give it back once more.
		if s := j.Stats(); s.Released < 8 || s.Drained != 2 || s.Done != 2+paceMin {
			x.Errorf("stats: %+v", s)
		}
		if n := len(x.queued()); n != 8 {
			x.Errorf("%d messages left, want 8", n)
		}
	})
}

// TestStopRunsLastReceives: if a message at its last receive were given back, it would go to the dead-letter queue.
func TestStopRunsLastReceives(t *testing.T) {
	bothKinds(t, setup{maxReceives: 1}, func(x *fixture) {
		var r runs
		j := x.startPrefetching(r.take(time.Second), func(o *Options) { o.Concurrency, o.WaitTime = 1, time.Second })
		x.send("g:a", "g:b", "g:c")
		j.Resume()
		j.stopEmptyAfter(500 * time.Millisecond)
		if n := len(x.dead()); n != 0 || len(r.list()) != 3 {
			x.Errorf("%d in the dead-letter queue, %v run; want 0 and all", n, r.list())
		}
	})
}

// TestStopKeepsLastReceives: the stop's own receives don't get a message whose next receive is its last one. It would be given back at its
// last receive when handlers are cancelled, and go to the dead-letter queue unrun. On FIFO an attempt whose answer was lost is repeated.
func TestStopKeepsLastReceives(t *testing.T) {
	for name, repeats := range map[string]bool{"standard": false, ".fifo": false, ".fifo repeats": true} {
		run(t, name, setup{fifo: name[0] == '.', maxReceives: 2}, func(x *fixture) {
			wait := 15 * time.Second
			if repeats {
				wait = 2 * time.Second // which is over when the question is answered
			}
			var r runs
			j := x.startPrefetching(r.take(time.Hour), func(o *Options) { o.Concurrency, o.MaxInFlight, o.WaitTime = 1, 20, wait })
			x.send("a:runs")
			j.Resume()
			time.Sleep(time.Second)
			if repeats {
				x.srv.Set(lostThenSlow)
			}
			x.send("b:waits")
			time.Sleep(3500 * time.Millisecond)
			if s := j.Stats(); s.Waiting != 1 || s.Receiving == 0 {
				x.Fatalf("stats: %+v, want a message that waits beside a receive", s)
			}
			before := x.calls(opReceive)
			j.stopClean()
			if n := x.calls(opReceive) - before; n != 1 {
				x.Errorf("%d receives ended in the stop, want one", n)
			}
			if got := x.receive(time.Minute); len(got) != 2 || len(x.dead()) != 0 {
				x.Errorf("%d visible after the stop, %d in the dead-letter queue; want 2 and 0", len(got), len(x.dead()))
			}
		})
	}
}

// TestStopsOwnReceives: a message that the stop gives back is received by the worker once more at most, whatever receives are under way.
func TestStopsOwnReceives(t *testing.T) {
	bothKinds(t, setup{maxReceives: 5}, func(x *fixture) {
		j := x.startPrefetching(func(_ context.Context, m *sqsonce.Message) error {
			if m.Body == "g:held" {
				return sqsonce.Unavailable(errors.New("down"))
			}
			return nil
		}, func(o *Options) { o.Concurrency, o.MaxReceivers = 50, 4 })
		for i := range 80 {
			x.send(fmt.Sprintf("%d:quick", i))
		}
		j.Resume()
		time.Sleep(time.Second)
		x.send("g:held")
		time.Sleep(500 * time.Millisecond)
		if s := j.Stats(); s.Receiving < 3 {
			x.Fatalf("stats: %+v, want three receives under way", s)
		}
		j.stopClean()
		if left := x.queued(); len(left) != 1 || left[0].ReceiveCount > 2 {
			x.Errorf("left in the queue: %+v, want one message, received twice", left)
		}
	})
}

func TestStuckHandlersAreReported(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("stuck", "quick")
		var r runs
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			defer r.begin(m.Body)()
			if m.Body == "stuck" {
				time.Sleep(10 * time.Minute)
			}
			return nil
		})
		time.Sleep(time.Second)
		began := time.Now()
		err := j.stop()
		e, is := errors.AsType[*StopError](err)
		if !is || e.Stuck != 1 || e.Abandoned != 1 || e.Undeleted != 0 {
			t.Errorf("Run: got %v, want a StopError with one stuck", err)
		}
		if took := time.Since(began); took > 23*time.Second {
			t.Errorf("stopped after %s, want StopTimeout + StopGrace", took)
		}
		// Running is of what is in flight: the stop has abandoned the message of the stuck handler.
		if s := j.Stats(); s.Stuck != 1 || s.Running != 0 || s.OldestRunning < 20*time.Second || s.Done != 1 {
			t.Errorf("stats: %+v", s)
		}
		if got := x.receive(time.Minute); len(got) != 0 {
			t.Error("the stuck handler's message was given back while it runs")
		}
		if x.log.has("receives cancelled") {
			t.Error("the last receive had ended, and is logged as cancelled")
		}
		time.Sleep(10 * time.Minute) // lets it end
	})
}

func TestReleasesAreRetried(t *testing.T) {
	bubble(t, setup{faults: []fault.Rule{{Op: opChange, Nth: 1, Times: 3, Do: fault.FailEntries, Code: "InternalError"}}}, func(x *fixture) {
		var r runs
		j := x.startPrefetching(r.take(3*time.Second), func(o *Options) { o.Concurrency, o.WaitTime = 1, time.Second })
		x.send("a", "b")
		j.Resume()
		time.Sleep(2 * time.Second)
		j.stopClean()
		if got := x.receive(time.Minute); len(got) != 1 {
			t.Errorf("%d messages visible after the stop, want 1", len(got))
		}
		if n := x.log.count("release failed"); n != 1 {
			t.Errorf("%d lines for one release that failed three times, want 1", n)
		}
	})
}

// TestHeartbeatGoesOnInTheStop: it ends when the last handler has returned and its delete is confirmed.
func TestHeartbeatGoesOnInTheStop(t *testing.T) {
	bothKinds(t, setup{}, func(x *fixture) {
		x.send("g:a", "h:b")
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opDelete, Nth: 1, Times: 3, Do: fault.Error, Code: "InternalError"}}})
		var r runs
		j := x.start(r.take(45*time.Second), func(o *Options) {
			o.VisibilityTimeout, o.StopTimeout, o.WaitTime = 10*time.Second, time.Minute, time.Second
		})
		time.Sleep(2 * time.Second)
		j.cancel()
		time.Sleep(2 * time.Second)
		other := x.start(r.take(45 * time.Second))
		j.stopClean()
		time.Sleep(time.Minute)
		other.stopClean()
		x.wantEmpty()
		if s := other.Stats(); s.Received != 0 || len(r.list()) != 2 {
			x.Errorf("another worker received %d; runs: %v", s.Received, r.list())
		}
	})
}

// TestStopTakesLessThan30Seconds: with the default options, whatever hangs. ECS and Kubernetes kill the process then.
func TestStopTakesLessThan30Seconds(t *testing.T) {
	hang := func(op string) fault.Rule { return fault.Rule{Op: op, Prob: 1, Do: fault.Delay, Delay: time.Hour} }
	for _, s := range []setup{{}, {fifo: true}, {strict: true}, {fifo: true, strict: true}} {
		s.maxReceives = 5
		run(t, fmt.Sprintf("fifo=%t strict=%t", s.fifo, s.strict), s, func(x *fixture) {
			blocked := newClog()
			defer close(blocked.open)
			over := make(chan struct{})
			defer close(over)
			x.send("a:done", "b:stuck", "c:rejected", "d:settles", "e:slow")
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				switch m.Body {
				case "b:stuck":
					<-over
				case "c:rejected":
					time.Sleep(time.Second)
					return sqsonce.Reject(errTest)
				case "d:settles":
					sqsonce.OnSettled(ctx, func(bool) { <-over })
					return sqsonce.Reject(errTest)
				case "e:slow":
					<-ctx.Done()
					time.Sleep(1900 * time.Millisecond)
				}
				return nil
			}, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(blocked, nil)) })
			time.Sleep(100 * time.Millisecond)
			x.srv.Set(fault.Plan{Rules: []fault.Rule{hang(opReceive), hang(opDelete), hang(opChange), hang(opSend)}})
			time.Sleep(14950 * time.Millisecond) // the next receive has begun
			began := time.Now()
			err := j.stop()
			if took := time.Since(began); took < 27*time.Second || took >= 30*time.Second {
				x.Errorf("stopped after %s, want 27 to 30 s", took)
			}
			if e, is := errors.AsType[*StopError](err); !is || e.Stuck != 1 {
				x.Errorf("Run: got %v, want a StopError with one stuck", err)
			}
		})
	}
}

// TestQueueDeleted: Run ends, and each message in flight costs no call of its own.
func TestQueueDeleted(t *testing.T) {
	bothKinds(t, setup{}, func(x *fixture) {
		for i := range 300 {
			x.send(fmt.Sprintf("g%d:%d", i%150, i))
		}
		var r runs
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			defer r.begin(m.Body)()
			time.Sleep(time.Duration(10_000+len(r.list())*50) * time.Millisecond)
			if len(r.list())%3 == 0 {
				return errTest
			}
			return nil
		}, func(o *Options) { o.Concurrency, o.MaxInFlight = 100, 250 })
		time.Sleep(5 * time.Second)
		must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.url}))(x)
		before, began := len(x.srv.Calls()), time.Now()
		err := j.wait()
		if took := time.Since(began); !isMissing(err) || took > 30*time.Second {
			x.Errorf("Run: got %v after %s, want that the queue does not exist", err, took)
		}
		if n := len(x.srv.Calls()) - before; n > 60 {
			x.Errorf("%d calls to a queue that does not exist", n)
		}
	})
}

// TestEndOfTheStop: the stop goes on while anything is left to do, in whatever state, and reports what is left in the end.
func TestEndOfTheStop(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	l.stopping.begun = true
	states := []state{following, ready, running, held, rejecting, deleting, releasing}
	for i, a := range states {
		for _, b := range states[i:] {
			l.counts = [gone + 1]int{}
			l.counts[a]++
			l.counts[b]++
			if l.stopFinished() {
				t.Errorf("finished with messages in the states %d and %d", a, b)
			}
		}
	}
	l.counts = [gone + 1]int{deleting: 1, releasing: 2, rejecting: 3}
	l.counters.undeleted.Store(4)
	l.stopping.undeleted = 4
	if e, is := errors.AsType[*StopError](l.report()); !is || *e != (StopError{Abandoned: 5, Undeleted: 1}) {
		t.Errorf("got %v, want 5 abandoned and 1 undeleted", e)
	}
	l.counts = [gone + 1]int{}
	if !l.stopFinished() {
		t.Error("not finished, with nothing left to do")
	}
}
