package outbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/internal/refstore"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// TestEverythingAtOnce: one to four relays, in processes that are killed and frozen, whose calls of the store and of SQS fail, lose
// their answers or arrive up to 20 minutes late; transactions that become visible event by event; refusals, and an operator who
// unparks. In the end nothing is lost, nothing invented, the first occurrences of each group are in the order of its commits, and an
// event is there twice only where two of its sends were five minutes apart.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := drawStorm(rt)
		synctest.Test(t, s.run)
		if len(s.problems) > 0 {
			rt.Fatalf("%s\n%+v", s.problems[0], s.plan)
		}
	})
}

// A store that parks what is gone is seen. The other rules of stores are outboxtest's.
func TestEverythingAtOnceSeesABlindPark(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		s := &storm{plan: plan{
			Seed: seed, Groups: 2, Events: 20, Relays: 3, Page: 5, Defect: "parks blindly", Refusals: 25,
			Chaos: chaos{Fail: 2, FailAfter: 5, Late: 10, MostLate: 20 * time.Minute}, Kills: true, Freeze: 10 * time.Minute,
		}}
		synctest.Test(t, s.run)
		if len(s.problems) > 0 {
			return
		}
	}
	t.Error("40 runs with a store that parks blindly had no problem")
}

// plan is what is drawn before a run.
type plan struct {
	Seed           uint64
	Groups, Events int // events of each group
	Relays         int
	Page, AtOnce   int
	Kills          bool
	Freeze         time.Duration // the longest
	Chaos          chaos
	Refusals       int // of 100 requests
	Throttle       bool
	Defect         string
}

func drawStorm(rt *rapid.T) *storm {
	return &storm{plan: plan{
		Seed:   rapid.Uint64().Draw(rt, "seed"),
		Groups: rapid.IntRange(1, 4).Draw(rt, "groups"),
		Events: rapid.IntRange(1, 40).Draw(rt, "events of each"),
		Relays: rapid.IntRange(1, 4).Draw(rt, "relays"),
		Page:   rapid.SampledFrom([]int{1, 3, 10, 25}).Draw(rt, "page"),
		AtOnce: rapid.SampledFrom([]int{1, 2, 64}).Draw(rt, "groups at once"),
		Kills:  rapid.Bool().Draw(rt, "kills"),
		Freeze: rapid.SampledFrom([]time.Duration{0, time.Minute, 20 * time.Minute}).Draw(rt, "freeze"),
		Chaos: chaos{
			Fail:      rapid.SampledFrom([]int{0, 3, 20}).Draw(rt, "fail"),
			FailAfter: rapid.SampledFrom([]int{0, 3, 20}).Draw(rt, "fail after the effect"),
			Late:      rapid.SampledFrom([]int{0, 3, 10}).Draw(rt, "late"),
			MostLate:  rapid.SampledFrom([]time.Duration{time.Minute, 20 * time.Minute}).Draw(rt, "most late"),
		},
		Refusals: rapid.SampledFrom([]int{0, 5}).Draw(rt, "refusals"),
		Throttle: rapid.Bool().Draw(rt, "throttle"),
		// Without claims, as on DynamoDB, nothing keeps relays from the same work.
		Defect: rapid.SampledFrom([]string{"", "claims what is claimed for nobody"}).Draw(rt, "claims"),
	}}
}

type storm struct {
	plan  plan
	x     *fixture
	under sync.WaitGroup

	mu       sync.Mutex
	problems []string
	procs    []*process
	gone     map[string]bool // events that were seen to be deleted
}

func (s *storm) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *storm) group(g int) string { return fmt.Sprint("g", g) }

func (s *storm) run(t *testing.T) {
	s.x = newFixture(t, "orders.fifo")
	defer s.x.srv.Close()
	s.x.srv.Set(fault.Plan{Seed: s.plan.Seed, Rules: s.rules()})
	s.gone = make(map[string]bool)
	var writers, relays sync.WaitGroup
	for g := range s.plan.Groups {
		writers.Go(func() { s.write(g) })
	}
	stormOver := make(chan struct{})
	for i := range s.plan.Relays {
		relays.Go(func() { s.relay(i, stormOver) })
	}
	operator, stopOperator := context.WithCancel(t.Context())
	operated := make(chan struct{})
	go func() {
		defer close(operated)
		s.operate(operator)
	}()
	writers.Wait()
	time.Sleep(time.Duration(rand.New(rand.NewPCG(s.plan.Seed, 9)).Int64N(int64(30 * time.Minute))))
	// The world becomes calm; relays that are frozen thaw.
	s.x.srv.Set(fault.Plan{})
	s.mu.Lock()
	for _, p := range s.procs {
		p.calm()
	}
	s.mu.Unlock()
	close(stormOver)
	relays.Wait()
	s.finish(t)
	s.under.Wait()
	time.Sleep(s.plan.Freeze + 10*time.Minute) // calls of frozen processes, and copies on their way, arrive
	stopOperator()
	<-operated
	s.check()
}

// rules are SQS's own faults.
func (s *storm) rules() (rules []fault.Rule) {
	const op = "SendMessageBatch"
	if s.plan.Refusals > 0 {
		rules = append(rules, fault.Rule{Op: op, Prob: float64(s.plan.Refusals) / 100, Do: fault.FailEntries, Code: "InvalidMessageContents", Entries: []int{0}})
	}
	if s.plan.Throttle {
		rules = append(rules, fault.Rule{Op: op, Prob: 0.05, Do: fault.Error, Code: "ThrottlingException"})
	}
	return append(rules, fault.Rule{Op: op, Prob: 0.02, Do: fault.Replay, Delay: 7 * time.Minute})
}

// write commits the events of a group, some in one transaction, and some transactions take a while to be visible.
func (s *storm) write(g int) {
	rng := rand.New(rand.NewPCG(s.plan.Seed, uint64(g)))
	var finished sync.WaitGroup
	for n := 0; n < s.plan.Events; {
		var es []fifo.Event
		for range 1 + rng.IntN(3) {
			if n < s.plan.Events {
				n++
				es = append(es, event(s.group(g), n))
			}
		}
		finish := s.x.table.Half(es...)
		d := time.Duration(0)
		if rng.IntN(4) == 0 {
			d = time.Duration(rng.Int64N(int64(20 * time.Second)))
		}
		finished.Go(func() {
			time.Sleep(d)
			finish()
		})
		time.Sleep(time.Duration(rng.Int64N(int64(time.Minute))))
	}
	finished.Wait()
}

// relay runs one process after the other.
func (s *storm) relay(i int, over <-chan struct{}) {
	rng := rand.New(rand.NewPCG(s.plan.Seed, 100+uint64(i)))
	for {
		select {
		case <-over:
			return
		default:
		}
		p, r := s.start(rng)
		ctx, cancel := context.WithCancel(s.x.Context())
		ended := make(chan struct{})
		how := rng.IntN(4)
		go func() {
			defer close(ended)
			s.use(ctx, r, how)
		}()
		life := time.Duration(rng.Int64N(int64(10 * time.Minute)))
		if s.plan.Freeze > 0 && rng.IntN(2) == 0 {
			time.Sleep(life / 2)
			p.freeze(time.Duration(rng.Int64N(int64(s.plan.Freeze))))
		}
		timer := time.NewTimer(life)
		select {
		case <-timer.C:
		case <-over:
		}
		timer.Stop()
		if s.plan.Kills && rng.IntN(2) == 0 {
			p.kill()
		}
		cancel()
		<-ended
	}
}

// use publishes in one of four ways until ctx ends.
func (s *storm) use(ctx context.Context, r *outbox.Relay, how int) {
	if how == 3 { // Run, and doorbells of the same process
		var running sync.WaitGroup
		running.Go(func() { s.use(ctx, r, 0) })
		defer running.Wait()
		how = 1
	}
	if how == 0 {
		if err := r.Run(ctx); err != nil {
			s.problem("Run: %v", err)
		}
		return
	}
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, time.Minute)
		var names []string
		for g := range s.plan.Groups {
			names = append(names, s.group(g))
		}
		if how == 1 {
			_ = r.Drain(short, names...)
		} else {
			_, _ = r.Sweep(short)
		}
		cancel()
		time.Sleep(10 * time.Second)
	}
}

func (s *storm) start(rng *rand.Rand) (*process, *outbox.Relay) {
	store := s.x.table.Open()
	store.Defect = s.plan.Defect
	p := &process{
		Store: store, srv: s.x.srv, chaos: s.plan.Chaos, under: &s.under, report: s.problem, reads: make(map[string]int),
		rng: rand.New(rand.NewPCG(rng.Uint64(), 1)),
	}
	s.mu.Lock()
	s.procs = append(s.procs, p)
	s.mu.Unlock()
	quiet := slog.New(slog.DiscardHandler)
	pub, err := fifo.NewPublisher(newClient(p), s.x.url, refstore.Source, func(o *fifo.Options) { o.Logger = quiet })
	if err != nil {
		s.x.Fatal(err)
	}
	r, err := outbox.NewRelay(p, pub, func(o *outbox.Options) {
		o.Page, o.Groups, o.Settle, o.Logger = s.plan.Page, s.plan.AtOnce, -1, quiet
	})
	if err != nil {
		s.x.Fatal(err)
	}
	return p, r
}

// operate unparks what is parked, and watches that nothing that was deleted comes back.
func (s *storm) operate(ctx context.Context) {
	store := s.x.table.Open()
	was := make(map[string]bool)
	for ctx.Err() == nil {
		there := make(map[string]bool)
		for g := range s.plan.Groups {
			for _, e := range s.x.table.Events(s.group(g)) {
				there[e.ID] = true
				if s.gone[e.ID] {
					s.problem("%s is back in the outbox", e.ID)
				}
			}
		}
		for id := range was {
			if !there[id] {
				s.gone[id] = true
			}
		}
		was = there
		parked, err := store.Parked(ctx, 100)
		for _, e := range parked {
			_ = store.Unpark(ctx, e)
		}
		if err != nil && ctx.Err() == nil {
			s.problem("Parked: %v", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
	}
}

// finish has one relay of a calm world publish the rest, in time.
func (s *storm) finish(t *testing.T) {
	p, r := s.start(rand.New(rand.NewPCG(1, 1)))
	p.calm()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	start := time.Now()
	for left := 1; left > 0 && time.Since(start) < 15*time.Minute; {
		time.Sleep(10 * time.Second)
		left = 0
		for g := range s.plan.Groups {
			left += len(s.x.table.Events(s.group(g)))
		}
	}
	cancel()
	if err := <-done; err != nil {
		s.problem("Run at the end: %v", err)
	}
	for g := range s.plan.Groups {
		if es := s.x.table.Events(s.group(g)); len(es) > 0 {
			s.problem("15 calm minutes: %d events of group %d are left, the first %+v", len(es), g, es[0])
		}
	}
}

// check compares the queue with what was committed.
func (s *storm) check() {
	for g := range s.plan.Groups {
		next := 1
		accepted := make(map[string]time.Time)
		for _, m := range s.messages(g) {
			if last, ok := accepted[m.Body]; ok && m.VisibleAt.Sub(last) < 5*time.Minute {
				s.problem("group %d: %s was accepted twice within %v", g, m.Body, m.VisibleAt.Sub(last))
			}
			accepted[m.Body] = m.VisibleAt
			switch n := number(m.Body); {
			case n == next:
				next++
			case n > next, n < 1:
				s.problem("group %d: %s comes before event %d", g, m.Body, next)
				return
			}
		}
		if next != s.plan.Events+1 {
			s.problem("group %d: event %d is lost", g, next)
		}
	}
}

func (s *storm) messages(g int) (ms []memsqs.QueuedMessage) {
	for _, m := range s.x.srv.Messages(s.x.url) {
		if m.Group == s.group(g) {
			ms = append(ms, m)
		}
	}
	return ms
}
