package limit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// modelKey is a key in the model: how many starts it has owed since its plan changed, by an exact count of those that have not gone back,
// and what runs.
type modelKey struct {
	plan    Plan
	changes int     // of the plan
	owed    float64 // starts, at that time; the bucket is full at 0
	at      time.Time
	starts  []*modelStart // since then
	paused  time.Time
	running int
}

type modelStart struct {
	at   time.Time
	cost float64
}

// rate returns the starts of a second and the burst.
func (k *modelKey) rate() (perSecond, burst float64) {
	p := k.plan.resolve(nil, "")
	return float64(time.Second) / float64(p.step), float64(p.burst)
}

// owes returns how many starts are owed.
func (k *modelKey) owes(now time.Time) float64 {
	if k.plan.Rate == (Rate{}) {
		return 0
	}
	owed, at := k.owed, k.at
	rate, _ := k.rate()
	for _, s := range append(k.starts, &modelStart{at: now}) {
		owed = max(0, owed-s.at.Sub(at).Seconds()*rate) + s.cost
		at = s.at
	}
	return owed
}

func (k *modelKey) change(now time.Time, p Plan) {
	if k.plan.resolve(nil, "") == p.resolve(nil, "") {
		return
	}
	k.owed, k.at, k.starts = k.owes(now), now, nil
	k.changes++
	if k.plan = p; p.Rate == (Rate{}) {
		k.owed = 0
		return
	}
	_, burst := k.rate()
	k.owed = min(k.owed, burst)
}

func (k *modelKey) forget() { k.owed, k.starts, k.paused = 0, nil, time.Time{} }

// cost is that of a message under the plan; room is how much a start of that cost lacks, negative: it has room to spare.
func (k *modelKey) cost(c int) float64 {
	_, burst := k.rate()
	return min(float64(c), burst)
}

func (k *modelKey) lacks(now time.Time, c int) float64 {
	switch {
	case k.paused.After(now), k.plan.Concurrency > 0 && k.running >= k.plan.Concurrency:
		return math.Inf(1)
	case k.plan.Rate == (Rate{}):
		return math.Inf(-1)
	}
	_, burst := k.rate()
	return k.owes(now) + k.cost(c) - burst
}

// step is one step of a run of the model. Its kind says which fields count.
type step struct {
	Kind string
	Key  string // of modelKeys
	Cost int
	Wait time.Duration
	Plan Plan
	Pick int  // of the handlers that run
	Back bool // the handler was not called
}

var (
	modelKeys = []string{"r0*", "r1a", "r1b", "r1c"}
	drawPlan  = rapid.Custom(func(r *rapid.T) Plan {
		p := Plan{Concurrency: rapid.IntRange(0, 3).Draw(r, "concurrency")}
		if rapid.Bool().Draw(r, "rate") {
			p.Rate = Rate{
				N:     rapid.SampledFrom([]int{1, 3, 10, 1000}).Draw(r, "n"),
				Per:   rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 24 * time.Hour}).Draw(r, "per"),
				Burst: rapid.SampledFrom([]int{0, 1, 5}).Draw(r, "burst"),
			}
		}
		return p
	})
	drawStep = rapid.Custom(func(r *rapid.T) step {
		return step{
			Kind: rapid.SampledFrom([]string{"start", "start", "start", "end", "wait", "wait", "plan", "pause"}).Draw(r, "kind"),
			Key:  rapid.SampledFrom(modelKeys).Draw(r, "key"),
			Cost: rapid.SampledFrom([]int{1, 1, 2, 3, 7}).Draw(r, "cost"),
			Wait: rapid.SampledFrom([]time.Duration{1, 1e6, 33e6, 1e8, 1e9, 7e9, 61e9, 5e12}).Draw(r, "wait"),
			Plan: drawPlan.Draw(r, "plan"),
			Pick: rapid.IntRange(0, 9).Draw(r, "pick"),
			Back: rapid.Bool().Draw(r, "back"),
		}
	})
)

// A limiter of one process starts a message when an exact count of the starts allows it, for each rule's key, and only then: with
// several rules, costs, bursts, plans that change, pauses, starts that go back, and keys that are forgotten.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		plans := rapid.SliceOfN(drawPlan, len(modelKeys), len(modelKeys)).Draw(r, "plans")
		most := rapid.SampledFrom([]int{1, 2, 100}).Draw(r, "MaxKeys")
		steps := rapid.SliceOfN(drawStep, 60, 120).Draw(r, "steps")
		var problem string
		synctest.Test(t, func(t *testing.T) { problem = runModel(t, plans, most, steps) })
		if problem != "" {
			r.Fatal(problem)
		}
	})
}

func runModel(t *testing.T, plans []Plan, most int, steps []step) string {
	model := map[string]*modelKey{}
	for i, name := range modelKeys {
		model[name] = &modelKey{plan: plans[i], at: time.Now()}
	}
	cost := func(m *sqsonce.Message) int { return len(m.Body) }
	l := newLimiter(t, []Rule{
		{Name: "r0", Key: All, PlanOf: func(key string) Plan { return model["r0"+key].plan }, Cost: cost},
		{Name: "r1", PlanOf: func(key string) Plan { return model["r1"+key].plan }, Cost: cost},
	}, func(o *Options) { o.MaxKeys = most })
	known := modelMemory{most: most} // of r1: r0 has one key
	touch := func(k *modelKey) {
		if k != model["r0*"] {
			known.touch(k)
		}
	}
	var runs []*modelRun
	defer func() {
		for _, run := range runs {
			run.end(false)
		}
	}()
	for i, s := range steps {
		k, now := model[s.Key], time.Now()
		switch s.Kind {
		case "wait":
			time.Sleep(s.Wait)
		case "plan":
			k.change(now, s.Plan)
			l.mu.Lock() // the limiter sees the plan now
			must.Get(l.rules[s.Key[1]-'0'].use(s.Key[2:]))(t).gate(now).advance(now)
			l.mu.Unlock()
			touch(k)
		case "pause":
			must.Do(t, l.Pause(t.Context(), s.Key[:2], s.Key[2:], s.Wait))
			if until := now.Add(s.Wait); until.After(k.paused) {
				k.paused = until
			}
			touch(k)
		case "end":
			if len(runs) > 0 {
				at := s.Pick % len(runs)
				runs[at].end(s.Back)
				if runs[at].keys[1].running == 0 {
					known.use(runs[at].keys[1]) // from now on it can be forgotten
				}
				runs = slices.Delete(runs, at, at+1)
			}
		case "start":
			group := []string{"a", "b", "c"}[s.Pick%3]
			keys := []*modelKey{model["r0*"], model["r1"+group]}
			lacks := max(keys[0].lacks(now, s.Cost), keys[1].lacks(now, s.Cost))
			run, err := startModel(l, &sqsonce.Message{Group: group, Body: strings.Repeat("x", s.Cost), ReceiveCount: 2})
			if run != nil {
				run.took(keys, s.Cost)
				runs = append(runs, run)
			}
			if run != nil || strings.Contains(err.Error(), "limit: r1#") { // else r0 has refused it
				known.use(keys[1])
			}
			switch kind := sqsonce.OutcomeOf(err).Kind; {
			case run == nil && kind != sqsonce.OutcomePostponed:
				return fmt.Sprintf("step %d: outcome %s: %v", i, kind, err)
			case run == nil && lacks < -1e-6:
				return fmt.Sprintf("step %d: postponed, and the model has room for %g more", i, -lacks)
			case run != nil && lacks > 1e-6:
				return fmt.Sprintf("step %d: runs, and the model lacks %g", i, lacks)
			}
		}
	}
	return ""
}

// modelMemory is the keys of a rule that the limiter remembers.
type modelMemory struct {
	most int
	all  []*modelKey // the one that was used least recently first
}

// use has the key used last. It is counted with the starts that it owes until it is forgotten.
func (m *modelMemory) use(k *modelKey) {
	m.all = slices.DeleteFunc(m.all, func(other *modelKey) bool { return other == k })
	m.touch(k)
}

// touch remembers a key, and forgets others beyond the number, but none in use.
func (m *modelMemory) touch(k *modelKey) {
	if !slices.Contains(m.all, k) {
		m.all = append(m.all, k)
	}
	for i := 0; i < len(m.all) && len(m.all) > m.most; {
		if old := m.all[i]; old.running > 0 {
			i++
		} else {
			old.forget()
			m.all = slices.Delete(m.all, i, i+1)
		}
	}
}

// modelRun is a handler that runs.
type modelRun struct {
	begun   time.Time
	ran     chan bool
	ended   chan struct{}
	keys    []*modelKey
	changes []int
	starts  []*modelStart
}

// startModel returns nil and the error if the message does not run.
func startModel(l *Limiter, m *sqsonce.Message) (run *modelRun, err error) {
	run = &modelRun{begun: time.Now(), ran: make(chan bool), ended: make(chan struct{})}
	started := make(chan bool, 1)
	go func() {
		defer close(run.ended)
		ctx, _ := settle.New(context.Background())
		err = l.Do(ctx, m, func(ctx context.Context) error {
			started <- true
			settle.Ran(ctx, <-run.ran)
			return nil
		})
		started <- false
	}()
	if !<-started {
		return nil, err
	}
	return run, nil
}

func (run *modelRun) took(keys []*modelKey, cost int) {
	run.keys = keys
	for _, k := range keys {
		s := &modelStart{at: run.begun}
		if k.plan.Rate != (Rate{}) {
			s.cost = k.cost(cost)
		}
		k.running++
		k.starts = append(k.starts, s)
		run.changes, run.starts = append(run.changes, k.changes), append(run.starts, s)
	}
}

// end ends the handler. If it was not called, its starts go back: the count is the one without them. They don't once a second has passed,
// nor once the plan has changed.
func (run *modelRun) end(back bool) {
	run.ran <- !back
	<-run.ended
	good := time.Since(run.begun) < keep
	for i, k := range run.keys {
		k.running--
		if back && good && k.changes == run.changes[i] {
			k.starts = slices.DeleteFunc(k.starts, func(s *modelStart) bool { return s == run.starts[i] })
		}
	}
}

// Messages that are held, given back, forgotten by their host and received again leave nothing behind, the limit holds, and every
// message of a host that waits for its turn runs in its time.
func TestTurnsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		p := Plan{Rate: Rate{N: rapid.IntRange(1, 20).Draw(r, "rate"), Burst: rapid.IntRange(1, 5).Draw(r, "burst")}}
		if rapid.Bool().Draw(r, "concurrency") {
			p.Concurrency = rapid.IntRange(1, 3).Draw(r, "slots")
		}
		counted := rapid.Bool().Draw(r, "counter")
		sent := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) turnStep {
			return turnStep{
				Group: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "group"), Cost: rapid.IntRange(1, 6).Draw(r, "cost"),
				Receives: rapid.IntRange(1, 3).Draw(r, "receives"), Wait: rapid.SampledFrom([]time.Duration{1, 1e7, 5e8}).Draw(r, "wait"),
				Leaves: rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(r, "leaves"),
			}
		}), 1, 40).Draw(r, "messages")
		var problem string
		synctest.Test(t, func(t *testing.T) { problem = runTurns(t, p, counted, sent) })
		if problem != "" {
			r.Fatal(problem)
		}
	})
}

type turnStep struct {
	Group          string
	Cost, Receives int
	Wait           time.Duration
	Leaves         int // 1: the host gives it back after a while, 2: it forgets it
}

func runTurns(t *testing.T, p Plan, counted bool, sent []turnStep) string {
	rule := Rule{Name: "r", Key: All, Plan: p, Cost: func(m *sqsonce.Message) int { return len(m.Body) }}
	if counted {
		rule.Counter = newCounter()
	}
	l, s := newLimiter(t, []Rule{rule}), newStarts()
	h := newHost(t, l, s.handler(100*time.Millisecond), 10, 1000)
	left := newHost(t, l, s.handler(100*time.Millisecond), 10, 1000)
	cost, lost := 0, 0
	for i, step := range sent {
		m := &sqsonce.Message{ID: fmt.Sprint(i), Group: step.Group, Body: strings.Repeat("x", step.Cost), ReceiveCount: step.Receives}
		cost += min(step.Cost, p.Rate.Burst)
		switch step.Leaves {
		case 0:
			h.send(m)
		case 1:
			left.send(m)
		case 2:
			lost++
			_ = l.Do(heldHost(t.Context()), m, func(context.Context) error { return nil })
		}
		time.Sleep(step.Wait)
	}
	left.stop()
	h.done.Wait()
	took := time.Since(s.begun)
	time.Sleep(2 * time.Minute)
	var whole time.Duration
	for _, step := range sent {
		whole += step.Wait
	}
	// Each forgotten message's turn costs a second more, and each start waits for a slot.
	whole += time.Duration(cost+p.Rate.Burst)*time.Second/time.Duration(p.Rate.N) + time.Duration(lost+2)*keep + time.Duration(len(sent))*100*time.Millisecond
	if took > 2*whole {
		return fmt.Sprintf("the messages took %s, want %s", took, whole)
	}
	if n := s.count("a") + s.count("b") + s.count("c"); n > 0 && s.atMost() > max(p.Concurrency, 20*(1-min(1, p.Concurrency))) {
		return fmt.Sprintf("%d ran at once, want at most %d", s.atMost(), p.Concurrency)
	}
	if st := l.Stats()[0]; st.Waiting+st.Running != 0 || len(l.held) > 0 {
		return fmt.Sprintf("left behind: %+v, %d held", st, len(l.held))
	}
	return ""
}
