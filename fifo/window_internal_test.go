package fifo

import (
	"testing"
	"time"
)

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
