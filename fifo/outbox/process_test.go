package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/internal/refstore"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// process is what stands between a relay and the world: its calls can be frozen, fail before or after their effect, and arrive long
// after it was told that they failed. A process that was killed has no effect any more, but for what is under way.
type process struct {
	*refstore.Store
	srv    *memsqs.Server
	chaos  chaos
	under  *sync.WaitGroup // late requests
	report func(format string, args ...any)

	mu     sync.Mutex
	rng    *rand.Rand
	dead   bool
	thaw   time.Time
	reads  map[string]int // under way, by group
	sends  map[string]int
	calmed bool
}

// chaos is how often, in percent, a call meets what.
type chaos struct {
	Fail, FailAfter, Late int
	MostLate              time.Duration
}

var errChaos = errors.New("failed by the test")

// roll decides about one call.
func (p *process) roll() (before, after error, late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errChaos, nil, 0
	}
	if p.calmed {
		return nil, nil, 0
	}
	switch n := p.rng.IntN(100); {
	case n < p.chaos.Fail:
		before = errChaos
	case n < p.chaos.Fail+p.chaos.FailAfter:
		after = errChaos
	case n < p.chaos.Fail+p.chaos.FailAfter+p.chaos.Late:
		late = time.Duration(p.rng.Int64N(int64(p.chaos.MostLate)))
	}
	return before, after, late
}

// gate waits while the process is frozen.
func (p *process) gate() {
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

func (p *process) freeze(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.thaw = time.Now().Add(d)
}

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

func (p *process) calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calmed, p.thaw = true, time.Time{}
}

// RoundTrip is the network to SQS.
func (p *process) RoundTrip(req *http.Request) (*http.Response, error) {
	p.gate()
	before, after, late := p.roll()
	if before != nil {
		return nil, before
	}
	if late == 0 {
		res, err := p.srv.RoundTrip(req)
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
	p.under.Go(func() {
		time.Sleep(late)
		if res, err := p.srv.RoundTrip(again); err == nil {
			_ = res.Body.Close()
		}
	})
	<-req.Context().Done()
	return nil, context.Cause(req.Context())
}

// meet has a call of the store meet what it meets. f is the call, without the caller's context where it is late.
func meet[T any](ctx context.Context, p *process, f func(context.Context) (T, error)) (none T, err error) {
	p.gate()
	before, after, late := p.roll()
	if before != nil {
		return none, before
	}
	if late > 0 {
		p.under.Go(func() {
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

func (p *process) Groups(ctx context.Context, after string, limit int) ([]outbox.Group, string, error) {
	var next string
	found, err := meet(ctx, p, func(ctx context.Context) (found []outbox.Group, err error) {
		var n string
		if found, n, err = p.Store.Groups(ctx, after, limit); ctx.Done() != nil { // not a late one
			next = n
		}
		return found, err
	})
	if err != nil {
		next = ""
	}
	return found, next, err
}

func (p *process) Claim(ctx context.Context, groups []string, lease time.Duration) ([]string, error) {
	return meet(ctx, p, func(ctx context.Context) ([]string, error) { return p.Store.Claim(ctx, groups, lease) })
}

func (p *process) Unclaim(ctx context.Context, groups []string) error {
	_, err := meet(ctx, p, func(ctx context.Context) (int, error) { return 0, p.Store.Unclaim(ctx, groups) })
	return err
}

func (p *process) Read(ctx context.Context, g outbox.Group, k outbox.Known, limit int) ([]outbox.Entry, error) {
	p.mu.Lock()
	if p.reads[g.Name]++; p.reads[g.Name] > 1 {
		p.report("group %s is in two visits of one process", g.Name)
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.reads[g.Name]--
	}()
	return meet(ctx, p, func(ctx context.Context) ([]outbox.Entry, error) { return p.Store.Read(ctx, g, k, limit) })
}

func (p *process) Delete(ctx context.Context, es []outbox.Entry) ([]outbox.Entry, error) {
	left, err := meet(ctx, p, func(ctx context.Context) ([]outbox.Entry, error) { return p.Store.Delete(ctx, es) })
	if err != nil {
		left = es
	}
	return left, err
}

func (p *process) Park(ctx context.Context, e outbox.Entry, policy outbox.Policy, reason string) error {
	_, err := meet(ctx, p, func(ctx context.Context) (int, error) { return 0, p.Store.Park(ctx, e, policy, reason) })
	return err
}

// number returns the number of an event from its body, "group/v12".
func number(body string) (n int) {
	_, after, _ := strings.Cut(body, "/v")
	if _, err := fmt.Sscan(after, &n); err != nil {
		return -1
	}
	return n
}
