package choose

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// limitCosts checks a row of the page's table of limits: the write units of a fleet of workers with their defaults for each message of a key.
type limitCosts struct {
	row       string
	plan      limit.Plan
	processes int
	takes     time.Duration // a handler
	sends     time.Duration // between two messages; 0: a backlog
	lasts     time.Duration
}

func TestLimitCosts(t *testing.T) {
	rate := func(n int) limit.Plan { return limit.Plan{Rate: limit.Rate{N: n}} }
	for _, c := range []limitCosts{
		{row: "rate, a key at its limit: 10 a second, 5 processes", plan: rate(10), processes: 5, lasts: time.Minute},
		{row: "100 a second, 5 processes", plan: rate(100), processes: 5, lasts: 30 * time.Second},
		{row: "10 a second, 20 processes", plan: rate(10), processes: 20, lasts: time.Minute},
		{row: "rate, a key with less than one message a second", plan: rate(10), processes: 5, sends: 3 * time.Second, lasts: 5 * time.Minute},
		{row: "Concurrency, a key at its limit: handlers of 0.2 s", plan: limit.Plan{Concurrency: 3}, processes: 5, takes: 200 * time.Millisecond, lasts: time.Minute},
		{row: "the same, handlers of 2 s", plan: limit.Plan{Concurrency: 3}, processes: 5, takes: 2 * time.Second, lasts: 5 * time.Minute},
		{row: "Concurrency, a key with single messages", plan: limit.Plan{Concurrency: 3}, processes: 5, sends: 10 * time.Second, lasts: 10 * time.Minute},
	} {
		t.Run(c.row, func(t *testing.T) { inLab(t, func(x *lab) { c.run(x) }) })
	}
}

func (c limitCosts) run(x *lab) {
	queue := createQueue(x.c, "orders", nil)
	if c.sends == 0 {
		x.publish(queue, 8_000)
	}
	var mu sync.Mutex
	n := 0
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range c.processes {
		l := must.Get(limit.New([]limit.Rule{{Name: "r", Key: limit.All, Plan: c.plan, Counter: dynamostore.NewCounter(newStore(x.ddb))}},
			func(o *limit.Options) { o.Logger = slog.New(slog.DiscardHandler) }))(x)
		w := must.Get(sqsworker.New(x.c, *queue, limit.Handler(l, func(context.Context, *sqsonce.Message) error {
			mu.Lock()
			n++
			mu.Unlock()
			time.Sleep(c.takes)
			return nil
		}), func(o *sqsworker.Options) { o.Logger = slog.New(slog.DiscardHandler) }))(x)
		all.Go(func() {
			x.must(w.Run(ctx))
			x.must(l.Close(context.Background()))
		})
	}
	for begun := time.Now(); time.Since(begun) < c.lasts; time.Sleep(max(c.sends, time.Second)) {
		if c.sends > 0 {
			x.publish(queue, 1)
		}
	}
	stop()
	all.Wait()
	units := 0.
	for _, call := range x.ddb.Calls() {
		units += call.Units
	}
	// No lower bound: how many messages a take is for depends on who receives them.
	if got, most := units/float64(n), readPage(x.T, "tenants.md").number(c.row, 1); got > most {
		x.Errorf("%d messages, %.3f write units each; the page says at most %v", n, got, most)
	}
}
