package hosttest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// limitPlan is a limiter in each process of a fleet. All of them have one name, key by key.
type limitPlan struct {
	counter counterKind
	policy  limit.CounterPolicy
	byGroup bool          // one key for each group, else one for all
	plans   [2]limit.Plan // of the programs of workers with even and odd numbers. The function is the first one
	shrinks time.Duration // from then on the plans are half as large
	held    int           // sqsworker.Options.MaxHeld
	faults  []window      // of the counter in memory
}

type counterKind string

const (
	ownCounters    counterKind = "of each process"
	memoryCounter  counterKind = "in memory, with faults of its own"
	recordsCounter counterKind = "in the table of the records, with the faults of the store"
)

// counterAway is a fault of a counter in memory. Its modes are refuses, hangs, loses, and these.
const (
	counterAway faultKind = "counter away"
	drags       mode      = "answers after up to 2 s"
	lies        mode      = "grants tokens with times that are 10 min wrong"
)

func (p *limitPlan) String() string {
	if p == nil {
		return "no limiter"
	}
	return fmt.Sprintf("limiter: counter %s, policy %d, by group %t, plans %+v, half of it from %s on, MaxHeld %d, faults %+v",
		p.counter, p.policy, p.byGroup, p.plans, p.shrinks, p.held, p.faults)
}

// drawLimiter draws a limiter for two of three plans.
func (p *fleetPlan) drawLimiter(r *rand.Rand) {
	if r.IntN(3) == 0 {
		return
	}
	l := &limitPlan{
		counter: []counterKind{ownCounters, memoryCounter, memoryCounter, recordsCounter}[r.IntN(4)],
		policy:  limit.CounterPolicy(r.IntN(2)), byGroup: r.IntN(2) == 0, held: []int{8, 30, 100}[r.IntN(3)], shrinks: toTheEnd,
	}
	// The process of a function is frozen when its invocation is over, but not here: a stuck handler would keep its slot for ever.
	stuck := p.functions > 0 && slices.ContainsFunc(p.events, func(e eventPlan) bool { return e.how == withStuck })
	switch {
	case l.byGroup && stuck:
		l.plans[0].Rate = limit.Rate{N: 1 + r.IntN(3), Per: 5 * time.Second, Burst: 2}
	case l.byGroup && r.IntN(2) == 0:
		l.plans[0].Concurrency = 1 + r.IntN(4)
	case l.byGroup:
		l.plans[0] = limit.Plan{Concurrency: 1 + r.IntN(4), Rate: limit.Rate{N: 1 + r.IntN(3), Per: 5 * time.Second, Burst: 2}}
	default:
		l.plans[0].Rate = limit.Rate{N: 1 + r.IntN(5), Burst: []int{0, 1, 10, 40}[r.IntN(4)]}
	}
	if l.plans[1] = l.plans[0]; r.IntN(3) == 0 {
		l.plans[1] = half(l.plans[1])
	}
	most := min(p.calm, 15*time.Minute)
	if r.IntN(2) == 0 {
		l.shrinks = seconds(r, int(most/time.Second))
	}
	for range r.IntN(4) {
		w := window{
			kind: counterAway, mode: []mode{refuses, refuses, hangs, loses, drags, lies}[r.IntN(6)],
			at: seconds(r, int(most/time.Second)), length: seconds(r, 1<<(3+r.IntN(6))), host: everyone,
		}
		if r.IntN(3) == 0 {
			w.host = r.IntN(3)
		}
		l.faults = append(l.faults, w)
	}
	p.limiter = l
}

// half is a plan with half of the numbers.
func half(p limit.Plan) limit.Plan {
	h := func(n int) int { return (n + 1) / 2 }
	return limit.Plan{Concurrency: h(p.Concurrency), Rate: limit.Rate{N: h(p.Rate.N), Per: p.Rate.Per, Burst: h(p.Rate.Burst)}}
}

// at is the plan of a program at a time.
func (p *limitPlan) at(now time.Duration, program int) limit.Plan {
	if now < p.shrinks {
		return p.plans[program]
	}
	return half(p.plans[program])
}

// longest is how long the limiter may keep so many handlers, of a key or in all, which take so long together.
func (p *limitPlan) longest(handlers int, take time.Duration) time.Duration {
	if p == nil {
		return 0
	}
	least := half(p.plans[1])
	d := 10 * time.Minute // of slots that died, and of places beyond MaxHeld
	if least.Rate.N > 0 {
		d += time.Duration(handlers) * cmp.Or(least.Rate.Per, time.Second) / time.Duration(least.Rate.N) * 21 / 20
	}
	if least.Concurrency > 0 {
		d += take / time.Duration(least.Concurrency) * 3 / 2
	}
	return d
}

// limited is a handler that a limiter has started.
type limited struct {
	node     *node
	ran      bool // else the event was done, or the store down: its token went back
	debt     bool // it runs whatever the limits say, such as a suspect in its turn
	from, to time.Duration
}

// limiterNotes is what a fleet's limiters did, by key.
type limiterNotes struct {
	starts map[string][]*limited
	owed   map[string][]time.Duration // when messages ran in debt of a Rate
	beyond []string                   // workers beyond MaxHeld
}

type limitedKey struct{}

// limited returns h within the plan's limits.
func (f *fleet) limited(n *node, h sqsonce.Handler) sqsonce.Handler {
	p := f.plan.limiter
	if p == nil {
		return h
	}
	program := max(n.index, 0) % 2
	r := limit.Rule{Name: "fleet", Key: f.limitKey, PlanOf: func(string) limit.Plan { return p.at(f.now(), program) }}
	switch p.counter {
	case memoryCounter:
		r.Counter = &nodeCounter{f.counter, n}
	case recordsCounter:
		r.Counter = &nodeCounter{dynamostore.NewCounter(must.Get(dynamostore.New(n.ddb, table))(f)), n}
	}
	n.limiter = must.Get(limit.New([]limit.Rule{r}, func(o *limit.Options) { o.OnCounterDown, o.Logger = p.policy, f.log }))(f)
	return limit.Handler(n.limiter, func(ctx context.Context, m *sqsonce.Message) error {
		if !n.alive() {
			return errDead
		}
		from := f.now() // before a function is asked, which may read the queue's policy
		s, key := &limited{node: n, debt: settle.InDebt(ctx), from: from, to: toTheEnd}, f.limitKey(m)
		f.mu.Lock()
		f.limits.starts[key] = append(f.limits.starts[key], s)
		f.mu.Unlock()
		defer func() { // also after a panic or Goexit
			f.mu.Lock()
			defer f.mu.Unlock()
			s.to = f.now()
		}()
		return h(context.WithValue(ctx, limitedKey{}, s), m)
	})
}

func (f *fleet) limitKey(m *sqsonce.Message) string {
	if f.plan.limiter.byGroup {
		return groupOf(m.Attributes[sqsonce.AttrEventID].String)
	}
	return "*"
}

// used notes that a start's handler has run.
func (f *fleet) used(ctx context.Context) {
	if s, ok := ctx.Value(limitedKey{}).(*limited); ok {
		f.mu.Lock()
		s.ran = true
		f.mu.Unlock()
	}
}

// nodeCounter is a node's way to a counter.
type nodeCounter struct {
	limit.Counter
	n *node
}

// call makes a call with the faults of the plan, and reports whether the answer is wrong.
func (c *nodeCounter) call(ctx context.Context, call func() error) (lying bool, err error) {
	f := c.n.f
	if !c.n.awake() {
		return false, errDead
	}
	if f.plan.limiter.counter == recordsCounter {
		return false, call()
	}
	for i := range f.plan.limiter.faults {
		w := &f.plan.limiter.faults[i]
		if !w.has(f.now(), c.n.index) {
			continue
		}
		switch w.mode {
		case refuses:
			return false, errUnavailable
		case hangs:
			<-ctx.Done()
			return false, ctx.Err()
		case loses:
			_ = call()
			return false, errReset
		case lies:
			lying = true
		case drags:
			c.n.mu.Lock()
			d := time.Duration(c.n.rng.IntN(2000)) * time.Millisecond
			c.n.mu.Unlock()
			c.n.sleep(d / 2)
			defer c.n.sleep(d / 2)
		}
	}
	if err = call(); !c.n.awake() {
		err = errDead
	}
	return lying, err
}

func (c *nodeCounter) Take(ctx context.Context, t counting.Take) (g counting.Grant, err error) {
	f := c.n.f
	if t.Ahead > time.Hour && c.n.alive() {
		_, key, _ := strings.Cut(t.Key, "#")
		f.mu.Lock()
		f.limits.owed[key] = append(f.limits.owed[key], f.now())
		f.mu.Unlock()
	}
	lying, err := c.call(ctx, func() (err error) { g, err = c.Counter.Take(ctx, t); return err })
	if lying {
		g.From += []time.Duration{-10 * time.Minute, 10 * time.Minute}[len(c.n.name)%2]
	}
	return g, err
}

func (c *nodeCounter) Line(ctx context.Context, key string, n int, step time.Duration) (d time.Duration, err error) {
	_, err = c.call(ctx, func() (err error) { d, err = c.Counter.Line(ctx, key, n, step); return err })
	return d, err
}

func (c *nodeCounter) Acquire(ctx context.Context, slot, owner string, lease time.Duration) error {
	_, err := c.call(ctx, func() error { return c.Counter.Acquire(ctx, slot, owner, lease) })
	return err
}

func (c *nodeCounter) Renew(ctx context.Context, slot, owner string, lease time.Duration) error {
	_, err := c.call(ctx, func() error { return c.Counter.Renew(ctx, slot, owner, lease) })
	return err
}

func (c *nodeCounter) Release(ctx context.Context, slot, owner string) error {
	_, err := c.call(ctx, func() error { return c.Counter.Release(ctx, slot, owner) })
	return err
}

// checkLimits checks the rates and the slots of a fleet: protocol 19.1, 19.8a, 19.11 and 20, and what workers held.
func (f *fleet) checkLimits() {
	p := f.plan.limiter
	if p == nil {
		return
	}
	for _, s := range f.limits.beyond {
		f.complain("beyond MaxHeld", "%s, want %d", s, p.held)
	}
	for key, starts := range f.limits.starts {
		f.tally[allLimited] += len(starts)
		byCounter := map[*node][]*limited{} // what counts together
		for _, s := range starts {
			n := s.node
			if p.counter != ownCounters {
				n = nil
			}
			byCounter[n] = append(byCounter[n], s)
		}
		for _, starts := range byCounter {
			slices.SortStableFunc(starts, func(a, b *limited) int { return cmp.Compare(a.from, b.from) })
			f.checkRates(key, starts, f.limits.owed[key])
			f.checkSlots(key, starts)
		}
	}
}

// times is by how much a fleet may exceed its rate: where only some of the processes have no counter, the others have all of the rate, and
// these their shares.
func (f *fleet) times() float64 {
	p := f.plan.limiter
	if p.counter == ownCounters || p.policy == limit.OnCounterDownStop || p.counter == memoryCounter && len(p.faults) == 0 && !f.plan.freezes() {
		return 1
	}
	processes := len(f.plan.workers) + f.plan.functions
	return 2 + float64(processes)/50
}

func (f *fleet) checkRates(name string, starts []*limited, owed []time.Duration) {
	p := f.plan.limiter
	if p.plans[0].Rate.N == 0 || slices.ContainsFunc(p.faults, func(w window) bool { return w.mode == lies }) {
		return
	}
	if p.counter == ownCounters && starts[0].node.owes() {
		return
	}
	f.checkRate(name, starts, owed, p.plans[0])
	after := p.shrinks + settles
	f.checkRate(name+", after it shrank", slices.DeleteFunc(slices.Clone(starts), func(s *limited) bool { return s.from < after }), owed, half(p.plans[0]))
}

// settles is how long the tokens of a larger plan last, and those of a process that starts on in an outage with its larger share.
const settles = time.Minute

// checkRate checks that in any T at most rate x (T + 1 s) + burst handlers have started, beside those in debt. DynamoDB's clock adds a second.
func (f *fleet) checkRate(name string, starts []*limited, owed []time.Duration, p limit.Plan) {
	step := time.Duration(float64(cmp.Or(p.Rate.Per, time.Second)) / float64(p.Rate.N) / f.times())
	burst := cmp.Or(p.Rate.Burst, p.Rate.N)
	if f.plan.limiter.counter != ownCounters {
		burst++ // of the more generous plan, where there are two
	}
	var next, credit time.Duration
	for _, s := range starts {
		if !s.ran {
			continue
		}
		if s.debt && f.plan.limiter.counter == ownCounters {
			continue
		}
		for len(owed) > 0 && owed[0] <= s.from {
			cut := min(step, max(0, next-s.from))
			owed, next, credit = owed[1:], next-cut, credit+step-cut
		}
		if s.debt && credit >= step { // several in debt at once
			credit -= step
			continue
		}
		if next = max(next, s.from) + step; next > s.from+time.Duration(burst)*step+2*time.Second {
			f.complain("above its rate", "%s: the start at %s, by %s, is %s too early for %+v", name, s.from, s.node.name, next-s.from-time.Duration(burst)*step-2*time.Second, p)
			return
		}
	}
}

// owes says that messages of a node may have run in debt of a slot or of its own rate, of which no counter tells.
func (n *node) owes() bool {
	known := slices.DeleteFunc(n.believed(n.born, toTheEnd), func(most int) bool { return most == 0 })
	for _, all := range n.f.receipts {
		if slices.ContainsFunc(all, func(r *receipt) bool { return r.node == n && len(known) > 0 && r.count >= slices.Min(known) }) {
			return true
		}
	}
	return false
}

// noteHeld notes a worker that holds more than MaxHeld, beside suspects and messages that may not be given back: protocol 18.2.
func (f *fleet) noteHeld(n *node, k *sqsworker.Worker) {
	p, s := f.plan.limiter, k.Stats()
	if p == nil || s.Held-s.Suspect <= int64(p.held) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	stay, least := 0, slices.Min(n.believed(f.now(), f.now()))
	for _, all := range f.receipts {
		last := all[len(all)-1]
		stay += count(last.node == n && least > 0 && last.count > least-3)
	}
	if s.Held-s.Suspect > int64(p.held+stay) {
		f.limits.beyond = append(f.limits.beyond, fmt.Sprintf("%s holds %d at %s, of which %d are suspects and at most %d have to stay", n.name, s.Held, f.now(), s.Suspect, stay))
	}
}

// checkSlots checks that no more handlers run at once than the plan has slots, where nothing takes a slot from a process.
func (f *fleet) checkSlots(name string, starts []*limited) {
	p := f.plan.limiter
	most := p.plans[0].Concurrency
	if most == 0 {
		return
	}
	quiet, faults := toTheEnd, p.faults
	if p.counter == recordsCounter {
		faults = f.plan.faults
	}
	for _, w := range faults {
		if p.counter != ownCounters {
			quiet = min(quiet, w.at)
		}
	}
	// A frozen process does not renew.
	starts = slices.DeleteFunc(slices.Clone(starts), func(s *limited) bool { return s.from > quiet || s.debt || s.node.owes() || len(s.node.frozen) > 0 })
	for i, s := range starts {
		now := 0
		for _, other := range starts[:i+1] {
			now += count(s.from < min(other.to, other.node.diedAt()))
		}
		if now > most {
			f.complain("too many at once", "%s: %d at %s, want %d", name, now, s.from, most)
			return
		}
	}
}
