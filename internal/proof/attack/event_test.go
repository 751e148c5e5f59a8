package attack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
)

// Two owners on stores that know nothing of each other have the lease of one event at the same time.
func TestOverlapIsSeen(t *testing.T) {
	t.Parallel()
	e := &event{name: "1"}
	target := Target{Store: func(*testing.T, string) dedup.Store { return memstore.New() }}
	var inside func()
	report := func(n note) {
		e.note(n)
		if again := inside; n.What == started && again != nil {
			inside = nil
			again()
		}
	}
	outer, inner := newHost(t, target, false, "", report), newHost(t, target, false, "", report)
	inside = func() { inner.deliver(2, "1") }
	outer.deliver(1, "1")
	if wrong := strings.Join(e.violations(), "; "); !strings.Contains(wrong, "before the end of run 0's lease") {
		t.Errorf("got %q, want the overlap", wrong)
	}
}

// Each rule is seen where it is broken, and what a stop or a kill does breaks none.
func TestViolations(t *testing.T) {
	t.Parallel()
	run := func(delivery, fence, at, until, end int64) []note {
		notes := []note{{What: started, Delivery: delivery, Fence: fence, At: at, Until: until}}
		if end > 0 {
			notes = append(notes, note{What: ended, Delivery: delivery, At: end})
		}
		return notes
	}
	done := func(delivery, at int64) []note { return []note{{What: succeeded, Delivery: delivery, At: at}} }
	renew := func(delivery, at, until int64) []note {
		return []note{{What: renewed, Delivery: delivery, At: at, Until: until}}
	}
	for _, tt := range []struct {
		name, want string
		locks      bool
		notes      [][]note
	}{
		{"one run", "", false, [][]note{run(1, 1, 10, 20, 15), done(1, 16)}},
		{"a copy", "", false, [][]note{run(1, 1, 10, 20, 15), done(2, 17), done(1, 16)}},
		{"no run", "without a run", false, [][]note{done(1, 16)}},
		{"killed", "", false, [][]note{run(1, 1, 10, 20, 0), run(2, 2, 21, 31, 25), done(2, 26)}},
		{"killed, and its lease taken", "before the end of run 0's lease", false, [][]note{run(1, 1, 10, 20, 0), run(2, 2, 19, 31, 25), done(2, 26)}},
		{"failed", "", false, [][]note{run(1, 1, 10, 20, 12), run(2, 2, 12, 22, 15), done(2, 16)}},
		{"notes in another order", "", false, [][]note{run(2, 2, 12, 22, 15), done(2, 16), run(1, 1, 10, 20, 12)}},
		{"stopped", "", false, [][]note{run(1, 1, 10, 20, 40), run(2, 2, 21, 31, 25), done(2, 26)}},
		{"stopped before its start", "", false, [][]note{run(2, 2, 21, 31, 25), done(2, 26), run(1, 1, 40, 20, 41)}},
		{"stopped, and succeeded", "run 0 succeeded although run 1", false, [][]note{run(1, 1, 10, 20, 40), run(2, 2, 21, 31, 25), done(1, 41), done(2, 26)}},
		{"renewed", "before the end of run 0's lease", false, [][]note{run(1, 1, 10, 20, 40), renew(1, 15, 25), run(2, 2, 21, 31, 26), done(2, 27)}},
		{"renewed by a slow answer", "", false, [][]note{run(1, 1, 10, 20, 40), run(2, 2, 25, 35, 26), done(2, 27), renew(1, 30, 24)}},
		{"renewed after it was taken over", "before the end of run 0's lease", false, [][]note{run(1, 1, 10, 20, 40), renew(1, 22, 25), run(2, 2, 21, 31, 26), done(2, 27)}},
		{"one fence", "has fence 1, run 0 before it 1", false, [][]note{run(1, 1, 10, 20, 12), run(2, 1, 13, 23, 15), done(2, 16)}},
		{"again", "started after the event was done", false, [][]note{run(1, 1, 10, 20, 12), done(1, 13), run(2, 2, 14, 24, 15)}},
		{"again after its process died", "started after the event was done", false, [][]note{run(1, 1, 10, 20, 12), {{What: completed, Delivery: 1, At: 13}}, run(2, 2, 14, 24, 15), done(2, 16)}},
		{"lost", "lost: no delivery of 1 runs", false, [][]note{run(1, 1, 10, 20, 12)}},
		{"locks", "", true, [][]note{run(1, 1, 10, 20, 0), run(2, 1, 11, 21, 15), done(2, 16)}},
		{"locks, again", "started after the event was done", true, [][]note{run(1, 1, 10, 20, 12), done(1, 13), run(2, 2, 14, 24, 15)}},
		{"not told", "a context that is not cancelled", false, [][]note{run(1, 1, 10, 20, 0), {{What: goesOn, Delivery: 1, At: 30, Until: 20}}, done(1, 16)}},
		{"crash", "crashed: ", false, [][]note{run(1, 1, 10, 20, 0), {{What: crashed, Delivery: 2, At: 30}}, done(1, 16)}},
	} {
		e := &event{name: "1", locks: tt.locks}
		for _, notes := range tt.notes {
			for _, n := range notes {
				e.note(n)
			}
		}
		if got := strings.Join(e.violations(), "; "); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err   error
		want  string
		wrong int
	}{
		{nil, succeeded, 0}, {errors.New("failed"), failed, 0}, {dedup.ErrCrashed, crashed, 1},
		{fmt.Errorf("no table: %w", sqsonce.ErrMisconfigured), misconfigured, 1},
	} {
		e := &event{name: "1"}
		h := &host{handler: func(context.Context, *sqsonce.Message) error { return tt.err }, report: e.note}
		if h.deliver(1, "1"); outcome(tt.err) != tt.want || len(e.wrong) != tt.wrong || e.isDone() != (tt.err == nil) {
			t.Errorf("%v: got %s, %q, done %t", tt.err, outcome(tt.err), e.wrong, e.isDone())
		}
	}
}
