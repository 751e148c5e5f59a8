package fifo_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// outage makes every send fail in the given way until d has passed.
func (x *fixture) outage(d time.Duration, rule fault.Rule) {
	rule.Op, rule.Prob = "SendMessageBatch", 1
	x.srv.Set(fault.Plan{Rules: []fault.Rule{rule}})
	go func() { // ends within the bubble
		time.Sleep(d)
		x.srv.Set(fault.Plan{})
	}()
}

// The server deduplicates as SQS does: if it does not recognise a copy, the event is in the queue twice.
func TestWindow(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		outage time.Duration
		fault  fault.Rule
		want   error // nil: sent
		copies int
	}{
		{"reply lost, back at once", time.Second, fault.Rule{Do: fault.LoseReply}, nil, 1},
		{"reply lost, back before the last attempt", 283 * time.Second, fault.Rule{Do: fault.LoseReply}, nil, 1},
		{"reply lost, back after the last attempt", 286 * time.Second, fault.Rule{Do: fault.LoseReply}, fifo.ErrUnknownOutcome, 1},
		{"never arrived, back after the last attempt", 286 * time.Second, fault.Rule{Do: fault.Reset}, fifo.ErrUnknownOutcome, 0},
		{"no result, back after the last attempt", 286 * time.Second, fault.Rule{Do: fault.DropEntries}, fifo.ErrUnknownOutcome, 1},
		{"refused for now, back before the last attempt", 283 * time.Second, fault.Rule{Do: fault.FailEntries}, nil, 1},
		{"refused for now for an hour", time.Hour, fault.Rule{Do: fault.FailEntries}, nil, 1},
		{"throttled for an hour", time.Hour, fault.Rule{Do: fault.Error, Code: "RequestThrottled"}, nil, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, orders, func(x *fixture) {
				x.outage(tt.outage, tt.fault)
				p := x.publisher()
				start := time.Now()
				_, err := p.Publish(x.Context(), event("g", 1))
				if !errors.Is(err, tt.want) {
					x.Errorf("Publish: %v, want %v", err, tt.want)
				}
				most := tt.outage + 10*time.Second
				if tt.want != nil {
					most = 285 * time.Second
				}
				if took := time.Since(start); took > most || tt.want != nil && took < 280*time.Second {
					x.Errorf("returned after %v, want at most %v", took, most)
				}
				time.Sleep(time.Minute) // no further attempt is made
				if n := len(x.queued("g")); n != tt.copies {
					x.Errorf("%d copies in the queue, want %d", n, tt.copies)
				}
			})
		})
	}
}

// An event with an unknown outcome halts the events behind it, and not those that come later.
func TestWindowHaltsTheGroup(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		x.outage(286*time.Second, fault.Rule{Do: fault.Reset})
		p := x.publisher()
		var pending []*fifo.Pending
		for n := range 3 {
			pd, err := p.Enqueue(x.Context(), event("g", n))
			if err != nil {
				x.Fatal(err)
			}
			pending = append(pending, pd)
		}
		if _, err := pending[0].Wait(x.Context()); !errors.Is(err, fifo.ErrUnknownOutcome) {
			x.Errorf("the head: %v, want ErrUnknownOutcome", err)
		}
		for _, pd := range pending[1:] {
			_, err := pd.Wait(x.Context())
			if !errors.Is(err, fifo.ErrGroupHalted) || !errors.Is(err, fifo.ErrNotSent) || errors.Is(err, fifo.ErrUnknownOutcome) {
				x.Errorf("behind the head: %v, want ErrGroupHalted and ErrNotSent", err)
			}
		}
		time.Sleep(2 * time.Second)
		if _, err := p.Publish(x.Context(), event("g", 4)); err != nil {
			x.Errorf("the group does not accept new events: %v", err)
		}
		if got := x.queued("g"); len(got) != 1 {
			x.Errorf("queue has %v, want event 4 only", got)
		}
	})
}

// A process that was frozen notices right before an attempt that the window is over, by the clock that went on.
func TestWindowOfAFrozenProcess(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		mono, wall time.Duration // what passes in the freeze
		want       error
	}{
		{"wall clock goes on, 284 s", 0, 284 * time.Second, nil},
		{"wall clock goes on, 286 s", 0, 286 * time.Second, fifo.ErrUnknownOutcome},
		{"monotonic clock goes on, 284 s", 284 * time.Second, 0, nil},
		{"monotonic clock goes on, 286 s", 286 * time.Second, 0, fifo.ErrUnknownOutcome},
		{"wall clock set back", 0, -time.Hour, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, orders, func(x *fixture) {
				p := x.publisher()
				begin := time.Now()
				reads := 0
				p.SetClocks(func() (time.Duration, time.Time) {
					reads++
					// The reads: the start of the first attempt, its failure, and the start of the second one after the freeze.
					if reads <= 2 {
						return 0, begin
					}
					return tt.mono, begin.Add(tt.wall)
				})
				if _, err := p.Publish(x.Context(), event("g", 1)); !errors.Is(err, tt.want) {
					x.Errorf("Publish: %v, want %v", err, tt.want)
				}
				want := 2
				if tt.want != nil {
					want = 1
				}
				if n := x.sent.attemptsOf("g/v1"); n != want {
					x.Errorf("%d attempts, want %d", n, want)
				}
			}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.LoseReply})
		})
	}
}

// A request that hangs ends after its timeout, and the event is sent again.
func TestAttemptTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		start := time.Now()
		r, err := x.publisher(func(o *fifo.Options) { fifo.SetAttemptTimeout(o, 2*time.Second) }).Publish(x.Context(), event("g", 1))
		if err != nil || r.Attempts != 2 {
			x.Errorf("Publish: %+v, %v, want success by the second attempt", r, err)
		}
		if took := time.Since(start); took < 2*time.Second || took > 3*time.Second {
			x.Errorf("took %v, want the first attempt's 2s and a backoff", took)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(x.queued("g")); n != 1 {
			x.Errorf("%d copies, want 1: the first attempt takes effect later", n)
		}
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.Delay, Delay: 30 * time.Second})
}
