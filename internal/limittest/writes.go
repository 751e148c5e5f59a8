package limittest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/limit"
)

type writesKey struct{}

// CountWrite counts a write by the counter's call that ctx belongs to. It is for harnesses with CountsWrites, and does nothing elsewhere.
func CountWrite(ctx context.Context) {
	if n, ok := ctx.Value(writesKey{}).(*atomic.Int64); ok {
		n.Add(1)
	}
}

// writer is a counter with the number of its writes, which CountWrite finds in the contexts of its calls.
type writer struct {
	limit.Counter
	n atomic.Int64
}

func newWriter(c limit.Counter) *writer { return &writer{Counter: c} }

func (w *writer) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, writesKey{}, &w.n)
}

func (w *writer) Take(ctx context.Context, t counting.Take) (counting.Grant, error) {
	return w.Counter.Take(w.in(ctx), t)
}

func (w *writer) Line(ctx context.Context, key string, n int, step time.Duration) (time.Duration, error) {
	return w.Counter.Line(w.in(ctx), key, n, step)
}

func (w *writer) Acquire(ctx context.Context, slot, owner string, lease time.Duration) error {
	return w.Counter.Acquire(w.in(ctx), slot, owner, lease)
}

func (w *writer) Renew(ctx context.Context, slot, owner string, lease time.Duration) error {
	return w.Counter.Renew(w.in(ctx), slot, owner, lease)
}

func (w *writer) Release(ctx context.Context, slot, owner string) error {
	return w.Counter.Release(w.in(ctx), slot, owner)
}

// writes returns the writes that a counter has made.
func (x *exam) writes(c limit.Counter) float64 {
	if w, ok := c.(*writer); ok {
		return float64(w.n.Load())
	}
	return x.Writes(c)
}

// fleetCosts expects a fleet whose messages wait at that rate to make so many writes a start at most. A machine that stalls loses tokens,
// so in real time it may be twice as many, in one of three tries.
func (x *exam) fleetCosts(rate int, most float64) {
	tries := 1
	if x.RealTime {
		tries, most = 3, 2*most
	}
	var writes, starts float64
	for i := range tries {
		if writes, starts = x.fleetCost("fleet"+strconv.Itoa(i), rate); starts > 0 && writes <= most*starts {
			return
		}
	}
	x.fatalf("five processes at %d a second: got %g writes for %g starts, want at most %g for each", rate, writes, starts, most)
}

// fleetCost returns the writes and the starts in ten seconds of five processes in which messages wait.
func (x *exam) fleetCost(name string, rate int) (writes, starts float64) {
	const processes, waiting, warm, lasts = 5, 30, 3 * time.Second, 10 * time.Second
	ctx, stop := context.WithCancel(x.ctx)
	var started atomic.Int64
	var hosts sync.WaitGroup
	var counters []limit.Counter
	var limiters []*limit.Limiter
	var failed error
	for range processes {
		c := x.process()
		l, err := limit.New([]limit.Rule{{Name: name, Key: limit.All, Plan: limit.Plan{Rate: limit.Rate{N: rate}}, Counter: c}})
		if failed = errors.Join(failed, err); err != nil {
			break
		}
		counters, limiters = append(counters, c), append(limiters, l)
		for i := range waiting {
			hosts.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					m := &sqsonce.Message{ID: strconv.Itoa(i) + "-" + strconv.Itoa(n), ReceiveCount: 1}
					runHeld(ctx, l, m, func(context.Context) error { started.Add(1); return nil })
				}
			})
		}
	}
	count := func() (w, s float64) {
		for _, c := range counters {
			w += x.writes(c)
		}
		return w, float64(started.Load())
	}
	time.Sleep(warm)
	w, s := count()
	time.Sleep(lasts)
	writes, starts = count()
	stop()
	hosts.Wait()
	for _, l := range limiters {
		failed = errors.Join(failed, l.Close(context.WithoutCancel(x.ctx)))
	}
	if failed != nil {
		x.fatalf("a limiter of the fleet: got error %v, want none", failed)
	}
	return writes - w, starts - s
}

// runHeld runs a message as a host does that holds all of them.
func runHeld(ctx context.Context, l *limit.Limiter, m *sqsonce.Message, f func(context.Context) error) {
	for ctx.Err() == nil {
		held, _ := settle.New(settle.WithHolding(ctx))
		settle.HeldBy(held, holdsAll{})
		err := l.Do(held, m, f)
		if err == nil {
			return
		}
		turn, _ := settle.TurnOf(err)
		select {
		case <-turn.Ready:
		case <-time.After(sqsonce.OutcomeOf(err).After):
		case <-ctx.Done():
			if turn.Left != nil {
				turn.Left()
			}
		}
	}
}

type holdsAll struct{}

func (holdsAll) Room(string) (held, holds bool) { return true, true }
func (holdsAll) InDebt() bool                   { return false }
