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
		count int
		most  time.Duration
	}{
		{math.MinInt, time.Second},
		{0, time.Second},
		{1, time.Second},
		{2, 2 * time.Second},
		{5, 16 * time.Second},
		{10, 512 * time.Second},
		{11, 15 * time.Minute},
		{64, 15 * time.Minute},
		{math.MaxInt, 15 * time.Minute},
	} {
		var longest time.Duration
		for range 1000 {
			d := DefaultBackoff(tt.count)
			if d <= 0 || d > tt.most {
				t.Fatalf("DefaultBackoff(%d): got %v, want above 0 and at most %v", tt.count, d, tt.most)
			}
			longest = max(longest, d)
		}
		// The chance that a thousand draws all stay below half is 2^-1000.
		if longest < tt.most/2 {
			t.Errorf("DefaultBackoff(%d): the longest of 1000 is %v, want one above half of %v", tt.count, longest, tt.most)
		}
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
