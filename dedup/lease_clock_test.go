package dedup

import (
	"testing"
	"time"
	"unsafe"
)

// monotonic moves a time's monotonic reading and leaves its wall clock: what a suspended machine or a clock that was set
// does to two readings. No public way makes such a time; the test checks that this one does.
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
		{"suspended for 25 s: the monotonic clock stood", until, monotonic(t, now.Add(25*time.Second), -25*time.Second), 5 * time.Second, -5 * time.Second},
		{"set back by 25 s: the wall clock stood", until, monotonic(t, now, 25*time.Second), 5 * time.Second, -5 * time.Second},
		{"no monotonic reading", until.Round(0), now.Add(20 * time.Second), 10 * time.Second, 0},
	} {
		if got := remaining(tt.until, tt.now); got != tt.want {
			t.Errorf("%s: %s left, want %s", tt.name, got, tt.want)
		}
		// From a server's date, then set back by 10 s while 10 s pass.
		anchored := anchor(tt.until, tt.now)
		if got := remaining(anchored, monotonic(t, tt.now, 10*time.Second)); got != tt.after {
			t.Errorf("%s, then 10 s on the monotonic clock alone: %s left, want %s", tt.name, got, tt.after)
		}
	}
}
