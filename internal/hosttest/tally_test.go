package hosttest

import "fmt"

// tally counts what happened in simulations.
type tally struct {
	events, invocations, throttles, failed, timedOut, killed int64 // failed, timedOut, killed: of the invocations

	starts  int64 // of handlers
	atKills int64 // of these, running when their processes died
	expired int64 // successes after the end of their leases
	repeats int64 // successes of events that had succeeded before
	doubled int64 // effects through the inbox after the first of an event
	lost    int64 // events that are neither done nor in the dead-letter queue
}

func (t *tally) add(o tally) {
	t.events += o.events
	t.invocations += o.invocations
	t.throttles += o.throttles
	t.failed += o.failed
	t.timedOut += o.timedOut
	t.killed += o.killed
	t.starts += o.starts
	t.atKills += o.atKills
	t.expired += o.expired
	t.repeats += o.repeats
	t.doubled += o.doubled
	t.lost += o.lost
}

func (t tally) String() string {
	return fmt.Sprintf("%d events, %d invocations (%d killed, %d timed out, %d with a lost response) and %d throttles; "+
		"%d handlers started, %d running at kills, %d successes after their leases; %d lost, %d repeats, %d doubled through the inbox",
		t.events, t.invocations, t.killed, t.timedOut, t.failed, t.throttles, t.starts, t.atKills, t.expired, t.lost, t.repeats, t.doubled)
}

func (s *simulation) count(f func(*tally)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.tally)
}

// check checks the queues, the records and the runs at the end of a simulation.
func (s *simulation) check() tally {
	t := &s.tally
	for _, p := range s.checker.report() {
		s.Error(p)
	}
	for _, m := range s.sqs.Messages(s.url) {
		s.Errorf("in the queue: %s, received %d times", m.Body, m.ReceiveCount)
	}
	dead := map[string]bool{}
	for _, m := range s.sqs.Messages(s.dlq) {
		name := m.Attributes["event-id"]
		if dead[name] = true; m.Attributes["reject-reason"] == "" || !s.plan.rejected[name] {
			s.Errorf("%s is in the dead-letter queue, reason %q, rejected %t", name, m.Attributes["reject-reason"], s.plan.rejected[name])
		}
	}
	effects := s.effects()
	for name := range s.plan.events {
		t.events++
		done, rejected := s.record(name).completed(), s.plan.rejected[name]
		if done == rejected || dead[name] != rejected {
			t.lost++
			s.Errorf("%s is lost: completed %t, in the dead-letter queue %t; the handler rejects it: %t", name, done, dead[name], rejected)
		}
		s.checkEvent(name, effects[name])
	}
	if s.fifo {
		s.checkOrder(s.plan.messages)
	}
	return *t
}

// checkEvent checks the runs of one event. A success after another one is allowed only if a run died with its process, when
// it may have had its effect, or was abandoned and went on after its lease.
func (s *simulation) checkEvent(name string, effects int) {
	t := &s.tally
	var successes, killed, expired int64
	for _, r := range s.checker.runs(name) {
		t.starts++
		successes += count(r.effect)
		killed += count(r.killed)
		expired += count(r.expired)
	}
	t.atKills += killed
	t.expired += expired
	repeats := max(successes-1, 0)
	t.repeats += repeats
	if repeats > killed+expired {
		s.Errorf("%s succeeded %d times; %d of its runs died with their processes, %d went on after their lease", name, successes, killed, expired)
	}
	// A process that serves several invocations is never frozen, and renews the lease of an abandoned handler.
	if expired > 0 && (!s.plan.abandons || s.plan.perProcess > 1) {
		s.Errorf("%s: %d successes after the end of a lease", name, expired)
	}
	if s.plan.inbox && !s.plan.rejected[name] && effects != 1 {
		t.doubled += int64(max(effects-1, 0))
		s.Errorf("%s had its effect %d times through the inbox", name, effects)
	}
}

func count(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
