package limit

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Limiter keeps handlers within its rules. It is safe for concurrent use, also by several workers of a process.
type Limiter struct {
	rules []*rule
	o     Options

	calls    sync.WaitGroup // of Counters
	callCtx  context.Context
	endCalls context.CancelFunc
	detach   func() // what Hooks.Attach returned, once
	id       string // of this process's questions

	mu      sync.Mutex         // all below, and the rules' state
	held    map[string]*ticket // by message ID: of messages that their hosts hold
	receipt uint64
	closed  bool
}

// rule is a Rule and its keys. Those of recent are not in use, the one used last first.
type rule struct {
	Rule
	l       *Limiter
	fixed   plan
	gates   map[string]*gate
	recent  list.List
	busiest *gate // of the last start that was the largest part of its key's rate
	outage  outage
	asking  bool      // a question is under way
	passed  time.Time // when one was last answered
	warned  time.Time // of an outage
	noGroup atomic.Int64
	asked   atomic.Uint64 // calls of PlanOf
	counts  counts

	warnedKey time.Time // of an outage of a key
}

func newRule(r Rule, p plan) *rule { return &rule{Rule: r, fixed: p, gates: make(map[string]*gate)} }

// New returns a Limiter. All rules hold for each message: it runs when all of them allow it.
//
// New doesn't make requests or start goroutines. Its error joins a [*sqsonce.OptionError] for each field that can't be used.
func New(rules []Rule, optFns ...func(*Options)) (*Limiter, error) {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	ps := host.Problems{Package: "limit"}
	o.resolve(&ps)
	l := &Limiter{rules: checkRules(&ps, rules), o: o, held: make(map[string]*ticket), id: newOwner()}
	if err := ps.Err(); err != nil {
		return nil, err
	}
	for _, r := range l.rules {
		r.l = l
	}
	l.callCtx, l.endCalls = context.WithCancel(context.Background())
	l.attach()
	return l, nil
}

var errClosed = errors.New("limit: limiter is closed")

// Close gives back the slots that this process has in Counters, and waits for the answers until ctx ends. Without it the slots
// are free 30 s later. Call it when your hosts have stopped: later messages are postponed.
func (l *Limiter) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.endCalls()
	var give []func() error
	for _, r := range l.rules {
		for _, g := range r.gates {
			g.timer.stop()
			for _, s := range g.slots.owned {
				s.timer.stop()
				give = append(give, func() error { return r.Counter.Release(ctx, g.slotName(s.index), s.owner) })
			}
			g.slots.owned = nil
		}
	}
	l.mu.Unlock()
	errs := make([]error, len(give), len(give)+1)
	host.InParallel(len(give), closeAtOnce, func(i int) { errs[i] = contain(give[i]) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.calls.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done(): // a Counter may ignore its context
		errs = append(errs, context.Cause(ctx))
	}
	l.detach()
	return errors.Join(errs...)
}

const closeAtOnce = 10

// gate returns the state of a key. A plan that differs from the key's last one holds from now on, unless that was asked for later.
func (u use) gate(now time.Time) *gate {
	g := u.rule.gates[u.key]
	switch {
	case g == nil:
		g = &gate{rule: u.rule, key: u.key, plan: u.plan, planSeq: u.seq}
		g.counted.portion = 1
		u.rule.gates[u.key] = g
	case u.seq < g.planSeq:
	case g.plan != u.plan:
		g.bucket.change(now, g.plan, u.plan)
		g.counted.change(g.known(now), g.plan, u.plan)
		g.plan, g.planSeq = u.plan, u.seq
		g.slots.askAt = time.Time{}
		g.advance(now)
	default:
		g.planSeq = u.seq
	}
	return g
}

// shelve has a key that is not in use forgotten when more than Options.MaxKeys others were used later.
func (r *rule) shelve(g *gate, now time.Time) {
	switch inUse := g.inUse(); {
	case r.gates[g.key] != g: // it was forgotten before its last call ended
		return
	case inUse && g.recent != nil:
		r.recent.Remove(g.recent)
		g.recent = nil
	case !inUse && g.recent == nil:
		g.recent = r.recent.PushFront(g)
	}
	for len(r.gates) > r.l.o.MaxKeys && r.recent.Len() > 0 {
		old := r.recent.Remove(r.recent.Back()).(*gate)
		old.timer.stop()
		delete(r.gates, old.key)
		if old.bucket.next.After(now) || old.paused.After(now) {
			r.counts.forgotten++
		}
	}
}

// Pause stops the starts of a key's handlers for d, in this process at once, and in all processes of the fleet where the rule has a
// Counter and the key's plan a Rate. Other processes may still start the handlers for which they have taken starts: those of the
// next 1.5 s, and one more each, within a minute. Call it after an answer 429, and return [sqsonce.Postpone]. The key of [All] is "*". A pause is never shortened.
func (l *Limiter) Pause(ctx context.Context, rule, key string, d time.Duration) error {
	for _, r := range l.rules {
		if r.Name == rule {
			return l.pause(ctx, r, key, d)
		}
	}
	return &sqsonce.OptionError{Package: "limit", Field: "rule", Problem: "is " + rule + ", must be the Name of a rule"}
}

func (l *Limiter) pause(ctx context.Context, r *rule, key string, d time.Duration) error {
	u, err := r.use(key)
	if err != nil || d <= 0 {
		return err
	}
	l.mu.Lock()
	now := time.Now()
	g := u.gate(now)
	if until := now.Add(d); until.After(g.paused) {
		g.paused = until
	}
	g.advance(now)
	name, p := g.name(), g.plan
	l.mu.Unlock()
	if r.Counter == nil || p.step == 0 {
		return nil
	}
	return contain(func() error {
		_, err := r.Counter.Take(ctx, counting.Take{Key: name, N: 1, Step: p.step, Burst: p.burst, NotBefore: d})
		return err
	})
}

// contain returns the panic of a Counter as its error.
func contain(f func() error) (err error) {
	host.Run(f, func(failed error) { err = failed })
	return err
}
