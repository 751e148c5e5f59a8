package fifo_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// later returns an event with a delay, whose ID and body are the delay's text.
func later(d time.Duration) fifo.Event {
	return fifo.Event{ID: d.String(), Body: d.String(), Delay: d}
}

// dueIn returns when each message of the queue becomes visible, from a time, by its body. Of two messages it is the
// later one.
func (x *fixture) dueIn(from time.Time) map[string]time.Duration {
	due := map[string]time.Duration{}
	for _, m := range x.srv.Messages(x.url) {
		due[m.Body] = max(due[m.Body], m.VisibleAt.Sub(from))
	}
	return due
}

func (x *fixture) wantDue(from time.Time, want map[string]time.Duration) {
	x.Helper()
	if d := cmp.Diff(want, x.dueIn(from)); d != "" {
		x.Errorf("due (-want +got):\n%s", d)
	}
}

func TestDelay(t *testing.T) {
	bubble(t, standard, func(x *fixture) {
		begin := time.Now()
		must.Get(x.publisher().PublishAll(x.Context(), []fifo.Event{
			later(0), later(1), later(time.Second), later(90*time.Second + 1), later(15 * time.Minute),
		}))(x)
		x.wantDue(begin, map[string]time.Duration{
			"0s": 0, "1ns": time.Second, "1s": time.Second, "1m30.000000001s": 91 * time.Second, "15m0s": 15 * time.Minute,
		})
		if n := len(x.sizes()); n != 1 {
			x.Errorf("%d requests, want 1", n)
		}
	})
}

func TestDelayOutOfRange(t *testing.T) {
	t.Parallel()
	for queue, delays := range map[string][]time.Duration{
		standard: {-1, -time.Hour, 15*time.Minute + 1, 1<<63 - 1, -1 << 63},
		orders:   {-1, 1, time.Minute, time.Hour},
	} {
		runIn(t, queue, queue, func(x *fixture) {
			for _, d := range delays {
				e := later(d)
				e.Group = "g"
				_, err := x.publisher().Publish(x.Context(), e)
				bad, _ := errors.AsType[*sqsonce.OptionError](err)
				if !errors.Is(err, fifo.ErrNotSent) || bad == nil || bad.Field != "Event.Delay" {
					x.Errorf("delay %v: %v, want an error of Event.Delay", d, err)
				}
				if e.Check("orders") == nil {
					x.Errorf("delay %v: Check accepts it for an outbox", d)
				}
			}
			x.expect("requests", 0, len(x.sizes()))
		})
	}
}

// Outboxes keep no delay, and refuse an event that has one by its Check.
func TestCheckRefusesDelay(t *testing.T) {
	t.Parallel()
	e := later(time.Minute)
	e.Group = "g"
	err := e.Check("orders")
	if bad, _ := errors.AsType[*sqsonce.OptionError](err); bad == nil || bad.Field != "Event.Delay" {
		t.Errorf("Check: %v, want an error of Event.Delay", err)
	}
}

// A repeated attempt asks for what is left, so that the event is due when its caller said.
func TestDelayCountsFromTheCall(t *testing.T) {
	t.Parallel()
	throttled := fault.Rule{Op: "SendMessageBatch", Nth: 1, Times: 1000, Do: fault.Error, Code: "ThrottlingException"}
	runIn(t, "throttled", standard, func(x *fixture) {
		begin := time.Now()
		time.AfterFunc(20*time.Second, func() { x.srv.Set(fault.Plan{}) })
		must.Get(x.publisher().Publish(x.Context(), later(time.Minute)))(x)
		if took := time.Since(begin); took < 20*time.Second || took >= 59*time.Second {
			x.Fatalf("published after %v, want at least 20s and less than 59s", took)
		}
		due := x.dueIn(begin)["1m0s"]
		if due < time.Minute || due >= 61*time.Second {
			x.Errorf("due after %v, want a minute, and less than a second more", due)
		}
	}, throttled)
	// Both messages of an attempt whose answer was lost are due at the same time.
	runIn(t, "lost answer", standard, func(x *fixture) {
		begin := time.Now()
		must.Get(x.publisher().Publish(x.Context(), later(time.Minute)))(x)
		messages := x.srv.Messages(x.url)
		x.expect("messages", 2, len(messages))
		for _, m := range messages {
			if due := m.VisibleAt.Sub(begin); due < time.Minute || due >= 61*time.Second {
				x.Errorf("due after %v, want a minute, and less than a second more", due)
			}
		}
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.LoseReply})
	// An event that waits until others have their results was published when PublishAll was called.
	runIn(t, "full buffer", standard, func(x *fixture) {
		x.sent.onSend = func(context.Context) { time.Sleep(7 * time.Second) }
		p := x.publisher(func(o *fifo.Options) { o.MaxMessages = 1 })
		begin := time.Now()
		must.Get(p.PublishAll(x.Context(), []fifo.Event{later(time.Minute), later(time.Minute + 1), later(time.Minute + 2)}))(x)
		x.expect("requests", 3, len(x.sizes()))
		if due := x.dueIn(begin)["1m0.000000002s"]; due < time.Minute || due > 68*time.Second {
			x.Errorf("due after %v, want a minute and the time of its own request", due)
		}
	})
}

// A delay that is used up is still one: without it the delay of the queue would count.
func TestDelayOnADelayQueue(t *testing.T) {
	t.Parallel()
	inBubble(t, standard, func(x *fixture) {
		x.url = testaws.Queue(x, x.sqs, "slow", map[string]string{"DelaySeconds": "900"})
		p := x.publisher()
		begin := time.Now()
		must.Get(p.Publish(x.Context(), later(2*time.Second)))(x)
		sent := time.Since(begin)
		if sent < 3*time.Second {
			x.Fatalf("published after %v, want more than the delay", sent)
		}
		must.Get(p.Publish(x.Context(), later(0)))(x)
		x.wantDue(begin, map[string]time.Duration{"2s": sent + time.Second, "0s": time.Since(begin) + 900*time.Second})
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Times: 10, Do: fault.Error, Code: "ThrottlingException"})
}

// The clock that says more counts, as for the window of an event: a process that was frozen asks for what is left.
// Neither clock makes the delay longer than it was.
func TestDelayClocks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		mono, wall time.Duration // what passes between the call and the last attempt
		want       time.Duration
	}{
		{"none", 0, 0, 10 * time.Minute},
		{"frozen for 9 min", 0, 9 * time.Minute, time.Minute},
		{"frozen for 9 min and a part", 0, 9*time.Minute + 1, time.Minute},
		{"frozen for a day", 0, 24 * time.Hour, time.Second},
		{"wall clock set back by a day", time.Minute, -24 * time.Hour, 9 * time.Minute},
		{"wall clock at its end", 0, 1<<63 - 1, time.Second},
	} {
		runIn(t, tt.name, standard, func(x *fixture) {
			p := x.publisher()
			begin, frozen, sent := time.Now(), false, time.Time{}
			x.sent.onSend = func(context.Context) { frozen, sent = true, time.Now() }
			p.SetClocks(func() (time.Duration, time.Time) {
				if !frozen {
					return 0, begin
				}
				return tt.mono, begin.Add(tt.wall)
			})
			must.Get(p.Publish(x.Context(), later(10*time.Minute)))(x)
			if got := x.srv.Messages(x.url)[0].VisibleAt.Sub(sent); got != tt.want {
				x.Errorf("hidden for %v, want %v", got, tt.want)
			}
		}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.Error, Code: "ThrottlingException"})
	}
}
