package limittest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/suite"
	"github.com/sqsonce/sqsonce/limit"
)

// exam is one run of a case. Its methods end the case at the first sentence of the contract that does not hold.
type exam struct {
	Harness
	limit.Counter // of the first process
	process       func() limit.Counter
	ctx           context.Context
	slowest, all  atomic.Int64 // call, and all calls: a counter can't know when its answer arrives
}

func (x *exam) fatalf(format string, args ...any) { suite.Failf(format, args...) }

const key = "limits#key"

// token is one that was granted.
type token struct {
	at   time.Time // its time
	from time.Time // when it can be used: not before the call was sent
}

// one asks for one token of a plan without a burst.
func (x *exam) one() counting.Take { return counting.Take{Key: key, N: 1, Step: x.Step, Burst: 1} }

// many asks for many tokens up to so many steps ahead. Half a step more keeps the clocks' difference from mattering.
func (x *exam) many(steps int) counting.Take {
	t := x.one()
	t.N, t.Ahead = 100, x.half(steps)
	return t
}

// half is steps and a half.
func (x *exam) half(steps int) time.Duration { return x.steps(steps) + x.Step/2 }

func (x *exam) steps(n int) time.Duration { return time.Duration(n) * x.Step }

// take makes the call, and returns the answer with its tokens.
func (x *exam) take(c limit.Counter, t counting.Take) (counting.Grant, []token) {
	g, tokens, err := x.try(c, t)
	if err != nil {
		x.fatalf("Take %+v: got error %v, want an answer", t, err)
	}
	return g, tokens
}

// try is take without an end of the case, for goroutines.
func (x *exam) try(c limit.Counter, t counting.Take) (g counting.Grant, tokens []token, err error) {
	sent := time.Now()
	g, err = c.Take(x.ctx, t)
	received := x.took(sent)
	for i := range g.N {
		at := received.Add(g.From + time.Duration(i)*g.Step)
		from := at
		if from.Before(sent) {
			from = sent
		}
		tokens = append(tokens, token{at, from})
	}
	return g, tokens, err
}

// took notes how long a call took, and returns its end.
func (x *exam) took(sent time.Time) time.Time {
	now := time.Now()
	d := int64(now.Sub(sent))
	for x.all.Add(d); ; {
		old := x.slowest.Load()
		if d <= old || x.slowest.CompareAndSwap(old, d) {
			return now
		}
	}
}

// grace is how far a time may be wrong.
func (x *exam) grace() time.Duration { return x.Grace + time.Duration(x.slowest.Load()) }

// gets expects n tokens, the first one after from.
func (x *exam) gets(t counting.Take, n int, from time.Duration, why string) []token {
	g, tokens := x.take(x.Counter, t)
	if g.N != n {
		x.fatalf("Take %s: got %+v, want %d tokens", why, g, n)
	}
	if g.Step < t.Step || g.Step > t.Step+time.Microsecond {
		x.fatalf("Take %s: got %+v, want tokens %s apart", why, g, t.Step)
	}
	x.near("the first token's time "+why, g.From, from)
	return tokens
}

// none expects no token, and to be told when to ask again.
func (x *exam) none(t counting.Take, after time.Duration, why string) counting.Grant {
	g, _ := x.take(x.Counter, t)
	if g.N != 0 || g.After <= 0 {
		x.fatalf("Take %s: got %+v, want no token, and when to ask again", why, g)
	}
	x.near("when to ask again "+why, g.After, after)
	return g
}

// line asks for places.
func (x *exam) line(n int, want time.Duration, why string) {
	sent := time.Now()
	first, err := x.Line(x.ctx, key, n, x.Step)
	x.took(sent)
	if err != nil {
		x.fatalf("Line %s: got error %v, want a place", why, err)
	}
	x.near("the first place "+why, first, want)
}

func (x *exam) near(what string, got, want time.Duration) {
	// Time passes in the calls before this one too.
	if grace := x.Grace + time.Duration(x.all.Load()); (got - want).Abs() > grace {
		x.fatalf("%s: got %s, want %s, give or take %s", what, got, want, grace)
	}
}

// apart expects each token's time a step after another one's.
func (x *exam) apart(tokens []token, step time.Duration) {
	slices.SortFunc(tokens, func(a, b token) int { return a.at.Compare(b.at) })
	for i := 1; i < len(tokens); i++ {
		if d := tokens[i].at.Sub(tokens[i-1].at); d < step-x.grace() {
			x.fatalf("tokens %d and %d of %d are %s apart, want %s: two have one time", i-1, i, len(tokens), d, step)
		}
	}
}

// bounded expects at most T/step + burst tokens in each time T, by when they can be used.
func (x *exam) bounded(tokens []token, step time.Duration, burst int) {
	slices.SortFunc(tokens, func(a, b token) int { return a.from.Compare(b.from) })
	for i := range tokens {
		for j := i; j < len(tokens); j++ {
			d := tokens[j].from.Sub(tokens[i].from)
			if most := int((d+x.grace())/step) + burst; j-i+1 > most {
				x.fatalf("%d tokens in %s, want at most %d with a step of %s and a burst of %d", j-i+1, d, most, step, burst)
			}
		}
	}
}

// fleet runs processes for a time. Each calls the function with its counter, and waits for as long as that says.
func (x *exam) fleet(processes int, d time.Duration, f func(n int, c limit.Counter) ([]token, time.Duration, error)) (all []token) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	end := time.Now().Add(d)
	for n := range processes {
		c := x.process()
		wg.Go(func() {
			for time.Now().Before(end) {
				tokens, wait, err := f(n, c)
				mu.Lock()
				all = append(all, tokens...)
				if err != nil {
					failed = err
				}
				mu.Unlock()
				time.Sleep(wait)
			}
		})
	}
	wg.Wait()
	if failed != nil {
		x.fatalf("a process of the fleet: got error %v, want none", failed)
	}
	return all
}
