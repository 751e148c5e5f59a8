package control

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/workerkit"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// reading is what the reads have said.
type reading struct {
	state  State     // of the last read that succeeded
	owner  string    // of its record
	at     time.Time // of that read
	err    error     // of the last read
	warned time.Time
}

// inForce is the state at now: no state outlives its end.
func (r reading) inForce(now time.Time) State {
	if !now.Before(r.state.Until) {
		return State{}
	}
	return r.state
}

// watch is the goroutine that reads.
type watch struct {
	stop  context.CancelFunc
	ended chan struct{}
	first chan struct{} // closed after the first read
	until *time.Timer   // the end of the state that is in force; nil: none is
}

// attach is called when a worker starts.
func (c *Control) attach(w *sqsworker.Worker) (detach func()) {
	c.mu.Lock()
	if c.watch == nil {
		ctx, stop := context.WithCancel(context.Background())
		c.watch = &watch{stop: stop, ended: make(chan struct{}), first: make(chan struct{})}
		go c.run(ctx, c.watch)
	}
	o := &obedience{worker: w} // a worker that has the hooks twice has two
	c.workers[o] = struct{}{}
	first := c.watch.first
	c.obey() // what was read for the others
	c.mu.Unlock()
	select {
	case <-first:
	case <-time.After(startTimeout):
	}
	return func() { c.detach(o) }
}

func (c *Control) detach(o *obedience) {
	c.mu.Lock()
	o.become(State{})
	delete(c.workers, o)
	if len(c.workers) > 0 {
		c.mu.Unlock()
		return
	}
	last := c.watch
	c.watch = nil
	if last.until != nil {
		last.until.Stop()
	}
	c.mu.Unlock()
	last.stop()
	select {
	case <-last.ended:
	case <-time.After(readTimeout): // a store that does not return when its context ends
	}
}

// answer is what a read has said.
type answer struct {
	Snapshot
	asked time.Time
	err   error
}

func (c *Control) run(ctx context.Context, w *watch) {
	defer close(w.ended)
	var answers chan answer // of the read that is under way: at most one
	for first := true; ; first = false {
		if answers == nil {
			answers = make(chan answer, 1)
			go c.read(ctx, answers)
		}
		var a answer
		select {
		case a = <-answers:
			answers = nil
		case <-time.After(readTimeout + time.Second):
			a.err = errDeaf
		}
		if ctx.Err() != nil {
			return
		}
		c.learn(w, a)
		if first {
			close(w.first)
		}
		if !host.Wait(ctx, c.o.Every+rand.N(c.o.Every/5)) {
			return
		}
	}
}

// errDeaf is what is learned of a read until it returns.
var errDeaf = errors.New("store doesn't answer, and ignores the end of the call's context")

func (c *Control) read(ctx context.Context, to chan<- answer) {
	a := answer{asked: time.Now()}
	host.Run(func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		a.Snapshot, err = Read(ctx, c.store, c.consumer)
		return err
	}, func(err error) {
		a.err = err
		to <- a
	})
}

// learn has the workers obey what a read has said.
func (c *Control) learn(w *watch, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch != w {
		return // it has been stopped
	}
	now, l := time.Now(), &c.last
	before := l.inForce(now)
	l.err = a.err
	if a.err != nil {
		if now.Sub(l.warned) >= warnAgain {
			l.warned = now
			c.log.Warn("control: the state can't be read: what was read last stays in force until its end", "in_force", before.String(), "error", a.err)
		}
		return
	}
	if changed := a.seen.Owner != l.owner; changed && !(before.Open() && a.Open()) {
		c.log.Info("control: the state has changed", "state", a.State.String())
	}
	l.state, l.owner, l.at, l.warned = a.State, a.seen.Owner, a.asked, time.Time{}
	c.obey()
}

// obey has the workers become what is in force, now and at its end.
func (c *Control) obey() {
	now := time.Now()
	s := c.last.inForce(now)
	for o := range c.workers {
		o.become(s)
	}
	if c.watch.until != nil {
		c.watch.until.Stop()
		c.watch.until = nil
	}
	if !s.Open() {
		w := c.watch
		w.until = time.AfterFunc(s.Until.Sub(now), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.watch != w {
				return
			}
			if c.last.inForce(time.Now()).Open() { // else the clock was set
				c.log.Info("control: the state's time has passed", "state", s.String())
			}
			c.obey()
		})
	}
}

// obedience is what a worker has been made to do.
type obedience struct {
	worker  *sqsworker.Worker
	state   State
	release func()
}

// become holds the worker, limits it, or releases it. What held it before ends last, so that the worker is never free between two states.
func (o *obedience) become(s State) {
	if o.state.Paused == s.Paused && o.state.Concurrency == s.Concurrency {
		return
	}
	before := o.release
	o.state, o.release = s, nil
	switch {
	case s.Paused:
		o.release = workerkit.Hold(o.worker, "control: "+s.String())
	case s.Concurrency > 0:
		o.release = workerkit.Limit(o.worker, s.Concurrency, "control: "+s.String())
	}
	if before != nil {
		before()
	}
}
