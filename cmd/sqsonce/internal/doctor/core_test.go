package doctor

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// These tests are of the checks of queues, functions and alarms.
func queueSideChecks() []check { return slices.Concat(queueChecks(), functionChecks(), alarmChecks()) }

var queueSide = []string{"Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8", "L1", "L2", "L3", "L4", "A1"}

// defect is a deployment in which one check alone is not ok.
type defect struct {
	name    string
	id      string
	verdict Verdict
	text    string // that the finding has
	fifo    bool
	spoil   func(*account)
	also    []string       // IDs that are skipped or do not apply because of it
	words   string         // a part of the fix, where that is no command
	before  func(*account) // is done before the fix: what a person does, or the end of a lie
}

// TestDefects spoils a healthy deployment in one thing. One check finds it, no other is wrong, and its fix, pasted into a shell, makes
// all checks ok again.
func TestDefects(t *testing.T) {
	t.Parallel()
	seen := map[string]map[Verdict]bool{}
	for _, d := range slices.Concat(queueDefects, deadLetterDefects, functionDefects, alarmDefects) {
		if seen[d.id] == nil {
			seen[d.id] = map[Verdict]bool{}
		}
		seen[d.id][d.verdict] = true
		t.Run(d.id+"/"+d.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { d.run(t) })
		})
	}
	for _, id := range queueSide {
		if !seen[id][Warn] && !seen[id][Fail] {
			t.Errorf("no defect of %s", id)
		}
	}
}

func (d *defect) run(t *testing.T) {
	queue := "orders"
	if d.fifo {
		queue += ".fifo"
	}
	a := healthy(t, queue)
	d.spoil(a)
	found := a.examine(queueSideChecks()...)
	for id, f := range found {
		switch {
		case id == d.id:
		case f.Verdict == OK, f.Verdict == Skip && slices.Contains(d.also, id):
		default:
			t.Errorf("beside it: %s", f)
		}
	}
	f := found[d.id]
	if f.Verdict != d.verdict || !strings.Contains(f.Text, d.text) || f.Fix == "" {
		t.Fatalf("got %s, fix %q; want %s with %q", f, f.Fix, d.verdict, d.text)
	}
	if d.before != nil {
		d.before(a)
	}
	if d.words != "" {
		if !strings.Contains(f.Fix, d.words) {
			t.Errorf("fix %q has no %q", f.Fix, d.words)
		}
		return
	}
	paste(t, a.clients, f.Fix)
	for id, f := range a.examine(queueSideChecks()...) {
		if f.Verdict != OK {
			t.Errorf("after the fix of %s: %s, fix %q", d.id, id+" "+f.String(), f.Fix)
		}
	}
}

func TestHealthy(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"orders", "orders.fifo"} {
		found := healthy(t, queue).examine(queueSideChecks()...)
		for _, id := range queueSide {
			if f, applies := found[id]; f.Verdict != OK && (applies || id != "Q8" || queue != "orders") {
				t.Errorf("%s: %s, %v", queue, id, f)
			}
		}
	}
}

// String is how tests show a finding.
func (f Finding) String() string {
	return strings.TrimSpace(f.ID + " " + string(f.Verdict) + " " + f.Text)
}
