package fifo

import (
	"testing"
	"time"
)

func TestSafeWindow(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{
		time.Second: 285 * time.Second, 5 * time.Second: 285 * time.Second, 30 * time.Second: 260 * time.Second,
	} {
		if got := safeWindow(timeout); got != want {
			t.Errorf("safeWindow(%v) = %v, want %v", timeout, got, want)
		}
	}
}

func TestInstantTakesTheClockThatSaysMore(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	start := instant{mono: time.Hour, wall: noon}
	tests := []struct {
		name       string
		mono, wall time.Duration
		want       time.Duration
	}{
		{"both", time.Minute, time.Minute, time.Minute},
		{"monotonic clock stopped (freeze, suspend)", 0, time.Minute, time.Minute},
		{"wall clock stopped", time.Minute, 0, time.Minute},
		{"wall clock set back", time.Minute, -time.Hour, time.Minute},
	}
	for _, tt := range tests {
		got := instant{mono: time.Hour + tt.mono, wall: noon.Add(tt.wall)}.since(start)
		if got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestReadClocks(t *testing.T) {
	t.Parallel()
	a := readClocks()
	b := readClocks()
	if b.mono < a.mono || a.wall != a.wall.Round(0) {
		t.Errorf("clocks %+v, then %+v: want a growing monotonic one and a wall clock without", a, b)
	}
}

func TestRetryDelayIsBounded(t *testing.T) {
	t.Parallel()
	for n, most := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 6: 3200 * time.Millisecond,
		7: 5 * time.Second, 1000: 5 * time.Second} {
		longest := time.Duration(0)
		for range 2000 {
			d := retryDelay(n)
			if d < 0 || d > most {
				t.Fatalf("retryDelay(%d) = %v, want 0 to %v", n, d, most)
			}
			longest = max(longest, d)
		}
		if longest < most*9/10 {
			t.Errorf("retryDelay(%d) was at most %v in 2000 draws, want up to %v", n, longest, most)
		}
	}
}
