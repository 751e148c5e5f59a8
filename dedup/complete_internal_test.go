package dedup

import (
	"testing"
	"time"
)

func TestPause(t *testing.T) {
	t.Parallel()
	for try, most := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 7: 5 * time.Second, 100: 5 * time.Second} {
		for range 1000 {
			if d := pause(try); d < most/2 || d >= most {
				t.Fatalf("pause(%d) = %s, want %s to %s", try, d, most/2, most)
			}
		}
	}
}
