package killtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// run is one run of a handler, as the parent saw it.
type run struct {
	entry
	start, end time.Time // end: of the run, by its word or its child's death; zero: it goes on
	effect     bool      // it said that it ended
}

// ledger has the runs of all handlers.
type ledger struct {
	crew *crew

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
	kill, before, _ := l.crew.chance(name, at)
	if kill && before {
		l.crew.kill(name, at)
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
		l.crew.kill(name, at)
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
			r.end, _ = l.crew.died(r.Child)
		}
		h[r.Key] = append(h[r.Key], r)
	}
	for _, runs := range h {
		slices.SortFunc(runs, func(a, b run) int { return a.start.Compare(b.start) })
	}
	return h
}

// judge says what is wrong with the history of one key's record, which was completed at the given time.
func judge(runs []run, completed time.Time) (wrong []string) {
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if completed.IsZero() {
		bad("was never completed")
	}
	if !slices.ContainsFunc(runs, func(r run) bool { return r.effect }) {
		bad("its effect is lost")
	}
	for i, r := range runs {
		// A process that is paused between its last look at the clock and its start is not to be stopped; it shows by its
		// lease, which is over.
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
