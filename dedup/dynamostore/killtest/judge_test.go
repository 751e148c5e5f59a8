package killtest_test

import (
	"strings"
	"testing"
	"time"
)

// Each wrong history is seen.
func TestJudge(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.UnixMilli(1_000_000 + int64(ms)) }
	ran := func(fence int64, start, end, until int, effect bool) run {
		return run{entry: entry{Fence: fence, Until: at(until)}, start: at(start), end: at(end), effect: effect}
	}
	for _, tt := range []struct {
		name      string
		runs      []run
		completed time.Time
		want      string
	}{
		{"one run", []run{ran(1, 0, 10, 1000, true)}, at(20), ""},
		{"killed, and again", []run{ran(1, 0, 10, 1000, false), ran(2, 3000, 3010, 4000, true)}, at(3020), ""},
		{"killed after the effect", []run{ran(1, 0, 10, 1000, true), ran(2, 3000, 3010, 4000, true)}, at(3020), ""},
		{"paused over its lease", []run{ran(1, 0, 9000, 1000, true), ran(2, 3000, 3010, 4000, true)}, at(3020), ""},
		{"not completed", []run{ran(1, 0, 10, 1000, true)}, time.Time{}, "never completed"},
		{"effect lost", []run{ran(1, 0, 10, 1000, false)}, at(20), "effect is lost"},
		{"overlap", []run{ran(1, 0, 10, 1000, true), ran(2, 5, 15, 1005, true)}, at(20), "two ran at a time"},
		{"reopened", []run{ran(1, 0, 10, 1000, true), ran(2, 30, 40, 1030, true)}, at(20), "after it was completed"},
		{"fence", []run{ran(2, 0, 10, 1000, false), ran(2, 3000, 3010, 4000, true)}, at(3020), "fence 2 came after 2"},
	} {
		got := strings.Join(judge(tt.runs, tt.completed), "; ")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
