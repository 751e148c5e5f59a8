package hosttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqsonce/sqsonce"
)

// plan is one simulated run of the function, drawn before it starts.
type plan struct {
	seed        uint64
	fifo        bool
	inbox       bool // the effect is a write in the record's own transaction
	ghosts      bool // some handlers ignore their context and go on after the answer
	batch       int
	concurrency int // invocations at once
	perProcess  int // invocations of one process at once
	messages    []message
	events      map[string][]step // what the handler does in each run; after them it succeeds at once
	rejected    map[string]bool
	invocations []accident // of each attempt to invoke, over and over
	outages     []outage   // of SQS, for the function alone
}

// step is what the handler does in one run.
type step struct {
	takes   time.Duration
	ignores bool   // its context
	end     script // nil: success
}

type outage struct{ at, length time.Duration }

// accident is what becomes of an invocation.
type accident struct {
	kind  accidentKind
	after time.Duration // of a kill, from the start of the invocation
}

type accidentKind int

const (
	healthy  accidentKind = iota
	throttle              // no environment is free
	failing               // the answer is lost, and the process lives
	stalled               // the answer comes too late, and the process dies at the deadline
	killed                // the process dies at some instant, in this invocation or a later one
)

var errFlaky = errors.New("flaky")

func drawPlan(seed uint64, events int) plan {
	r := rand.New(rand.NewPCG(seed, 0x686f7374))
	p := plan{
		seed: seed, fifo: seed%2 == 1, inbox: seed/2%2 == 1, ghosts: seed/4%2 == 1,
		batch: 1 + r.IntN(10), concurrency: 2 + r.IntN(30), perProcess: 1,
		events: map[string][]step{}, rejected: map[string]bool{},
	}
	if seed/8%2 == 1 {
		p.perProcess = 2 + r.IntN(4)
	}
	groups := 1 + r.IntN(events/10)
	for i := range events {
		m := message{name: fmt.Sprintf("g%d-%d", r.IntN(groups), i)}
		p.messages = append(p.messages, m)
		p.events[m.name] = p.drawSteps(r, m.name)
		if r.IntN(10) == 0 { // sent once more, at once or behind others
			p.messages = append(p.messages, message{name: p.messages[r.IntN(len(p.messages))].name, copy: 1 + i})
		}
	}
	for at := time.Duration(0); at < time.Hour; {
		o := outage{at, time.Duration(1+r.IntN(20)) * time.Second}
		p.outages = append(p.outages, o)
		at += o.length + time.Duration(r.IntN(100))*time.Second
	}
	for range 1000 {
		p.invocations = append(p.invocations, drawAccident(r))
	}
	return p
}

func (p *plan) drawSteps(r *rand.Rand, name string) []step {
	var steps []step
	p.rejected[name] = r.IntN(50) == 0
	for r.IntN(5) == 0 {
		s := step{takes: drawLength(r), end: fail(errFlaky)}
		switch r.IntN(8) {
		case 0:
			s.end = panics
		case 1:
			s.end = exits
		case 2:
			s.end = fail(sqsonce.RetryAfter(time.Duration(r.IntN(100))*time.Second, errFlaky))
		case 3:
			s.takes = 5 * time.Minute // until its context ends
		case 4, 5:
			if p.ghosts {
				s.takes, s.ignores = time.Duration(20+r.IntN(60))*time.Second, true
				if r.IntN(2) == 0 && !p.rejected[name] {
					s.end = nil
				}
			}
		}
		steps = append(steps, s)
	}
	last := step{takes: drawLength(r)}
	if p.rejected[name] {
		last.end = fail(sqsonce.Reject(errCard))
	}
	return append(steps, last)
}

// drawLength is mostly short, so that most invocations end in time.
func drawLength(r *rand.Rand) time.Duration {
	if r.IntN(8) == 0 {
		return time.Duration(r.IntN(15_000)) * time.Millisecond
	}
	return time.Duration(r.IntN(200)) * time.Millisecond
}

func drawAccident(r *rand.Rand) accident {
	switch n := r.IntN(100); {
	case n < 8:
		return accident{kind: throttle}
	case n < 12:
		return accident{kind: failing}
	case n < 14:
		return accident{kind: stalled}
	case n < 32:
		// Most invocations are short; a late kill hits one that comes after.
		scale := []int{50, 500, 5_000, 30_000}[r.IntN(4)]
		return accident{kind: killed, after: time.Duration(r.IntN(scale*1000)) * time.Microsecond}
	}
	return accident{}
}
