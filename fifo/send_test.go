package fifo_test

import (
	"errors"
	"testing"
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
