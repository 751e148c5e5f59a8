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
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// orderPlan is drawn before the bubble begins: rapid must neither draw nor fail inside it.
type orderPlan struct {
	Groups, PerGroup int
	Fail             map[string]int // body: how often its handler fails
	Tries            int
	Slow             map[string]time.Duration
	Rules            []fault.Rule
	StopAt           time.Duration // of the first of two workers, one after the other
}

func drawOrderPlan(rt *rapid.T) orderPlan {
	p := orderPlan{
		Groups:   rapid.IntRange(1, 4).Draw(rt, "groups"),
		PerGroup: rapid.IntRange(1, 12).Draw(rt, "perGroup"),
		Tries:    rapid.SampledFrom([]int{1, 2, 3}).Draw(rt, "tries"),
		StopAt:   time.Duration(rapid.IntRange(0, 60_000).Draw(rt, "stopMillis")) * time.Millisecond,
		Fail:     map[string]int{}, Slow: map[string]time.Duration{},
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
		select {
		case <-time.After(time.Second + p.Slow[m.Body]):
		case <-ctx.Done():
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
		o.VisibilityTimeout, o.MaxAttempts, o.WaitTime = 10*time.Second, p.Tries, 5*time.Second
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
