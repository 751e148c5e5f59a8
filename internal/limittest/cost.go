package limittest

import (
	"time"

	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/limit"
)

// costs expects the calls to make so many writes at most.
func (x *exam) costs(what string, most float64, calls func()) {
	before := x.writes(x.Counter)
	calls()
	if got := x.writes(x.Counter) - before; got > most {
		x.fatalf("%s: got %g writes, want at most %g", what, got, most)
	}
}

var costCases = []testCase{
	{name: "cost/a take and a place are a write each", on: counted, run: func(x *exam) {
		t := x.many(5)
		x.gets(t, 6, 0, "of a new key")
		takes := 10
		if x.RealTime { // each lasts for seven steps
			takes = 1
		}
		x.costs("takes of a process that is alone", float64(takes), func() {
			for range takes {
				time.Sleep(x.half(6))
				x.gets(t, 6, 0, "of a key that is known")
			}
		})
		x.costs("5 places", 5, func() {
			for range 5 {
				if _, err := x.Line(x.ctx, key, 1, x.Step); err != nil {
					x.fatalf("Line: got error %v, want a place", err)
				}
			}
		})
	}},
	{name: "cost/a busy key is about a write for each token", on: counted, run: func(x *exam) {
		const processes = 20
		counters := map[limit.Counter]bool{}
		for range processes {
			counters[x.process()] = true
		}
		writes := func() (n float64) {
			for c := range counters {
				n += x.writes(c)
			}
			return n
		}
		step := x.Step / 20
		// Each asks again when its token is used.
		next := map[limit.Counter]time.Time{}
		tokens, before := 0, 0.0
		for round := range 6 * processes {
			if round == processes { // from here on each process knows the key
				tokens, before = 0, writes()
			}
			for c := range counters {
				if time.Now().Before(next[c]) {
					continue
				}
				g, _ := x.take(c, counting.Take{Key: key, N: 1, Step: step, Burst: 1, Ahead: step, Reach: 40 * step})
				tokens += g.N
				next[c] = time.Now().Add(max(g.From, g.After))
			}
			time.Sleep(step)
		}
		if n := writes() - before; n > 1.1*float64(tokens) || tokens == 0 {
			x.fatalf("%g writes for %d tokens of %d processes, want at most 1.1 for each", n, tokens, processes)
		}
	}},
	{name: "cost/a fleet at ten a second", on: counted, run: func(x *exam) { x.fleetCosts(10, 0.6) }},
	{name: "cost/a fleet at a hundred a second", on: counted, run: func(x *exam) { x.fleetCosts(100, 0.06) }},
	{name: "cost/slots", on: counted, run: func(x *exam) {
		x.acquire("a", x.lease(), "of a new slot")
		x.release("a", "of its slot")
		x.costs("acquire, renew, refuse and release", 4, func() {
			x.acquire("b", 20*x.lease(), "of a free slot")
			x.renewed("b", 20*x.lease(), nil, "of its slot")
			x.taken("c", "during b's lease")
			x.release("b", "of its slot")
		})
	}},
}
