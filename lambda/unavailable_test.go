package lambda

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
)

var errRefused = errors.New("connection refused")

// TestUnavailableDelays: while something is away that every message needs, the delay grows fourfold with each receive, up to
// an hour, so that five receives last 81 min.
func TestUnavailableDelays(t *testing.T) {
	withQueue(t, false, nil, func(x *fixture) {
		f := x.wrap(func(_ context.Context, m *sqsonce.Message) error {
			if m.Body == "other" {
				return nil
			}
			return sqsonce.Unavailable(errRefused)
		})
		x.send("1")
		for i, want := range []time.Duration{time.Minute, 4 * time.Minute, 16 * time.Minute, time.Hour, time.Hour} {
			x.send("other") // or the invocation returns an error
			time.Sleep(time.Hour)
			x.failed(f, 30*time.Second, x.receive())
			if got := x.visibleIn()["1"]; got != want {
				t.Errorf("receive %d: visible in %v, want %v\n%s", i+1, got, want, &x.log)
			}
		}
	})
}

// A receive that was none of an outage makes no delay longer: killed processes, other hosts and failures have them too.
func TestUnavailableDelayExplainsItsReceives(t *testing.T) {
	for _, tt := range []struct {
		receives int
		since    time.Duration // the first one
		want     time.Duration
	}{
		{4, 0, time.Minute}, {4, 50 * time.Second, time.Minute}, {4, time.Minute, 4 * time.Minute}, {9, 4 * time.Minute, 4 * time.Minute},
		{3, 59 * time.Second, 4 * time.Minute}, {3, 5 * time.Minute, 16 * time.Minute}, {4, 5 * time.Minute, 16 * time.Minute},
		{4, 21 * time.Minute, time.Hour}, {9, 30 * 24 * time.Hour, time.Hour}, {1, time.Hour, time.Minute}, {2, time.Hour, 4 * time.Minute},
		{1, -time.Minute, time.Minute}, {2, -time.Minute, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			if got := delayUnavailable(tt.receives, time.Now().Add(-tt.since)); got != tt.want {
				t.Errorf("%d receives in %s: %s, want %s", tt.receives, tt.since, got, tt.want)
			}
		})
	}
	if got := delayUnavailable(3, time.Time{}); got != 16*time.Minute {
		t.Errorf("the first receive is not known: %s, want that of the receive count", got)
	}
}

// TestNothingHandledIsAnError: an invocation in which every message met something that is away returns an error, so that the
// function's Errors metric shows it and the mapping slows down. Any other result is a response.
func TestNothingHandledIsAnError(t *testing.T) {
	unavailable, misconfigured := sqsonce.Unavailable(errRefused), error(sqsonce.ErrMisconfigured)
	for name, c := range map[string]struct {
		errs map[string]error
		want bool
	}{
		"all unavailable":          {map[string]error{"1": unavailable, "2": unavailable}, true},
		"all misconfigured":        {map[string]error{"1": misconfigured, "2": misconfigured}, true},
		"one of each":              {map[string]error{"1": unavailable, "2": misconfigured}, true},
		"one unavailable, one nil": {map[string]error{"1": unavailable, "2": nil}, false},
		"one unavailable, one bad": {map[string]error{"1": unavailable, "2": errTest}, false},
		"none":                     {map[string]error{"1": errTest, "2": errTest}, false},
	} {
		runWithQueue(t, name, false, nil, func(x *fixture) {
			x.send("1", "2")
			f := x.wrap(func(_ context.Context, m *sqsonce.Message) error { return c.errs[m.Body] })
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			r, err := f(ctx, x.receive())
			if (err != nil) != c.want || err != nil && !errors.Is(err, sqsonce.ErrUnavailable) {
				x.Errorf("got %v, %v, want an error: %t", r, err, c.want)
			}
		})
	}
}
