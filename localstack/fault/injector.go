package fault

import (
	"math/rand/v2"
	"slices"
	"sync"
)

// Injector applies a plan to a stream of calls and records them. It is safe for concurrent use.
type Injector struct {
	mu    sync.Mutex
	rules []Rule
	rng   *rand.Rand
	seen  []int // calls each rule's Op has had
	taken []int // calls each rule took
	calls []run
}

// run is one or more equal calls in a row: a million puts take the memory of one.
type run struct {
	Call
	n int
}

// NewInjector starts a plan.
func NewInjector(p Plan) *Injector {
	i := &Injector{}
	i.Set(p)
	return i
}

// Set replaces the plan; counting starts anew. The recorded calls stay.
func (i *Injector) Set(p Plan) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.rules = append([]Rule(nil), p.Rules...)
	i.rng = rand.New(rand.NewPCG(p.Seed, 0x5173706c))
	i.seen = make([]int, len(i.rules))
	i.taken = make([]int, len(i.rules))
}

// Next returns the rule that the next call of op takes, or nil. Every rule of op counts the call, also where an earlier
// rule took it.
func (i *Injector) Next(op string) *Rule {
	i.mu.Lock()
	defer i.mu.Unlock()
	var hit *Rule
	for n := range i.rules {
		r := &i.rules[n]
		if r.Op != "" && r.Op != op {
			continue
		}
		i.seen[n]++
		if hit == nil && i.matchesLocked(n) {
			i.taken[n]++
			hit = r
		}
	}
	return hit
}

func (i *Injector) matchesLocked(n int) bool {
	r := &i.rules[n]
	if r.Nth > 0 {
		return i.seen[n] >= r.Nth && i.taken[n] < max(r.Times, 1)
	}
	if r.Times > 0 && i.taken[n] >= r.Times {
		return false
	}
	return i.rng.Float64() < r.Prob
}

// Record keeps a call.
func (i *Injector) Record(c Call) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if last := len(i.calls) - 1; last >= 0 && i.calls[last].Call == c {
		i.calls[last].n++
		return
	}
	i.calls = append(i.calls, run{c, 1})
}

// Calls returns the calls recorded so far, in the order they were answered.
func (i *Injector) Calls() []Call {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []Call
	for _, r := range i.calls {
		all = append(all, slices.Repeat([]Call{r.Call}, r.n)...)
	}
	return all
}
