package hosttest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// witness sees every start and end of the handler, in all processes, and checks what must hold at each.
type witness struct {
	look func(event string) record

	mu       sync.Mutex
	events   map[string]*story
	running  map[*run]bool       // in processes that live, until their guard has returned
	order    map[string][]string // names of the events that succeeded, by group
	problems []string
}

// story is what became of one event.
type story struct {
	runs []*run
}

// run is one start of the handler.
type run struct {
	event   string
	n       int // of the event, from 1
	process *process
	m       *sqsonce.Message
	begun   time.Time
	lease   dedup.Lease // at the start
	ctx     context.Context
	failed  bool // it returned an error, so that its record is released; after a success its lease goes on
	killed  bool // its process died before its guard returned
	effect  bool // it had its effect, just before it returned nil
	ghost   bool // and that was after the end of its lease: it was abandoned, and went on
}

func newWitness(look func(string) record) *witness {
	return &witness{look: look, events: map[string]*story{}, running: map[*run]bool{}, order: map[string][]string{}}
}

func (w *witness) storyLocked(event string) *story {
	s := w.events[event]
	if s == nil {
		s = &story{}
		w.events[event] = s
	}
	return s
}

func (w *witness) problemLocked(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

type deliveryKey struct{}

// delivery is one call of the guarded handler.
type delivery struct {
	p         *process
	m         *sqsonce.Message
	completed bool // the record, before the call
	run       *run // if it came to one
}

// around goes outside the guard, where a delivery arrives.
func (w *witness) around(p *process, h sqsonce.Handler) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		d := &delivery{p: p, m: m, completed: w.look(m.Attributes[sqsonce.AttrEventID].String).completed()}
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.running, d.run)
		}()
		return h(context.WithValue(ctx, deliveryKey{}, d), m)
	}
}

// watch goes inside the guard, around what the handler does.
func (w *witness) watch(ctx context.Context, s script) (err error) {
	r := w.start(ctx)
	err = errNoReturn
	defer func() { w.end(r, err) }() // also after a panic and Goexit
	err = s(ctx, r)
	return err
}

var errNoReturn = errors.New("did not return")

// start checks that the handler may start.
func (w *witness) start(ctx context.Context) *run {
	d := ctx.Value(deliveryKey{}).(*delivery)
	event := d.m.Attributes[sqsonce.AttrEventID].String
	lease, _ := dedup.LeaseFrom(ctx)
	now := w.look(event)
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.storyLocked(event)
	r := &run{event: event, n: len(s.runs) + 1, process: d.p, m: d.m, begun: time.Now(), lease: lease, ctx: ctx}
	if !d.p.alive() {
		return r // nothing it does is seen
	}
	if d.completed {
		w.problemLocked("%s: run %d started although the record was completed", event, r.n)
	}
	if !now.heldBy(lease.Owner) {
		w.problemLocked("%s: run %d started and the record is not its own: %+v", event, r.n, now)
	}
	for _, other := range s.runs {
		if l, _ := dedup.LeaseFrom(other.ctx); !other.failed && l.Until.After(r.begun) {
			w.problemLocked("%s: run %d started under the live lease of run %d, which ends in %s", event, r.n, other.n, l.Until.Sub(r.begun))
		}
		if other.lease.Fence >= lease.Fence {
			w.problemLocked("%s: run %d has fence %d, run %d had %d", event, r.n, lease.Fence, other.n, other.lease.Fence)
		}
	}
	s.runs = append(s.runs, r)
	d.run, w.running[r] = r, true
	return r
}

// kill ends a process.
func (w *witness) kill(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(p.dead)
	for r := range w.running {
		if r.process == p {
			r.killed = true
			delete(w.running, r)
		}
	}
}

// end is the handler's return. A process that is dead by then has not got so far. A success is the handler's effect.
func (w *witness) end(r *run, err error) {
	lease, _ := dedup.LeaseFrom(r.ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !r.process.alive() {
		return
	}
	if r.failed = err != nil; r.failed {
		return
	}
	r.effect, r.ghost = true, !time.Now().Before(lease.Until)
	if !r.ghost {
		g := groupOf(r.event)
		w.order[g] = append(w.order[g], r.event)
	}
}

// runs is how often the handler was started for an event.
func (w *witness) runs(event string) []*run {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*run(nil), w.storyLocked(event).runs...)
}

// report returns what went wrong.
func (w *witness) report() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.problems...)
}
