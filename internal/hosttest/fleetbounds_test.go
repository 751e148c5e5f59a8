package hosttest

import (
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// TestBoundOutage is bound 1: something that every message needs is away for 10 s to an hour. Nothing is dead-lettered, no
// group is reordered, and all is done within a minute after it and what the load takes alone.
func TestBoundOutage(t *testing.T) {
	t.Parallel()
	const fromTheStart, midway, flapping = "from the start", "midway", "flapping"
	for _, c := range []struct {
		load
		what   faultKind
		mode   mode
		length time.Duration
		when   string
	}{
		{load{standard, 1, 200 * time.Millisecond}, storeAway, refuses, 10 * time.Second, fromTheStart},
		{load{fifo, 2, 200 * time.Millisecond}, storeAway, hangs, 90 * time.Second, midway},
		{load{fifo, 5, 5 * time.Millisecond}, storeAway, breaks, 10 * time.Minute, fromTheStart},
		{load{standard, 5, 5 * time.Second}, storeAway, throttles, 3 * time.Minute, midway},
		{load{fifo, 5, 5 * time.Second}, storeAway, refuses, 10 * time.Minute, flapping},
		{load{standard, 2, 5 * time.Millisecond}, storeAway, forbids, time.Hour, fromTheStart},
		{load{fifo, 2, 200 * time.Millisecond}, storeAway, unlisted, time.Hour, midway},
		{load{fifo, 2, 200 * time.Millisecond}, dependencyAway, "", time.Hour, fromTheStart},
		{load{standard, 2, 200 * time.Millisecond}, dependencyAsks, "", time.Hour, midway},
	} {
		t.Run(fmt.Sprintf("%s/%s %s %s for %s", c.load, c.what, c.mode, c.when, c.length), func(t *testing.T) {
			t.Parallel()
			alone := c.alone(t)
			p := c.plan()
			w := window{kind: c.what, mode: c.mode, length: c.length, host: everyone}
			p.calm = c.length
			switch c.when {
			case midway:
				w.at = alone / 2
				p.calm += w.at
				p.faults = append(p.faults, w)
			case flapping: // 2 s up, 10 s down
				for w.length = 10 * time.Second; w.at < c.length; w.at += 12 * time.Second {
					p.faults = append(p.faults, w)
				}
			default:
				p.faults = append(p.faults, w)
			}
			play(t, p, func(f *fleet) {
				f.wantNoneDead()
				f.wantAllDoneBy(p.calm + time.Minute + alone)
			})
		})
	}
}

// TestBoundFailing is bound 2: all handlers fail with plain errors for ten minutes. Nothing is dead-lettered, and all is done
// within 6.5 min after it and what the load takes alone.
func TestBoundFailing(t *testing.T) {
	t.Parallel()
	for _, l := range []load{
		{standard, 5, 200 * time.Millisecond}, {fifo, 1, 200 * time.Millisecond}, {fifo, 5, 5 * time.Second},
	} {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			alone := l.alone(t)
			p := l.plan()
			p.calm = 10 * time.Minute
			p.faults = []window{{kind: badDeploy, length: p.calm, host: everyone}}
			play(t, p, func(f *fleet) {
				f.wantNoneDead()
				f.wantAllDoneBy(p.calm + 6*time.Minute + 30*time.Second + alone)
			})
		})
	}
}

// TestBoundPoison is bound 3: groups whose heads always fail, before healthy groups. In the dead-letter queue is only what
// failed MaxAttempts times; no healthy message stays behind; the healthy groups get 0.8 of the throughput that they have alone.
func TestBoundPoison(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		workers, inFlight, poison int
		refusing                  bool // the dead-letter queue
	}{
		{1, 1, 3, false}, {2, 30, 100, false}, {1, 1, 20, true}, {5, 30, 3, true},
	} {
		t.Run(fmt.Sprintf("%d workers, in flight %d, %d poison groups, refusing %t", c.workers, c.inFlight, c.poison, c.refusing), func(t *testing.T) {
			t.Parallel()
			l := load{fifo, c.workers, 200 * time.Millisecond}
			limited := func() *fleetPlan {
				p := l.plan()
				for i := range p.workers {
					p.workers[i].inFlight = c.inFlight
				}
				return p
			}
			healthy := func(e *eventPlan) bool { return e.takes == l.takes }
			var alone time.Duration
			play(t, limited(), func(f *fleet) { alone = f.lastDone(healthy) })

			p := limited()
			var sick []eventPlan
			for i := range c.poison { // a poison head and two healthy followers
				group := fmt.Sprintf("g%d", boundGroups+i)
				sick = append(sick,
					eventPlan{name: group + "-0", takes: time.Millisecond, fails: always, how: withError},
					eventPlan{name: group + "-1", takes: time.Millisecond},
					eventPlan{name: group + "-2", takes: time.Millisecond})
			}
			p.events = append(sick, p.events...)
			if c.refusing {
				p.calm = 30 * time.Minute
				p.faults = []window{{kind: dlqAway, mode: refuses, length: p.calm, host: everyone}}
			}
			play(t, p, func(f *fleet) {
				if took := f.lastDone(healthy); took > alone*5/4+time.Second {
					f.Errorf("the healthy groups take %s, alone %s", took, alone)
				}
				f.lastDone(func(e *eventPlan) bool { return !e.poison() })
				f.wantOnlyPoisonDead()
			})
		})
	}
}

// wantOnlyPoisonDead checks that the dead-letter queue has each poison event once, and nothing that did not fail MaxAttempts times.
func (f *fleet) wantOnlyPoisonDead() {
	dead := map[string]int{}
	for _, m := range f.sqs.Messages(f.dlq) {
		dead[m.Attributes["event-id"]]++
	}
	for i := range f.plan.events {
		e := &f.plan.events[i]
		if want := count(e.poison()); dead[e.name] != want {
			f.complain("dead-letter queue", "%s is %d times in it, want %d: %s", e.name, dead[e.name], want, f.history(e.name, ""))
		}
		failed := 0
		for _, r := range f.checker.runs(e.name) {
			failed += count(r.failed)
		}
		if dead[e.name] > 0 && failed < boundReceives {
			f.complain("dead-lettered too early", "%s after %d tries: %s", e.name, failed, f.history(e.name, ""))
		}
	}
}

// TestBoundStandardPoison is bound 4: healthy messages that arrive behind 500 poison ones, or among them, start as soon as a
// slot is free.
func TestBoundStandardPoison(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		workers int
		takes   time.Duration
		poison  int // before the healthy ones
		every   int // each so-many-th of the others is poison too; 0: none
	}{
		{1, 200 * time.Millisecond, 500, 0}, {2, 5 * time.Millisecond, 50, 2},
	} {
		t.Run(fmt.Sprintf("%d workers, %s, %d poison, then each %d.", c.workers, c.takes, c.poison, c.every), func(t *testing.T) {
			t.Parallel()
			p := load{standard, c.workers, c.takes}.plan()
			for i := range p.events {
				e := &p.events[i]
				e.at = time.Minute + time.Duration(i)*time.Second
				if c.every > 0 && i%c.every == 0 {
					e.takes, e.fails, e.how = 5*time.Millisecond, always, withError
				}
			}
			for i := range c.poison {
				p.events = append(p.events, eventPlan{name: fmt.Sprintf("g0-p%d", i), takes: 5 * time.Millisecond, fails: always, how: withError})
			}
			sortEvents(p.events)
			p.calm = time.Minute + boundMessages*time.Second
			play(t, p, func(f *fleet) {
				for i := range p.events {
					e := &p.events[i]
					runs := f.checker.runs(e.name)
					if e.poison() || len(runs) == 0 {
						continue
					}
					if wait := runs[0].begun.Sub(f.start) - e.at; wait > time.Second {
						f.complain("started late", "%s, %s after it was sent", e.name, wait)
					}
				}
				f.wantOnlyPoisonDead()
			})
		})
	}
}

// TestBoundCutOff is bound 5: one of five workers is without its store. No event waits more than 75 s.
func TestBoundCutOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		load
		mode mode
	}{
		{load{standard, 5, 5 * time.Millisecond}, refuses},
		{load{standard, 5, 5 * time.Second}, hangs},
		{load{fifo, 5, 5 * time.Second}, refuses},
		{load{fifo, 5, 5 * time.Second}, hangs},
	} {
		t.Run(fmt.Sprint(c.load, ", ", c.mode), func(t *testing.T) {
			t.Parallel()
			p := c.plan()
			for i := range p.events {
				p.events[i].at = time.Duration(i) * time.Second
			}
			p.calm = 10 * time.Minute
			p.faults = []window{{kind: storeAway, mode: c.mode, length: p.calm, host: 0}}
			play(t, p, func(f *fleet) {
				f.wantNoneDead()
				for i := range p.events {
					e := &p.events[i]
					if wait := f.doneAt(e.name) - e.at; wait > 75*time.Second {
						f.complain("done late", "%s, %s after it was sent: %s", e.name, wait, f.history(e.name, ""))
					}
				}
			})
		})
	}
}

// TestBoundAnswers: for eleven minutes SQS does what it is asked, and its answers are lost: all of them, or those of receives. Nothing is dead-lettered, few
// messages lose a receive, and all is done a minute later, or ten where only a receive finds out that receives are answered again.
func TestBoundAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  kind
		what  faultKind
		mode  mode
		at    time.Duration
		spent int // messages that lose a receive
		again int // further receives that they lose
		late  time.Duration
	}{
		{standard, queueAway, loses, 0, 1, 0, time.Minute},
		{fifo, queueAway, loses, time.Second, 10, 0, time.Minute},
		{fifo, queueAway, swallows, time.Second, 30, 0, time.Minute},
		{standard, receivesAway, loses, time.Second, 15, 4, 10 * time.Minute},
		{standard, queueAway, cuts, time.Second, 11, 0, time.Minute},
		{fifo, receivesAway, loses, time.Second, 13, 4, 10 * time.Minute},
		{fifo, receivesAway, swallows, time.Second, 30, 4, 10 * time.Minute},
	} {
		t.Run(fmt.Sprintf("%s, %s, %s, from %s on", c.kind, c.what, c.mode, c.at), func(t *testing.T) {
			t.Parallel()
			const length = 11 * time.Minute
			p := load{c.kind, 1, 200 * time.Millisecond}.plan()
			p.events, p.calm = p.events[:200], c.at+length
			p.faults = []window{{kind: c.what, mode: c.mode, at: c.at, length: length, host: everyone}}
			play(t, p, func(f *fleet) {
				spent, again := map[string]bool{}, map[string]bool{}
				for id, all := range f.receipts {
					for _, r := range all {
						if r.lost {
							spent[id] = true
							again[fmt.Sprint(id, r.count)] = true
						}
					}
				}
				if n, further := len(spent), len(again)-len(spent); n == 0 || n > c.spent || further > c.again {
					f.Errorf("%d messages lost receives, and %d further ones, want 1 to %d, and %d", n, further, c.spent, c.again)
				}
				f.wantNoneDead()
				f.wantAllDoneBy(p.calm + c.late + time.Minute)
			})
		})
	}
}

// mostAsks is how many requests of the store a minute a worker makes in an outage: it asks six times, with seven attempts each.
const mostAsks = 50

// TestBoundCalls is bound 6: while the store is down a worker makes one call of SQS a minute at most, after the first two. It has given back
// all messages by then. Messages that it may not give back cost mostCalls, which check counts.
func TestBoundCalls(t *testing.T) {
	t.Parallel()
	for _, l := range []load{{standard, 5, 5 * time.Second}, {fifo, 2, 5 * time.Millisecond}} {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			p := l.plan()
			p.calm = 6 * time.Minute
			p.faults = []window{{kind: storeAway, mode: refuses, length: p.calm, host: everyone}}
			play(t, p, func(f *fleet) {
				f.wantNoneDead()
				for _, n := range f.nodes {
					calls, asks := 0, 0
					for minute := 2; minute < 6; minute++ {
						calls += n.calls[minute]
						asks = max(asks, n.asks[minute])
					}
					if n.index != notAWorker && (calls > 4 || asks > mostAsks) {
						f.Errorf("%s made %d calls of SQS in 4 minutes, want 4 at most, and %d of the store in one, want %d", n.name, calls, asks, mostAsks)
					}
				}
			})
		})
	}
}

// TestBoundKill is bound 7: after a kill -9 of one and of four of five workers the events that they ran start elsewhere within
// the longer of record lease and visibility timeout and 4 s.
func TestBoundKill(t *testing.T) {
	t.Parallel()
	const bound = fleetVisibility + 4*time.Second
	for _, c := range []struct {
		load
		inFlight, killed int
	}{
		{load{standard, 5, 5 * time.Second}, 10, 4}, {load{fifo, 5, 5 * time.Second}, 10, 1},
	} {
		t.Run(fmt.Sprintf("%s, in flight %d, %d killed", c.load, c.inFlight, c.killed), func(t *testing.T) {
			t.Parallel()
			p := c.plan()
			for i := range p.events { // a quarter of what one worker can do, so that it has slots for the others' events
				p.events[i].at = time.Duration(i) * 2 * time.Second
			}
			p.calm = 2 * boundMessages * time.Second
			for i := range p.workers {
				p.workers[i].inFlight = c.inFlight
				if i < c.killed {
					p.workers[i].lives = killedEvery(50*time.Second, p.calm)
				}
			}
			play(t, p, func(f *fleet) {
				for i := range p.events {
					f.checkAfterKills(p.events[i].name, bound)
				}
			})
		})
	}
}

// killedEvery returns lives that end by kills, with 10 s before the next one.
func killedEvery(length, until time.Duration) (lives []life) {
	at := time.Duration(0)
	for ; at < until; at += length + 10*time.Second {
		lives = append(lives, life{from: at, to: at + length, killed: true})
	}
	return append(lives, life{from: at, to: toTheEnd})
}

func (f *fleet) checkAfterKills(event string, bound time.Duration) {
	runs := f.checker.runs(event)
	for i, r := range runs {
		if !r.killed {
			continue
		}
		at := f.nodes[r.process].ended
		switch {
		case i+1 == len(runs):
			f.complain("not started again", "%s: %s", event, f.history(event, ""))
		case runs[i+1].begun.Sub(f.start) > at+bound:
			f.complain("started late", "%s, %s after the kill, want %s: %s", event, runs[i+1].begun.Sub(f.start)-at, bound, f.history(event, ""))
		}
	}
}

// TestBoundBesideFunctions: the store is down for 3 min, and workers and functions share the queue, which are killed and replaced until
// it works again. All is done 17 min later, and 5 min later but for the groups in which a kill had left a message undone before the
// outage, or cut a handler off when it ended. The bounds are the delays of host.UnavailableDelay, and a minute for the invocation that
// asks for the delay, the next receive and the runs of the group. A new process of a function knows a message's receives and the time of the
// first one only: it cannot hide the third one for less than 16 min, or five receives of a long outage would not last 81 min (13.7a). Leases
// and suspects end sooner. Nothing is dead-lettered but what
// was running in two crashes, the second time apart (17.7c, 17.8b), and what kills and stops took receives from: of five the outage itself
// takes three at most.
func TestBoundBesideFunctions(t *testing.T) {
	t.Parallel()
	for _, l := range []load{{standard, 2, 200 * time.Millisecond}, {fifo, 2, 200 * time.Millisecond}} {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			p := l.plan()
			const down, length = 4 * time.Minute, 3 * time.Minute
			p.calm, p.functions = down+length, 5
			for i := range p.events {
				p.events[i].at = time.Duration(i) * p.calm / boundMessages
			}
			p.workers[0].lives = killedEvery(40*time.Second, p.calm-40*time.Second)
			p.workers[1].lives = killedEvery(90*time.Second, p.calm-90*time.Second)
			for i := range p.workers[1].lives {
				p.workers[1].lives[i].killed = false // deploys
			}
			for i := range 50 {
				d := disruption{}
				if i%5 == 0 {
					d = disruption{kind: killing, after: 100 * time.Millisecond}
				}
				p.invocations = append(p.invocations, d)
			}
			p.faults = []window{{kind: storeAway, mode: refuses, at: down, length: length, host: everyone}}
			play(t, p, func(f *fleet) {
				for _, m := range f.sqs.Messages(f.dlq) {
					if name := m.Attributes[sqsonce.AttrEventID]; !f.crashedEnough(name) && f.receivesLost(m.ID) < 2 {
						f.complain("dead-lettered", "%s, received %d times: %s", name, m.ReceiveCount, f.history(name, m.ID))
					}
				}
				// The delay is 16 min where 1 and 4 min, less an eighth, explain two receives: see host.UnavailableDelay.
				marked := f.undoneSince(p.calm-5*time.Minute*7/8, down)
				soon := 0
				f.lastDone(func(e *eventPlan) bool {
					at, limit := f.doneAt(e.name), p.calm+16*time.Minute+time.Minute
					if !marked[f.lane(e.name)] {
						soon++
						limit = p.calm + 4*time.Minute + time.Minute
					}
					if at > limit {
						f.complain("done late", "%s at %s, want %s: %s", e.name, at, limit, f.history(e.name, ""))
					}
					return at >= 0 || !f.dead[e.name]
				})
				if soon < boundMessages/2 {
					f.Errorf("only %d events have to be done within 5 min", soon)
				}
			})
		})
	}
}

// undoneSince returns the lanes of the events that were received before a time and not done at a later one, or cut off by a kill after it.
func (f *fleet) undoneSince(received, at time.Duration) map[string]bool {
	lanes := map[string]bool{}
	for i := range f.plan.events {
		name := f.plan.events[i].name
		done := f.doneAt(name)
		for _, r := range f.checker.runs(name) {
			undone := (done < 0 || done > at) && f.receipts[r.m.ID][0].at < received
			lanes[f.lane(name)] = lanes[f.lane(name)] || undone || r.killed && f.nodes[r.process].ended > at
		}
	}
	return lanes
}

// receivesLost is how many receives of a message ended with their processes.
func (f *fleet) receivesLost(id string) (n int) {
	for _, r := range f.receipts[id] {
		left := r.gaveBack
		if r.node.index == notAWorker { // it had answered by then
			left = r.at + functionTimeout
		}
		n += count(r.node.ended > 0 && (left == 0 || left >= r.node.ended))
	}
	return n
}
