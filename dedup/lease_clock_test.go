package dedup

import (
	"testing"
	"time"
	"unsafe"
)

// monotonic moves the monotonic reading of a time and not its wall clock, as a suspended machine or a clock that was set
// back does. The time package has no way to make such a time, so monotonic writes to time.Time and checks the result.
func monotonic(t *testing.T, at time.Time, by time.Duration) time.Time {
	t.Helper()
	moved := at
	(*[2]int64)(unsafe.Pointer(&moved))[1] += int64(by)
	if got := moved.Sub(at); got != by || !moved.Round(0).Equal(at.Round(0)) {
		t.Fatalf("monotonic moved by %s and wall by %s, want %s and 0: time.Time has another layout", got, moved.Round(0).Sub(at.Round(0)), by)
	}
	return moved
}

func TestRemainingTrustsTheFasterClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	until := now.Add(30 * time.Second)
	for _, tt := range []struct {
		name        string
		until, now  time.Time
		want, after time.Duration // left, and left 10 s later after anchor
	}{
		{"both agree", until, now.Add(20 * time.Second), 10 * time.Second, 0},
		{"suspended for 25 s: the monotonic clock stopped", until, monotonic(t, now.Add(25*time.Second), -25*time.Second), 5 * time.Second, -5 * time.Second},
		{"set back by 25 s: the wall clock stopped", until, monotonic(t, now, 25*time.Second), 5 * time.Second, -5 * time.Second},
		{"no monotonic reading", until.Round(0), now.Add(20 * time.Second), 10 * time.Second, 0},
	} {
		if got := remaining(tt.until, tt.now); got != tt.want {
			t.Errorf("%s: %s left, want %s", tt.name, got, tt.want)
		}
		// Anchored, then 10 s pass while the wall clock is set back by 10 s.
		anchored := anchor(tt.until, tt.now)
		if got := remaining(anchored, monotonic(t, tt.now, 10*time.Second)); got != tt.after {
			t.Errorf("%s, then 10 s on the monotonic clock only: %s left, want %s", tt.name, got, tt.after)
		}
	}
}
