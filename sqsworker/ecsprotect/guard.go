package ecsprotect

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/workerkit"
	"github.com/sqsonce/sqsonce/sqsworker"
)

const (
	look         = 2 * time.Second // between two looks at the handlers
	firstBackoff = 5 * time.Second
	longBackoff  = 2 * time.Minute
)

// Guard protects the task of this process. The workers of a process share one.
type Guard struct {
	o Options

	mu      sync.Mutex
	workers map[*sqsworker.Worker]struct{} // those that run
	stop    context.CancelFunc             // ends the goroutine, which exists while there are any
	ended   chan struct{}
	status  Status
}

// New returns a Guard. It makes no call, and starts nothing.
func New(optFns ...func(*Options)) (*Guard, error) {
	var o Options
	for _, f := range optFns {
		f(&o)
	}
	o.setDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Guard{o: o, workers: map[*sqsworker.Worker]struct{}{}}, nil
}

// Hooks returns the hooks of a worker whose handlers the Guard looks at. Several workers may have them.
func (g *Guard) Hooks() sqsworker.Hooks {
	if g.o.uri == "" {
		return sqsworker.Hooks{}
	}
	return sqsworker.Hooks{Attach: g.attach}
}

// Status is the state of a [Guard].
type Status struct {
	Until  time.Time // until when the task is protected; zero: it is not, or that is unknown
	Drains bool      // the workers take no messages, so that ECS can stop the task soon
	Err    error     // of the last call to the agent, or nil
}

// Status returns the Guard's state. You may call it at any time, from any goroutine.
func (g *Guard) Status() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.status
	if !s.Until.After(time.Now()) {
		s.Until = time.Time{}
	}
	return s
}

func (g *Guard) attach(w *sqsworker.Worker) (detach func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.workers) == 0 {
		before := g.ended
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		g.stop, g.ended = stop, ended
		go func() {
			defer close(ended)
			if before != nil {
				<-before
			}
			(&watch{Guard: g, holds: map[*sqsworker.Worker]func(){}}).run(ctx)
		}()
	}
	g.workers[w] = struct{}{}
	return func() {
		g.mu.Lock()
		delete(g.workers, w)
		last, stop, ended := len(g.workers) == 0, g.stop, g.ended
		g.mu.Unlock()
		if last {
			stop()
			<-ended
		}
	}
}

func (g *Guard) attached() []*sqsworker.Worker {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.workers))
}

// after is Options.After, or its default by the workers.
func (g *Guard) after(workers []*sqsworker.Worker) time.Duration {
	if g.o.After > 0 {
		return g.o.After
	}
	after := time.Duration(math.MaxInt64)
	for _, w := range workers {
		after = min(after, w.Options().StopTimeout-10*time.Second)
	}
	return max(after, time.Second)
}

// oldest returns how long the oldest handler has run that is not stuck; 0: none does.
func oldest(workers []*sqsworker.Worker) (age time.Duration) {
	for _, w := range workers {
		for limit := 1; ; limit *= 16 {
			running, total := workerkit.Running(w, limit)
			i := slices.IndexFunc(running, func(h host.RunningHandler) bool { return !h.Stuck })
			if i >= 0 {
				age = max(age, time.Since(running[i].Since), 1)
			}
			if i >= 0 || len(running) == total || len(running) < limit {
				break
			}
		}
	}
	return age
}
