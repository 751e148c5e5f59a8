package sqsworker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// TestHandedOut: SQS hands messages out at an instant that is known here, and the answer arrives late. The proof must not
// count from later than that, and in healthy operation not from much earlier.
func TestHandedOut(t *testing.T) {
	t.Parallel()
	const visibility = 30 * time.Second
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour, 1234 * time.Millisecond} { // of SQS's clock
		rng := rand.New(rand.NewPCG(1, 2))
		some := func(most time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(most))) }
		var c serverClock
		now := time.Now()
		for i := range 5000 {
			now = now.Add(some(20 * time.Second))
			sent := now
			// A long poll, in which the message arrives at some time; then the answer is on its way, mostly for milliseconds.
			out := sent.Add(some(20 * time.Second))
			late := some(30 * time.Millisecond)
			if i%10 == 3 {
				late = some(40 * time.Second)
			}
			now = out.Add(late)
			date := out.Add(skew).Truncate(time.Second)
			c.learn(sent, now, date)
			got := c.handedOut(sent, now, date, visibility)
			if got.After(out) {
				t.Fatalf("skew %s, answer %d: handed out %s later than it was", skew, i, got.Sub(out))
			}
			if early := out.Sub(got); i > 0 && early > 5*time.Second || got.Before(sent.Add(-time.Second)) {
				t.Fatalf("skew %s, answer %d: handed out %s earlier than it was, %s after the request", skew, i, early, got.Sub(sent))
			}
			// The delete. Its answer is late sometimes too.
			sent = now
			now = now.Add(some(30 * time.Millisecond))
			date = now.Add(skew).Truncate(time.Second)
			if i%10 == 5 {
				now = now.Add(some(30 * time.Second))
			}
			c.learn(sent, now, date)
		}
	}
}

func TestHandedOutWithoutADate(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var c serverClock
	c.learn(now, now, time.Time{})
	for visibility, want := range map[time.Duration]time.Duration{30 * time.Second: time.Second, 2 * time.Second: 200 * time.Millisecond} {
		if got := now.Sub(c.handedOut(now.Add(-time.Minute), now, time.Time{}, visibility)); got != want {
			t.Errorf("V=%s: got %s before the arrival, want %s", visibility, got, want)
		}
	}
}

// A visibility timeout below 5 s is believed to have begun later than the Date alone proves.
func TestShortVisibilityTimeouts(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second)
	var c serverClock
	c.learn(now.Add(-time.Millisecond), now, now)
	date := now.Add(-10 * time.Second)
	age := func(visibility time.Duration) time.Duration {
		return now.Sub(c.handedOut(now.Add(-time.Minute), now, date, visibility))
	}
	if long, short := age(shortVisibility), age(shortVisibility-time.Second); long-short < 2*dateResolution+shortReceive {
		t.Errorf("%s with the shortest that is not short, %s with a shorter one", long, short)
	}
}

// TestHostClockIsSlow: by 1 in 10,000, for a day without another answer.
func TestHostClockIsSlow(t *testing.T) {
	t.Parallel()
	start := time.Now()
	var c serverClock
	c.learn(start, start, start.Truncate(time.Second))
	if now := start.Add(24 * time.Hour); c.latest(now.Add(-24 * time.Hour / 10_000)).Before(now) {
		t.Error("the clock is behind SQS's")
	}
}

// TestShortReceivesAreFew: one in half an hour of an idle worker, with Dates or without.
func TestShortReceivesAreFew(t *testing.T) {
	t.Parallel()
	for _, dates := range []bool{true, false} {
		bubble(t, setup{}, func(x *fixture) {
			j := x.startWith(receiveFunc{x.c, func(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
				out, err := x.c.ReceiveMessage(ctx, in, o...)
				if err == nil && !dates {
					out.ResultMetadata = middleware.Metadata{}
				}
				return out, err
			}}, ok)
			time.Sleep(3*time.Hour - time.Second)
			if n := x.calls(opReceive) - 720; n < 3 || n > 6 {
				t.Errorf("dates %t: %d receives more than long polls in 3 h, want at most one each 30 min", dates, n)
			}
			j.stopClean()
		})
	}
}

// TestClockOfSQSIsSet: it jumps. The next short call brings a good bound again, and no message is proven from later than
// its arrival meanwhile.
func TestClockOfSQSIsSet(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 3 * time.Second, -3 * time.Second} {
		now := time.Now()
		var c serverClock
		c.learn(now, now, now.Truncate(time.Second))
		date := now.Add(jump).Truncate(time.Second)
		if got := c.handedOut(now.Add(-20*time.Second), now, date, 30*time.Second); got.After(now) && jump < 0 {
			t.Errorf("jump of %s: handed out in the future", jump)
		}
		c.learn(now, now, date)
		out := now.Add(-10 * time.Second)
		got := c.handedOut(now.Add(-20*time.Second), now, out.Add(jump).Truncate(time.Second), 30*time.Second)
		if early := out.Sub(got); early < 0 || early > 4*time.Second {
			t.Errorf("jump of %s: handed out %s earlier than it was", jump, early)
		}
	}
}

// TestHostClockIsSet: a suspend shows on the wall clock only. The time of the suspend counts against the message. After a
// clock was set back the monotonic clock counts.
func TestHostClockIsSet(t *testing.T) {
	t.Parallel()
	start := time.Now()
	for moved, want := range map[time.Duration]time.Duration{0: 0, time.Hour: time.Hour, -time.Hour: 0} {
		var c serverClock
		c.learn(start, start, start.Truncate(time.Second))
		arrival := stepped(start.Add(10*time.Second), moved)
		date := start.Add(9 * time.Second).Truncate(time.Second)
		c.learn(start, arrival, date)
		age := arrival.Sub(c.handedOut(start, arrival, date, 30*time.Second))
		if age < want+time.Second || age > want+15*time.Second {
			t.Errorf("moved by %s: the answer counts as %s old", moved, age)
		}
	}
}

// TestLateAnswer: the answer to a receive arrives when the visibility timeout is almost over, or over. Another worker must
// not get a message while it is run here.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{10 * time.Second, 16 * time.Second, 27 * time.Second, 31 * time.Second, time.Minute, time.Hour} {
		for _, fifo := range []bool{false, true} {
			for _, idle := range []time.Duration{0, 5 * time.Second, time.Minute} {
				runParallel(t, fmt.Sprintf("%s fifo=%t idle=%s", late, fifo, idle), setup{fifo: fifo}, func(x *fixture) {
					var r runs
					h := r.take(20 * time.Second)
					// It is also a process that was stopped in a long poll: the answer waits in the socket.
					held := false
					a := x.startWith(receiveFunc{x.c, func(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
						out, err := x.c.ReceiveMessage(ctx, in, o...)
						if err == nil && len(out.Messages) > 0 && !held {
							held = true
							time.Sleep(late)
						}
						return out, err
					}}, h, func(o *Options) { o.Concurrency = 3 })
					time.Sleep(idle)
					x.send("g:1", "h:2", "i:3")
					time.Sleep(time.Second)
					b := x.start(h)
					time.Sleep(late + 3*time.Minute)
					a.stopClean()
					b.stopClean()
					x.wantEmpty()
					if len(r.twice) > 0 {
						x.Errorf("run in two workers at once: %v", r.twice)
					}
					if n := len(r.list()); n != 3 || a.Stats().Done+b.Stats().Done != 3 {
						x.Errorf("%d runs of 3 messages; %+v", n, a.Stats())
					}
					if got := a.Stats().LeasesLost; late < 20*time.Second && got != 0 || late > 30*time.Second && got == 0 {
						x.Errorf("%d leases lost", got)
					}
				})
			}
		}
	}
}

// TestLateAnswerIsExtendedFirst: the handler starts after the extension's answer, and without it never. Meanwhile it takes
// no slot.
func TestLateAnswerIsExtendedFirst(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		rules := []fault.Rule{
			{Op: opReceive, Nth: 1, Do: fault.Delay, After: true, Delay: 20 * time.Second},
			{Op: opChange, Nth: 1, Do: fault.Delay, Delay: 3 * time.Second},
		}
		if refused {
			rules[1] = fault.Rule{Op: opChange, Prob: 1, Do: fault.Error}
		}
		bubble(t, setup{faults: rules}, func(x *fixture) {
			x.send("late")
			started := make(chan time.Duration, 10)
			began := time.Now()
			j := x.start(func(_ context.Context, m *sqsonce.Message) error {
				if m.Body == "late" {
					started <- time.Since(began)
				}
				return nil
			}, func(o *Options) { o.Concurrency, o.MaxReceivers = 2, 2 })
			time.Sleep(20*time.Second + time.Millisecond)
			x.send("other")
			time.Sleep(time.Second)
			if got := j.Stats().Done; got != 1 {
				t.Errorf("%d messages done while the late one waits, want the other", got)
			}
			time.Sleep(10 * time.Second)
			switch {
			case refused && (j.Stats().LeasesLost != 1 || len(started) != 1 || <-started < 30*time.Second):
				t.Errorf("%d leases lost; want one, and the next delivery started", j.Stats().LeasesLost)
			case !refused && (len(started) != 1 || <-started != 23*time.Second):
				t.Error("not started at the answer of the extension")
			}
			j.stopClean()
		})
	}
}

// TestDatesCostNothing: an idle queue with a message now and then, of a server whose Dates are whole seconds and whose clock
// is an hour off. No message needs an extension before its start.
func TestDatesCostNothing(t *testing.T) {
	t.Parallel()
	for _, visibility := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second} {
		for _, skew := range []time.Duration{-time.Hour, 0, time.Hour} {
			must.RunParallel(t, fmt.Sprintf("V=%s skew=%s", visibility, skew), func(t *testing.T) {
				srv := memsqs.New(func(o *memsqs.Options) {
					o.Now = func() time.Time { return time.Now().Add(skew) }
					o.Faults = fault.Plan{Rules: []fault.Rule{{Prob: 1, Do: fault.Delay, Delay: 5 * time.Millisecond}}}
				})
				defer srv.Close()
				x := newFixture(t, srv, setup{})
				var r runs
				j := x.start(r.take(20*time.Millisecond), func(o *Options) { o.VisibilityTimeout = visibility })
				const messages = 100
				for i := range messages {
					time.Sleep(time.Duration(rand.Int64N(int64(30 * time.Second))))
					x.send(fmt.Sprint(i))
				}
				j.stopEmptyAfter(time.Minute)
				most := int64(0)
				if visibility == 5*time.Second {
					most = messages / 4 // half of it is little more than the Dates' resolution
				}
				if s := j.Stats(); len(r.list()) != messages || s.LeasesLost != 0 || s.Extensions > most {
					t.Errorf("%d runs of %d messages; %+v", len(r.list()), messages, s)
				}
			})
		}
	}
}
