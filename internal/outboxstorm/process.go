package outboxstorm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// Process is what stands between a relay and the world: its calls can be frozen, fail before or after their effect, and arrive long
// after it was told that they failed. A process that was killed has no effect any more, but for what is under way.
type Process struct {
	outbox.Store
	storm *storm

	mu     sync.Mutex
	rng    *rand.Rand
	dead   bool
	thaw   time.Time
	reads  map[string]context.Context // under way, by group
	pages  map[string]page
	calmed bool
}

// page is an answer of Groups.
type page struct {
	found []outbox.Group
	next  string
}

// Chaos is how often, in percent, a call meets what.
type Chaos struct {
	Fail, FailAfter, Late int
	MostLate              time.Duration
}

var errChaos = errors.New("failed by the test")

// roll decides about one call.
func (p *Process) roll() (late time.Duration, before, after error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return 0, errChaos, nil
	}
	if p.calmed {
		return 0, nil, nil
	}
	switch n := p.rng.IntN(100); {
	case n < p.storm.plan.Chaos.Fail:
		before = errChaos
	case n < p.storm.plan.Chaos.Fail+p.storm.plan.Chaos.FailAfter:
		after = errChaos
	case n < p.storm.plan.Chaos.Fail+p.storm.plan.Chaos.FailAfter+p.storm.plan.Chaos.Late:
		late = time.Duration(p.rng.Int64N(int64(p.storm.plan.Chaos.MostLate)))
	}
	return late, before, after
}

// gate waits while the process is frozen.
func (p *Process) gate() {
	for {
		p.mu.Lock()
		d := time.Until(p.thaw)
		p.mu.Unlock()
		if d <= 0 {
			return
		}
		time.Sleep(d)
	}
}

func (p *Process) freeze(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.thaw = time.Now().Add(d)
}

func (p *Process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

func (p *Process) calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calmed, p.thaw = true, time.Time{}
}

// Through returns the process's network to a server.
func (p *Process) Through(server http.RoundTripper) http.RoundTripper { return network{p, server} }

type network struct {
	p      *Process
	server http.RoundTripper
}

func (n network) RoundTrip(req *http.Request) (*http.Response, error) {
	p := n.p
	p.gate()
	late, before, after := p.roll()
	if before != nil {
		return nil, before
	}
	if late == 0 {
		res, err := n.server.RoundTrip(req)
		p.gate()
		if after != nil && err == nil {
			_ = res.Body.Close()
			return nil, after
		}
		return res, err
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	again := req.Clone(context.WithoutCancel(req.Context()))
	again.Body = io.NopCloser(bytes.NewReader(body))
	p.storm.under.Go(func() {
		time.Sleep(late)
		if res, err := n.server.RoundTrip(again); err == nil {
			_ = res.Body.Close()
		}
	})
	<-req.Context().Done()
	return nil, context.Cause(req.Context())
}

// meet has a call of the store meet what it meets. f is the call, without the caller's context where it is late.
func meet[T any](ctx context.Context, p *Process, f func(context.Context) (T, error)) (none T, err error) {
	p.gate()
	late, before, after := p.roll()
	if before != nil {
		return none, before
	}
	if late > 0 {
		p.storm.under.Go(func() {
			time.Sleep(late)
			_, _ = f(context.WithoutCancel(ctx))
		})
		<-ctx.Done()
		return none, context.Cause(ctx)
	}
	v, err := f(ctx)
	p.gate()
	if after != nil {
		return none, after
	}
	return v, err
}

// Groups may return what it returned before: the index is behind the table.
func (p *Process) Groups(ctx context.Context, after string, limit int) ([]outbox.Group, string, error) {
	p.mu.Lock()
	old, behind := p.pages[after]
	behind = behind && !p.calmed && p.rng.IntN(100) < p.storm.plan.Lag
	p.mu.Unlock()
	if behind {
		return old.found, old.next, nil
	}
	a, err := meet(ctx, p, func(ctx context.Context) (a page, err error) {
		a.found, a.next, err = p.Store.Groups(ctx, after, limit)
		return a, err
	})
	if err == nil {
		p.mu.Lock()
		p.pages[after] = a
		p.mu.Unlock()
	}
	return a.found, a.next, err
}

func (p *Process) Claim(ctx context.Context, groups []string, lease time.Duration) ([]string, error) {
	return meet(ctx, p, func(ctx context.Context) ([]string, error) { return p.Store.Claim(ctx, groups, lease) })
}

func (p *Process) Unclaim(ctx context.Context, groups []string) error {
	_, err := meet(ctx, p, func(ctx context.Context) (int, error) { return 0, p.Store.Unclaim(ctx, groups) })
	return err
}

func (p *Process) Read(ctx context.Context, g outbox.Group, k outbox.Known, limit int) ([]outbox.Entry, error) {
	p.mu.Lock()
	if other := p.reads[g.Name]; other != nil && other.Err() == nil { // one whose context has ended was left behind
		p.storm.problem("group %s is in two visits of one process", g.Name)
	}
	p.reads[g.Name] = ctx
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.reads[g.Name] == ctx {
			delete(p.reads, g.Name)
		}
	}()
	// Events may come beside an error.
	type answer struct {
		es  []outbox.Entry
		err error
	}
	a, err := meet(ctx, p, func(ctx context.Context) (answer, error) {
		es, err := p.Store.Read(ctx, g, k, limit)
		es, err = p.storm.misread(ctx, p.Store, g.Name, es, err)
		return answer{es, err}, nil
	})
	if err != nil {
		return nil, err
	}
	return a.es, a.err
}

func (p *Process) Delete(ctx context.Context, es []outbox.Entry) ([]outbox.Entry, error) {
	if p.noDeletes() {
		p.gate()
		return es, errChaos
	}
	left, err := meet(ctx, p, func(ctx context.Context) ([]outbox.Entry, error) { return p.Store.Delete(ctx, es) })
	if err != nil && left == nil {
		left = es
	}
	return left, err
}

// noDeletes reports that all deletes fail, for ten minutes in some.
func (p *Process) noDeletes() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	slot := uint64(time.Now().Unix() / 600)
	return !p.calmed && rand.New(rand.NewPCG(p.storm.plan.Seed, slot)).IntN(100) < p.storm.plan.NoDeletes
}

func (p *Process) Park(ctx context.Context, e outbox.Entry, policy outbox.RefusedPolicy, reason string) error {
	_, err := meet(ctx, p, func(ctx context.Context) (int, error) { return 0, p.Store.Park(ctx, e, policy, reason) })
	return err
}
