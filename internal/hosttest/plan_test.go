package hosttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqsonce/sqsonce"
)

// plan is a simulation of the function. It is drawn before the simulation starts.
type plan struct {
	seed        uint64
	fifo        bool
	inbox       bool // the effect is a write in the record's own transaction
	abandons    bool // some handlers ignore their context and go on after the response
	batch       int
	concurrency int // invocations at once
	perProcess  int // invocations of one process at once
	messages    []message
	events      map[string][]step // what the handler does in each run of an event; the last step repeats
	rejected    map[string]bool
	invocations []disruption // of each attempt to invoke, again and again
	outages     []outage     // of SQS, for the function only
}

// step is what the handler does in one run.
type step struct {
	takes   time.Duration
	ignores bool   // its context
	end     script // nil: success
}

type outage struct{ at, length time.Duration }

// disruption is what happens to an invocation.
type disruption struct {
	kind  disruptionKind
	after time.Duration // of a kill, from the start of the invocation
}

type disruptionKind int

const (
	healthy  disruptionKind = iota
	throttle                // no environment is free
	failing                 // the response is lost, and the process lives
	stalled                 // the response comes after the deadline, and the process dies there
	killed                  // the process dies at a random instant, in this invocation or a later one
)

var errFlaky = errors.New("flaky")

func drawPlan(seed uint64, events int) plan {
	r := rand.New(rand.NewPCG(seed, 0x686f7374))
	p := plan{
		seed: seed, fifo: seed%2 == 1, inbox: seed/2%2 == 1, abandons: seed/4%2 == 1,
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
		if r.IntN(10) == 0 { // an event is sent once more
			p.messages = append(p.messages, message{name: p.messages[r.IntN(len(p.messages))].name, copy: 1 + i})
		}
	}
	for at := time.Duration(0); at < time.Hour; {
		o := outage{at, time.Duration(1+r.IntN(20)) * time.Second}
		p.outages = append(p.outages, o)
		at += o.length + time.Duration(r.IntN(100))*time.Second
	}
	for range 1000 {
		p.invocations = append(p.invocations, drawDisruption(r))
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
			s.takes = 5 * time.Minute // longer than the invocation
		case 4, 5:
			if p.abandons {
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

// drawLength returns a mostly short time, so that most invocations end in time.
func drawLength(r *rand.Rand) time.Duration {
	if r.IntN(8) == 0 {
		return time.Duration(r.IntN(15_000)) * time.Millisecond
	}
	return time.Duration(r.IntN(200)) * time.Millisecond
}

func drawDisruption(r *rand.Rand) disruption {
	switch n := r.IntN(100); {
	case n < 8:
		return disruption{kind: throttle}
	case n < 12:
		return disruption{kind: failing}
	case n < 14:
		return disruption{kind: stalled}
	case n < 32:
		// Most invocations are short; a kill after a long time hits a later one.
		scale := []int{50, 500, 5_000, 30_000}[r.IntN(4)]
		return disruption{kind: killed, after: time.Duration(r.IntN(scale*1000)) * time.Microsecond}
	}
	return disruption{}
}
