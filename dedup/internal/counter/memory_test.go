package counter

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A process that is alone knows its key's lag, one of several the lag that it had. Its memory is bounded.
func TestMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const second = 1_000_000
		var m Memory
		guess := func(want int64, what string) {
			t.Helper()
			if got := m.Guess("k"); got != want {
				t.Errorf("%s: got a lag of %d, want %d", what, got, want)
			}
		}
		guess(-1, "a new key")
		m.Learn("k", time.Now(), 0, 3*second)
		time.Sleep(2 * time.Second)
		guess(second, "2 s after a lag of 3 s")
		m.Learn("k", time.Now(), 5*second, 6*second)
		time.Sleep(4 * time.Second)
		guess(5*second, "after others took tokens")
		m.Learn("k", time.Now(), 2*second, 3*second)
		time.Sleep(2 * time.Second)
		guess(second, "after nobody else took any")
		for i := range 3 * mostSeen {
			m.Learn(fmt.Sprint(i), time.Now(), 0, 1)
		}
		if len(m.seen) > mostSeen {
			t.Errorf("%d keys are remembered, want at most %d", len(m.seen), mostSeen)
		}
	})
}
