// Package injector applies a plan of faults to the calls of a service, and records them.
package injector

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Injector applies a plan to the calls of a service and records them. It is safe for concurrent use.
type Injector struct {
	mu      sync.Mutex
	rules   []fault.Rule
	rng     *rand.Rand
	seen    []int          // by rule: calls of its Op
	applied []int          // by rule: calls that it applied to
	calls   []repeatedCall // at most mostRecorded
}

// mostRecorded bounds the memory of a record, to some 60 MB.
const mostRecorded = 1 << 20

// repeatedCall is n equal calls in a row. Without it the record of a million calls would need much memory.
type repeatedCall struct {
	fault.Call
	n int
}

// New returns an injector that applies p.
func New(p fault.Plan) *Injector {
	i := &Injector{}
	i.Set(p)
	return i
}

// Set replaces the plan, and counts calls from 0 again. It does not change the recorded calls. It panics for a rule of
// HalfApplied with another Op than TransactWriteItems, or without Delay and Delays. Such a rule would not have an effect, and the
// test would not prove anything.
func (i *Injector) Set(p fault.Plan) {
	for n := range p.Rules {
		if why := invalid(&p.Rules[n]); why != "" {
			panic(fmt.Sprintf("fault.Plan: Rules[%d] is HalfApplied: %s", n, why))
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.rules = slices.Clone(p.Rules)
	i.rng = rand.New(rand.NewPCG(p.Seed, 0x5173706c))
	i.seen = make([]int, len(i.rules))
	i.applied = make([]int, len(i.rules))
}

// invalid says what makes a rule of HalfApplied useless, "" for nothing.
func invalid(r *fault.Rule) string {
	switch {
	case r.Do != fault.HalfApplied:
		return ""
	case r.Op != "TransactWriteItems":
		return "Op must be TransactWriteItems"
	case r.Delay <= 0 && len(r.Delays) == 0:
		return "Delay and Delays are missing"
	}
	return ""
}

// Next returns the rule for the next call of op, or nil. All rules of op count the call, not only the one that applies.
func (i *Injector) Next(op string) *fault.Rule {
	i.mu.Lock()
	defer i.mu.Unlock()
	var rule *fault.Rule
	for n := range i.rules {
		r := &i.rules[n]
		if r.Op != "" && r.Op != op {
			continue
		}
		i.seen[n]++
		if rule == nil && i.matchesLocked(n) {
			i.applied[n]++
			rule = r
		}
	}
	return rule
}

func (i *Injector) matchesLocked(n int) bool {
	r := &i.rules[n]
	if r.Nth > 0 {
		return i.seen[n] >= r.Nth && i.applied[n] < max(r.Times, 1)
	}
	if r.Times > 0 && i.applied[n] >= r.Times {
		return false
	}
	return r.Prob == 0 || i.rng.Float64() < r.Prob
}

// Hits reports whether a rule applies to position i, of an entry in a batch or of a received message.
func Hits(r *fault.Rule, i int) bool {
	return len(r.Entries) == 0 || slices.Contains(r.Entries, i)
}

// Lateness returns for each of n actions how late a rule of HalfApplied applies it.
func (i *Injector) Lateness(r *fault.Rule, n int) []time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	late := make([]time.Duration, n)
	for at := range late {
		switch {
		case !Hits(r, at):
		case r.Delays == nil:
			late[at] = time.Duration(i.rng.Int64N(int64(r.Delay) + 1))
		case at < len(r.Delays):
			late[at] = r.Delays[at]
		}
	}
	return late
}

// Record adds a call to the recorded calls.
func (i *Injector) Record(c fault.Call) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if last := len(i.calls) - 1; last >= 0 && i.calls[last].Call == c {
		i.calls[last].n++
		return
	}
	if len(i.calls) == mostRecorded {
		i.calls = append(i.calls[:0], i.calls[mostRecorded/2:]...)
	}
	i.calls = append(i.calls, repeatedCall{c, 1})
}

// Calls returns the calls recorded so far, in the order in which they completed. After more than a million calls it has at least
// the last half million. For these limits equal calls in a row count as one.
func (i *Injector) Calls() []fault.Call {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []fault.Call
	for _, r := range i.calls {
		all = append(all, slices.Repeat([]fault.Call{r.Call}, r.n)...)
	}
	return all
}
