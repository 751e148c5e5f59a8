package sqsworker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// orderPlan is drawn before the bubble begins: rapid must neither draw nor fail inside it.
type orderPlan struct {
	Groups, PerGroup int
	Fail             map[string]int // body: how often its handler fails
	MaxAttempts      int
	Slow             map[string]time.Duration
	Rules            []fault.Rule
	StopAt           time.Duration // of the first of two workers, one after the other
}

func drawOrderPlan(rt *rapid.T) orderPlan {
	p := orderPlan{
		Groups:      rapid.IntRange(1, 4).Draw(rt, "groups"),
		PerGroup:    rapid.IntRange(1, 12).Draw(rt, "perGroup"),
		MaxAttempts: rapid.SampledFrom([]int{1, 2, 3}).Draw(rt, "max attempts"),
		StopAt:      time.Duration(rapid.IntRange(0, 60_000).Draw(rt, "stopMillis")) * time.Millisecond,
		Fail:        map[string]int{}, Slow: map[string]time.Duration{},
	}
	for g := range p.Groups {
		for n := range p.PerGroup {
			body := fmt.Sprintf("g%d:%d", g, n)
			if k := rapid.IntRange(-6, 4).Draw(rt, "fail "+body); k > 0 {
				p.Fail[body] = k
			}
			if k := rapid.IntRange(-6, 30).Draw(rt, "seconds "+body); k > 20 {
				p.Slow[body] = time.Duration(k) * time.Second
			}
		}
	}
	for i := range rapid.IntRange(0, 6).Draw(rt, "faults") {
		r := fault.Rule{
			Op:    rapid.SampledFrom([]string{"ReceiveMessage", opDelete, opChange}).Draw(rt, fmt.Sprint("op", i)),
			Nth:   rapid.IntRange(1, 12).Draw(rt, fmt.Sprint("nth", i)),
			Times: rapid.IntRange(1, 2).Draw(rt, fmt.Sprint("times", i)),
		}
		kinds := []fault.Kind{fault.Error, fault.LoseReply, fault.Reset}
		if r.Op != "ReceiveMessage" {
			kinds = append(kinds, fault.FailEntries, fault.DropEntries)
		}
		r.Do = rapid.SampledFrom(kinds).Draw(rt, fmt.Sprint("do", i))
		if r.Do == fault.Error || r.Do == fault.FailEntries {
			r.Code = rapid.SampledFrom([]string{"InternalError", "RequestThrottled"}).Draw(rt, fmt.Sprint("code", i))
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

// TestOrderUnderFailures: whatever fails, each message succeeds once, in the order of its group.
func TestOrderUnderFailures(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawOrderPlan(rt)
		var problem string
		synctest.Test(t, func(t *testing.T) { problem = runOrderPlan(t, p) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

func runOrderPlan(t *testing.T, p orderPlan) string {
	srv := memsqs.New(func(o *memsqs.Options) { o.Faults.Rules = p.Rules })
	defer srv.Close()
	x := newFixture(t, srv, setup{fifo: true})
	for n := range p.PerGroup {
		for g := range p.Groups {
			x.send(fmt.Sprintf("g%d:%d", g, n))
		}
	}
	var mu sync.Mutex
	var done []string
	failed := map[string]int{}
	handler := func(ctx context.Context, m *sqsonce.Message) error {
		if until(ctx, time.Second+p.Slow[m.Body]); ctx.Err() != nil {
			return context.Cause(ctx)
		}
		mu.Lock()
		defer mu.Unlock()
		if failed[m.Body] < p.Fail[m.Body] {
			failed[m.Body]++
			return errTest
		}
		done = append(done, m.Body)
		return nil
	}
	opts := func(o *Options) {
		o.VisibilityTimeout, o.MaxAttempts, o.WaitTime = 10*time.Second, p.MaxAttempts, 5*time.Second
		o.Backoff = func(int) time.Duration { return 2 * time.Second }
	}
	first := x.start(handler, opts)
	time.Sleep(p.StopAt)
	if err := first.stop(); err != nil {
		return fmt.Sprintf("first worker: %v", err)
	}
	second := x.start(handler, opts)
	for range 2000 {
		if len(x.queued()) == 0 {
			break
		}
		time.Sleep(5 * time.Second)
	}
	time.Sleep(time.Minute) // a delete whose answer was lost is sent again
	if err := second.stop(); err != nil {
		return fmt.Sprintf("second worker: %v", err)
	}
	if left := len(x.queued()); left > 0 || len(done) != p.Groups*p.PerGroup {
		return fmt.Sprintf("%d left, %d done of %d", left, len(done), p.Groups*p.PerGroup)
	}
	next := map[string]int{}
	for _, body := range done {
		g, n, _ := strings.Cut(body, ":")
		if n != fmt.Sprint(next[g]) {
			return fmt.Sprintf("group %s: %s handled, want %d first: %v", g, n, next[g], done)
		}
		next[g]++
	}
	return ""
}

// newGroup returns a loop with n messages of a group. The first one is the head, and waits for a slot.
func newGroup(t *testing.T, n int) (*loop, []*delivery) {
	t.Helper()
	l := newTestLoop(t)
	l.fifo = true
	var ds []*delivery
	for i := range n {
		d := l.addTest(fmt.Sprint(i), 1)
		d.m.Group = "g"
		l.advance(l.joinGroup(d))
		ds = append(ds, d)
	}
	return l, ds
}

// Of two copies with the same receive count the later one counts. The list of what runs has it too.
func TestNewerHandleIsAdopted(t *testing.T) {
	t.Parallel()
	l, ds := newGroup(t, 1)
	l.setState(ds[0], running)
	l.counters.running.add(ds[0])
	for _, c := range []struct {
		count int
		want  string
	}{{1, "1"}, {0, "1"}, {2, "2"}} {
		le := newLease(fmt.Sprint(c.count), c.count, receiveOrder{}, time.Now(), 30*time.Second, 0)
		if l.addDelivery(incoming{m: ds[0].m}, le) != nil || ds[0].lease.handle != c.want {
			t.Errorf("after a copy with receive count %d: handle %q, want %q", c.count, ds[0].lease.handle, c.want)
		}
	}
	until := ds[0].lease.anchor.Add(ds[0].lease.span)
	if all, _ := l.listRunning(1); all[0].ReceiveCount != 2 || time.Until(until)-all[0].Lease > time.Second {
		t.Errorf("got %+v, want receive count 2, hidden until %s", all[0], until)
	}
}

// A rejected message whose lease was lost meanwhile is not sent to the dead-letter queue: middleware learns it. That of any
// other outcome has settled already.
func TestOrphanIsSettled(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[sqsonce.OutcomeKind]int{sqsonce.OutcomeRejected: 1, sqsonce.OutcomeDone: 0, sqsonce.OutcomeFailed: 0} {
		l, ds := newGroup(t, 1)
		settled := 0
		ctx, _ := settle.New(t.Context())
		settle.Later(ctx, func(deadLettered bool) {
			settled++
			if deadLettered {
				t.Error("settled as dead-lettered")
			}
		})
		l.orphanReturned(ds[0], result{outcome: outcome, handler: ctx})
		if l.calls.Wait(); settled != want {
			t.Errorf("%v: settled %d times, want %d", outcome, settled, want)
		}
	}
}

// A group without a head can be stopped too.
func TestStopOfAGroupWithoutAHead(t *testing.T) {
	t.Parallel()
	l, ds := newGroup(t, 1)
	g := ds[0].group
	g.head, g.followers = nil, []*delivery{ds[0]}
	l.stopGroup(g)
	if ds[0].state != gone || len(l.deliveries) != 0 {
		t.Errorf("the follower is in state %d", ds[0].state)
	}
}

// A message that lost its lease takes its whole group along, but for a head that runs.
func TestLostLeaseStopsItsGroup(t *testing.T) {
	t.Parallel()
	for _, state := range []state{ready, held, running} {
		l, ds := newGroup(t, 3)
		l.setState(ds[0], state)
		l.loseLease(ds[1], "test", nil)
		if runs := state == running; runs != (ds[0].state == running) || runs == ds[0].lease.lost {
			t.Errorf("state %d: the head is in state %d, its lease lost: %t", state, ds[0].state, ds[0].lease.lost)
		}
		for _, d := range ds[1:] {
			if d.state != gone || !d.lease.lost {
				t.Errorf("state %d: a follower is in state %d, its lease lost: %t", state, d.state, d.lease.lost)
			}
		}
	}
}
