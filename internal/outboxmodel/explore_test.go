package outboxmodel

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
)

// A step that no run makes is a step that the runs which hold say nothing about.
func TestAllKindsOfSteps(t *testing.T) {
	t.Parallel()
	var made uint64
	for _, r := range Runs {
		made |= r.Explore(5_000, false).Kinds
	}
	for k := range kinds {
		if made&(1<<k) == 0 {
			t.Errorf("no run makes the step %q", kinds[k].text)
		}
	}
}

// The set of hashes holds as many states as a set of the states themselves.
func TestHashesAreStates(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"D12", "S1"} {
		r := Runs[slices.IndexFunc(Runs, func(r Run) bool { return r.Name == name })]
		seen := map[string]bool{}
		todo := []State{{}}
		for len(todo) > 0 {
			s := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if key := sorted(s, r.Relays, r.groups()); !seen[key] {
				seen[key] = true
				r.next(s, func(_ Step, t State) { todo = append(todo, t) })
			}
		}
		if got := r.Explore(largest, false); got.States != len(seen) {
			t.Errorf("%s: %d hashes of %d states", name, got.States, len(seen))
		}
	}
}

// sorted returns s as text, the relays in an order that depends on nothing but what they know.
func sorted(s State, relays, groups int) string {
	var visits []string
	for r := range relays {
		visits = append(visits, fmt.Sprint(s.visits[r*groups:(r+1)*groups]))
	}
	slices.SortFunc(visits, cmp.Compare)
	s.visits = [maxVisits]Visit{}
	return fmt.Sprint(s, visits)
}

// A search that is cut off says so.
func TestLimit(t *testing.T) {
	t.Parallel()
	if got := Runs[0].Explore(1000, false); got.Complete || got.States != 1001 {
		t.Errorf("complete %t after %d states, want false after 1001", got.Complete, got.States)
	}
}
