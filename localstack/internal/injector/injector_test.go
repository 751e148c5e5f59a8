package injector_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/injector"
)

// applied makes calls of op and returns the numbers, from 1, of those that a rule applies to.
func applied(i *injector.Injector, op string, calls int) []int {
	var out []int
	for n := 1; n <= calls; n++ {
		if i.Next(op) != nil {
			out = append(out, n)
		}
	}
	return out
}

func TestNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule fault.Rule
		want []int
	}{
		"second call":       {fault.Rule{Nth: 2}, []int{2}},
		"three from second": {fault.Rule{Nth: 2, Times: 3}, []int{2, 3, 4}},
		"always":            {fault.Rule{Prob: 1}, []int{1, 2, 3, 4, 5}},
		"the first two":     {fault.Rule{Prob: 1, Times: 2}, []int{1, 2}},
		"always by default": {fault.Rule{}, []int{1, 2, 3, 4, 5}},
		"never":             {fault.Rule{Prob: -1}, nil},
		"own operation":     {fault.Rule{Op: "A", Nth: 1}, []int{1}},
		"other operation":   {fault.Rule{Op: "B", Nth: 1}, nil},
	} {
		i := injector.New(fault.Plan{Rules: []fault.Rule{c.rule}})
		if d := cmp.Diff(c.want, applied(i, "A", 5)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestFirstRuleWinsAndAllCount(t *testing.T) {
	t.Parallel()
	i := injector.New(fault.Plan{Rules: []fault.Rule{{Op: "A", Nth: 1, Do: fault.Reset}, {Nth: 1, Do: fault.Delay}, {Nth: 3, Do: fault.Error}}})
	var got []fault.Kind
	for _, op := range []string{"A", "B", "A"} {
		if r := i.Next(op); r != nil {
			got = append(got, r.Do)
		}
	}
	if d := cmp.Diff([]fault.Kind{fault.Reset, fault.Delay, fault.Error}, got); d != "" {
		t.Errorf("rules that applied (-want +got):\n%s", d)
	}
}

func TestSeed(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) []int {
		return applied(injector.New(fault.Plan{Seed: seed, Rules: []fault.Rule{{Prob: 0.3}}}), "A", 200)
	}
	one, again, other := run(1), run(1), run(2)
	if !cmp.Equal(one, again) || cmp.Equal(one, other) {
		t.Errorf("runs with seeds 1, 1, 2 applied to %d, %d, %d calls, want the same calls for one seed only", len(one), len(again), len(other))
	}
	if len(one) < 30 || len(one) > 90 {
		t.Errorf("a probability of 0.3 applied to %d of 200 calls", len(one))
	}
}

func TestSetStartsAnewAndKeepsTheRecord(t *testing.T) {
	t.Parallel()
	plan := fault.Plan{Rules: []fault.Rule{{Nth: 2}}}
	i := injector.New(plan)
	i.Record(fault.Call{Op: "A"})
	if d := cmp.Diff([]int{2}, applied(i, "A", 3)); d != "" {
		t.Error(d)
	}
	i.Set(plan)
	if d := cmp.Diff([]int{2}, applied(i, "A", 3)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]fault.Call{{Op: "A"}}, i.Calls()); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}

func TestHits(t *testing.T) {
	t.Parallel()
	if r := (&fault.Rule{}); !injector.Hits(r, 0) || !injector.Hits(r, 9) {
		t.Error("a rule without entries does not hit all of them")
	}
	if r := (&fault.Rule{Entries: []int{1}}); injector.Hits(r, 0) || !injector.Hits(r, 1) {
		t.Error("a rule hits an entry that is not in Entries")
	}
}

// The injector stores equal calls in a row as one with a count. Calls must not show that.
func TestCallsKeepsOrderAndNumber(t *testing.T) {
	t.Parallel()
	i := injector.New(fault.Plan{})
	rule := &fault.Rule{}
	var want []fault.Call
	for _, c := range []fault.Call{{Op: "A"}, {Op: "A"}, {Op: "B", Entries: 2}, {Op: "B", Entries: 3}, {Op: "B", Entries: 3, Fault: rule}, {Op: "A"}, {Op: "A"}, {Op: "A"}} {
		i.Record(c)
		want = append(want, c)
		if d := cmp.Diff(want, i.Calls()); d != "" {
			t.Fatalf("calls (-want +got):\n%s", d)
		}
	}
}

// Ten million calls, no two alike in a row, take no more memory than the record's bound, and the last ones are there.
func TestRecordIsBounded(t *testing.T) {
	i := injector.New(fault.Plan{})
	const n = 10_000_000
	for c := range n {
		i.Record(fault.Call{Op: "A", Entries: c})
	}
	calls := i.Calls()
	if len(calls) < 1<<19 || len(calls) > 1<<20 || calls[len(calls)-1].Entries != n-1 || calls[0].Entries != n-len(calls) {
		t.Errorf("%d calls, from %d to %d", len(calls), calls[0].Entries, calls[len(calls)-1].Entries)
	}
	calls = nil
	runtime.GC()
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	if heap.HeapAlloc > 150<<20 {
		t.Errorf("%d MB are in use", heap.HeapAlloc>>20)
	}
	runtime.KeepAlive(i)
}

// TestHalfAppliedThatDoesNothing: a plan with a rule that can change nothing is no plan.
func TestHalfAppliedThatDoesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule fault.Rule
		want any
	}{
		{fault.Rule{Do: fault.HalfApplied, Delay: 1}, "fault.Plan: Rules[0] is HalfApplied: Op must be TransactWriteItems"},
		{fault.Rule{Op: "PutItem", Do: fault.HalfApplied, Delay: 1}, "fault.Plan: Rules[0] is HalfApplied: Op must be TransactWriteItems"},
		{fault.Rule{Op: "TransactWriteItems", Do: fault.HalfApplied}, "fault.Plan: Rules[0] is HalfApplied: Delay and Delays are missing"},
		{fault.Rule{Op: "TransactWriteItems", Do: fault.HalfApplied, Delay: 1}, nil},
	} {
		func() {
			defer func() {
				if got := recover(); got != c.want {
					t.Errorf("%+v: panic %v, want %v", c.rule, got, c.want)
				}
			}()
			injector.New(fault.Plan{Rules: []fault.Rule{c.rule}})
		}()
	}
}

// TestLateness: Entries choose who is late, Delays say how late, and a drawn time is within Delay.
func TestLateness(t *testing.T) {
	t.Parallel()
	i := injector.New(fault.Plan{})
	if d := cmp.Diff([]time.Duration{0, 2, 0, 0}, i.Lateness(&fault.Rule{Entries: []int{1, 2}, Delays: []time.Duration{1, 2}}, 4)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	drawn := map[time.Duration]bool{}
	for range 1000 {
		late := i.Lateness(&fault.Rule{Entries: []int{1}, Delay: 2}, 2)
		if late[0] != 0 {
			t.Fatalf("position 0 is late by %s", late[0])
		}
		drawn[late[1]] = true
	}
	if d := cmp.Diff(map[time.Duration]bool{0: true, 1: true, 2: true}, drawn); d != "" {
		t.Errorf("drawn (-want +got):\n%s", d)
	}
}
