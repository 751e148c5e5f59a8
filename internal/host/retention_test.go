package host

import (
	"testing"
	"time"
)

func TestLongestReturn(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name   string
		fifo   bool
		queue  time.Duration
		hasDLQ bool
		dead   time.Duration
		want   time.Duration
	}{
		{"not known", false, 0, true, 14 * day, 0},
		{"no dead-letter queue", false, 4 * day, false, 0, 4*day + 12*time.Hour},
		{"no dead-letter queue, FIFO", true, 4 * day, false, 0, 4*day + 12*time.Hour},
		{"standard", false, 4 * day, true, 14 * day, 18*day + 12*time.Hour},
		{"standard, shorter dead-letter queue", false, 14 * day, true, 4 * day, 28*day + 12*time.Hour},
		{"FIFO", true, 4 * day, true, 14 * day, 22*day + 12*time.Hour},
		{"standard, dead-letter queue not known", false, 4 * day, true, 0, 8*day + 12*time.Hour},
		{"FIFO, dead-letter queue not known", true, 4 * day, true, 0, 8*day + 12*time.Hour},
	} {
		if got := LongestReturn(tt.fifo, tt.queue, tt.hasDLQ, tt.dead); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
