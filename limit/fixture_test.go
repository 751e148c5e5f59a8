package limit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// newLimiter closes the limiter at the end of the test.
func newLimiter(t *testing.T, rules []Rule, optFns ...func(*Options)) *Limiter {
	t.Helper()
	l := must.Get(New(rules, optFns...))(t)
	t.Cleanup(func() { must.Do(t, l.Close(context.WithoutCancel(t.Context()))) })
	return l
}

// starts are when handlers have started, by key.
type starts struct {
	mu    sync.Mutex
	begun time.Time
	at    map[string][]time.Duration
	order []string // the messages' IDs
	now   int      // handlers that run
	most  int
}

func newStarts() *starts { return &starts{begun: time.Now(), at: map[string][]time.Duration{}} }

// handler runs for that long.
func (s *starts) handler(took time.Duration) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		s.mu.Lock()
		s.at[m.Group] = append(s.at[m.Group], time.Since(s.begun))
		s.order = append(s.order, m.ID)
		s.now++
		s.most = max(s.most, s.now)
		s.mu.Unlock()
		time.Sleep(took)
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
		return nil
	}
}

func (s *starts) count(group string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at[group])
}

// before counts the starts of a group before then.
func (s *starts) before(group string, then time.Duration) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.at[group] {
		if at < then {
			n++
		}
	}
	return n
}

// atMost is how many handlers have run at once.
func (s *starts) atMost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

func (s *starts) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *starts) all() (all []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.at {
		all = append(all, at...)
	}
	slices.Sort(all)
	return all
}

// check fails where more than T/step + burst handlers have started within a T, or slack more.
func (s *starts) check(t *testing.T, step time.Duration, burst int, slack time.Duration) {
	t.Helper()
	var next time.Duration // the regular time of the next start
	for i, at := range s.all() {
		if next = max(next, at) + step; next > at+time.Duration(burst)*step+slack {
			t.Fatalf("start %d, at %s, is %s too early", i, at, next-at-time.Duration(burst)*step-slack)
		}
	}
}

// fakeHost is a worker: so many handlers run at once, and it holds so many postponed messages of a line. With room 0 it is a
// function, which gives messages back.
type fakeHost struct {
	ctx     context.Context
	handler sqsonce.Handler
	slots   chan struct{}
	room    int
	mu      sync.Mutex
	lines   map[string]int
	calls   int
	stop    func() // gives back what is held
	done    sync.WaitGroup
}

// newHost stops at the end of the test.
func newHost(t *testing.T, l *Limiter, h sqsonce.Handler, atOnce, room int) *fakeHost {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fakeHost{ctx: ctx, handler: Handler(l, h), slots: make(chan struct{}, atOnce), room: room, lines: map[string]int{}}
	f.stop = func() {
		cancel()
		f.done.Wait()
	}
	t.Cleanup(f.stop)
	return f
}

// send handles messages until they are done.
func (h *fakeHost) send(ms ...*sqsonce.Message) {
	for _, m := range ms {
		h.done.Go(func() { h.handle(h.ctx, m) })
		time.Sleep(time.Nanosecond) // the order of receipt
	}
}

// start sends meanwhile.
func (h *fakeHost) start(ms ...*sqsonce.Message) { h.done.Go(func() { h.send(ms...) }) }

func (h *fakeHost) handle(ctx context.Context, m *sqsonce.Message) {
	for line := ""; ctx.Err() == nil; {
		h.slots <- struct{}{}
		h.leave(line)
		line = ""
		err := h.call(ctx, m, &line)
		<-h.slots
		o := sqsonce.OutcomeOf(err)
		if o.Kind != sqsonce.OutcomePostponed {
			return
		}
		t, held := settle.TurnOf(err)
		if !held {
			m = next(m)
			time.Sleep(o.After)
			continue
		}
		select {
		case <-t.Ready:
		case <-time.After(o.After):
		case <-ctx.Done():
			h.leave(line)
			t.Left()
			return
		}
	}
}

// holder is a message of a host.
type holder struct {
	room func(line string) bool // nil: the host can't hold
	debt bool
	slow time.Duration // to say whether the message is in debt
}

func (h holder) Room(line string) (held, holds bool) {
	return h.room != nil && h.room(line), h.room != nil
}

func (h holder) InDebt() bool {
	time.Sleep(h.slow)
	return h.debt
}

// next is the message at its next receive.
func next(m *sqsonce.Message) *sqsonce.Message {
	again := *m
	again.ReceiveCount++
	return &again
}

func (h *fakeHost) call(ctx context.Context, m *sqsonce.Message, line *string) error {
	ctx, _ = settle.New(ctx)
	if h.room > 0 {
		ctx = settle.WithHolding(ctx)
		settle.HeldBy(ctx, holder{room: func(l string) bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.lines[l] >= h.room {
				return false
			}
			h.lines[l]++
			*line = l
			return true
		}})
	}
	h.mu.Lock()
	h.calls++
	h.mu.Unlock()
	return h.handler(ctx, m)
}

func (h *fakeHost) leave(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if line != "" {
		h.lines[line]--
	}
}

func messages(group string, n int) (ms []*sqsonce.Message) {
	for i := range n {
		ms = append(ms, &sqsonce.Message{ID: fmt.Sprintf("%s-%d", group, i), Group: group, ReceiveCount: 1})
	}
	return ms
}

// fakeCounter is a fleet's counter, by section 19 of the protocol.
type fakeCounter struct {
	mu     sync.Mutex
	items  map[string]*item
	slots  map[string]owned
	delay  time.Duration // of an answer, half of it before the write
	err    error         // of each call
	lose   int           // answers of so many calls are lost
	takes  int
	lines  int
	others int // calls for slots
}

type item struct{ tat, line time.Time }

type owned struct {
	owner string
	until time.Time
}

func newCounter() *fakeCounter {
	return &fakeCounter{items: map[string]*item{}, slots: map[string]owned{}}
}

var errLost = errors.New("answer lost")

// call makes one call.
func (c *fakeCounter) call(ctx context.Context, count *int, f func(now time.Time) error) error {
	delay := c.answerTime()
	time.Sleep(delay / 2)
	c.mu.Lock()
	*count++
	err := c.err
	if err == nil {
		err = f(time.Now())
		if c.lose > 0 {
			c.lose--
			err = errLost
		}
	}
	c.mu.Unlock()
	time.Sleep(delay / 2)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (c *fakeCounter) count(n *int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *n
}

func (c *fakeCounter) answerTime() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.delay
}

func (c *fakeCounter) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *fakeCounter) item(key string, now time.Time) *item {
	if c.items[key] == nil {
		c.items[key] = &item{tat: now}
	}
	return c.items[key]
}

func (c *fakeCounter) Take(ctx context.Context, t counting.Take) (g counting.Grant, err error) {
	err = c.call(ctx, &c.takes, func(now time.Time) error {
		i := c.item(t.Key, now)
		base, tol := later(i.tat, now), time.Duration(t.Burst-1)*t.Step
		if t.NotBefore > 0 {
			base = later(base, now.Add(t.NotBefore+tol))
			i.tat = base
		}
		if !t.Waited && i.line.Sub(now) > time.Second {
			g.After = i.line.Sub(now) - time.Second
			return nil
		}
		first := base.Add(-tol)
		n := min(t.N, int(max(now.Add(t.Ahead).Sub(first)+t.Step, 0)/t.Step))
		if n == 0 && first.Sub(now) <= t.Reach {
			n = 1
		}
		if n == 0 {
			g.After = first.Sub(now) - t.Reach
			return nil
		}
		i.tat = base.Add(time.Duration(n) * t.Step)
		g = counting.Grant{N: n, From: first.Sub(now) - c.delay/2, Step: t.Step}
		return nil
	})
	if err != nil {
		g = counting.Grant{}
	}
	return g, err
}

func (c *fakeCounter) Line(ctx context.Context, key string, n int, step time.Duration) (d time.Duration, err error) {
	err = c.call(ctx, &c.lines, func(now time.Time) error {
		i := c.item(key, now)
		from := later(i.line, later(i.tat, now))
		d, i.line = from.Sub(now), from.Add(time.Duration(n)*step)
		return nil
	})
	return d, err
}

func (c *fakeCounter) Acquire(ctx context.Context, slot, owner string, lease time.Duration) error {
	return c.call(ctx, &c.others, func(now time.Time) error {
		if o, ok := c.slots[slot]; ok && o.owner != owner && o.until.After(now) {
			return counting.ErrTaken
		}
		c.slots[slot] = owned{owner, now.Add(lease)}
		return nil
	})
}

func (c *fakeCounter) Renew(ctx context.Context, slot, owner string, lease time.Duration) error {
	return c.call(ctx, &c.others, func(now time.Time) error {
		if c.slots[slot].owner != owner {
			return counting.ErrLeaseLost
		}
		c.slots[slot] = owned{owner, now.Add(lease)}
		return nil
	})
}

func (c *fakeCounter) Release(ctx context.Context, slot, owner string) error {
	return c.call(ctx, &c.others, func(time.Time) error {
		if c.slots[slot].owner == owner {
			delete(c.slots, slot)
		}
		return nil
	})
}
