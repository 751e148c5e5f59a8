package killtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// run is one run of a handler, as the parent observed it.
type run struct {
	entry
	start, end time.Time // end: the handler's report, or the kill of its child; zero: it still runs
	effect     bool      // the handler reported its end
}

// ledger has the runs of all handlers.
type ledger struct {
	supervisor *supervisor

	mu   sync.Mutex
	runs map[[2]string]*run // by key and owner
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var e entry
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name, at := r.Header.Get(childHeader), atStart
	if r.URL.Path != "/start" {
		at = atEnd
	}
	kill, before, _ := l.supervisor.chance(name, at)
	if kill && before {
		l.supervisor.kill(name, at)
		panic(http.ErrAbortHandler)
	}
	l.mu.Lock()
	if id := [2]string{e.Key, e.Owner}; at == atStart {
		l.runs[id] = &run{entry: e, start: time.Now()}
	} else if run := l.runs[id]; run != nil {
		run.end, run.effect = time.Now(), r.URL.Path == "/end"
	}
	l.mu.Unlock()
	if kill {
		l.supervisor.kill(name, at)
		panic(http.ErrAbortHandler)
	}
}

// history returns every key's runs, in the order of their starts, each with its end.
func (l *ledger) history() map[string][]run {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := map[string][]run{}
	for _, r := range l.runs {
		r := *r
		if r.end.IsZero() {
			r.end, _ = l.supervisor.died(r.Child)
		}
		h[r.Key] = append(h[r.Key], r)
	}
	for _, runs := range h {
		slices.SortFunc(runs, func(a, b run) int { return a.start.Compare(b.start) })
	}
	return h
}

// violations returns what is wrong in the history of one key's record, which was completed at the given time.
func violations(runs []run, completed time.Time) (wrong []string) {
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if completed.IsZero() {
		bad("was never completed")
	}
	if !slices.ContainsFunc(runs, func(r run) bool { return r.effect }) {
		bad("its effect is lost")
	}
	for i, r := range runs {
		// Nothing can stop a process that is paused between its last check of the clock and its start. Its lease is over by
		// then, and such a run does not count.
		if !completed.IsZero() && r.start.After(completed) && r.start.Before(r.Until) {
			bad("ran %s after it was completed", r.start.Sub(completed))
		}
		for _, before := range runs[:i] {
			if r.Fence <= before.Fence && r.start.Before(r.Until) {
				bad("fence %d came after %d", r.Fence, before.Fence)
			}
			if (before.end.IsZero() || r.start.Before(before.end)) && r.start.Before(before.Until) {
				bad("two ran at a time: from %s and %s, under a lease until %s",
					before.start.Format(time.StampMilli), r.start.Format(time.StampMilli), before.Until.Format(time.StampMilli))
			}
		}
	}
	return wrong
}

// Each wrong history is found.
func TestViolations(t *testing.T) {
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
		got := strings.Join(violations(tt.runs, tt.completed), "; ")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
