package host

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestDefaultBackoff(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		try   int
		least time.Duration
	}{
		{math.MinInt, 10 * time.Second},
		{0, 10 * time.Second},
		{1, 10 * time.Second},
		{2, time.Minute},
		{3, 5 * time.Minute},
		{4, 5 * time.Minute},
		{math.MaxInt, 5 * time.Minute},
	} {
		var longest time.Duration
		for range 1000 {
			d := DefaultBackoff(tt.try)
			if d < tt.least || d > tt.least*5/4 {
				t.Fatalf("DefaultBackoff(%d): got %v, want %v and at most a quarter more", tt.try, d, tt.least)
			}
			longest = max(longest, d)
		}
		// The chance that a thousand draws all stay below an eighth is 2^-1000.
		if longest < tt.least*9/8 {
			t.Errorf("DefaultBackoff(%d): the longest of 1000 is %v, want one more than an eighth above %v", tt.try, longest, tt.least)
		}
	}
}

// A receive that was none of an outage makes no delay longer: killed processes, other hosts and failures have them too.
func TestUnavailableDelay(t *testing.T) {
	t.Parallel()
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
			if got := UnavailableDelay(tt.receives, time.Now().Add(-tt.since)); got != tt.want {
				t.Errorf("%d receives in %s: %s, want %s", tt.receives, tt.since, got, tt.want)
			}
		})
	}
	if got := UnavailableDelay(3, time.Time{}); got != 16*time.Minute {
		t.Errorf("the first receive is not known: %s, want that of the receive count", got)
	}
}

func TestDouble(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		d    time.Duration
		try  int
		want time.Duration
	}{
		{30 * time.Second, 0, 30 * time.Second},
		{30 * time.Second, 1, 30 * time.Second},
		{30 * time.Second, 3, 2 * time.Minute},
		{30 * time.Second, 40, time.Hour},
		{2 * time.Hour, 1, time.Hour},
		{0, 70, 0},
		{-3, 62, 0},
		{math.MaxInt64, math.MaxInt, time.Hour},
	} {
		if got := Double(tt.d, time.Hour, tt.try); got != tt.want {
			t.Errorf("Double(%v, 1h, %d): got %v, want %v", tt.d, tt.try, got, tt.want)
		}
	}
}

func TestSeconds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		d    time.Duration
		want int32
	}{
		{-time.Second, 0},
		{0, 0},
		{1, 1},
		{time.Second, 1},
		{time.Second + 1, 2},
		{12 * time.Hour, 43200},
		{math.MaxInt64, 43200},
	} {
		if got := Seconds(tt.d, 12*time.Hour); got != tt.want {
			t.Errorf("Seconds(%v): got %d, want %d", tt.d, got, tt.want)
		}
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for _, c := range []struct {
			wait, want time.Duration
			ok         bool
		}{{0, 0, true}, {-time.Second, 0, true}, {2 * time.Second, 2 * time.Second, true}, {time.Minute, 3 * time.Second, false}, {0, 0, false}} {
			start := time.Now()
			if ok := Wait(ctx, c.wait); ok != c.ok || time.Since(start) != c.want {
				t.Errorf("Wait(%v): got %t after %v, want %t after %v", c.wait, ok, time.Since(start), c.ok, c.want)
			}
		}
	})
}
