package hosttest

import "fmt"

// tally is what happened in simulated runs.
type tally struct {
	events, invocations, throttles, failed, timedOut, killed int64 // invocations by what became of them

	starts  int64 // of handlers
	atKills int64 // of these, running when their process died
	ghosts  int64 // successes after the end of their lease
	repeats int64 // successes of events that had succeeded before
	doubled int64 // effects through the inbox beyond an event's first
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
	t.ghosts += o.ghosts
	t.repeats += o.repeats
	t.doubled += o.doubled
	t.lost += o.lost
}

func (t tally) String() string {
	return fmt.Sprintf("%d events, %d invocations (%d killed, %d timed out, %d with a lost answer) and %d throttles; "+
		"%d handlers started, %d running at kills, %d late successes; %d lost, %d repeats, %d doubled through the inbox",
		t.events, t.invocations, t.killed, t.timedOut, t.failed, t.throttles, t.starts, t.atKills, t.ghosts, t.lost, t.repeats, t.doubled)
}

func (s *simulation) count(f func(*tally)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.tally)
}

// verdict checks what is left when all is settled.
func (s *simulation) verdict() tally {
	t := &s.tally
	for _, p := range s.witness.report() {
		s.Error(p)
	}
	for _, m := range s.sqs.Messages(s.url) {
		s.Errorf("left in the queue: %s, received %d times", m.Body, m.ReceiveCount)
	}
	dead := map[string]bool{}
	for _, m := range s.sqs.Messages(s.dlq) {
		name := m.Attributes["event-id"]
		if dead[name] = true; m.Attributes["reject-reason"] == "" || !s.plan.rejected[name] {
			s.Errorf("%s is in the dead-letter queue, reason %q, rejected %t", name, m.Attributes["reject-reason"], s.plan.rejected[name])
		}
	}
	balances := s.balances()
	for name := range s.plan.events {
		t.events++
		done, rejected := s.record(name).completed(), s.plan.rejected[name]
		if done == rejected || dead[name] != rejected {
			t.lost++
			s.Errorf("%s is lost: completed %t, in the dead-letter queue %t; it is to be rejected: %t", name, done, dead[name], rejected)
		}
		s.judge(name, balances[name])
	}
	if s.fifo {
		s.checkOrder(s.plan.messages)
	}
	return *t
}

// judge looks at one event's runs. A success that repeats another is allowed only where a run died with its process
// after it may have had its effect, or was abandoned and went on after its lease.
func (s *simulation) judge(name string, balance int) {
	t := &s.tally
	var successes, killed, ghosts int64
	for _, r := range s.witness.runs(name) {
		t.starts++
		successes += count(r.effect)
		killed += count(r.killed)
		ghosts += count(r.ghost)
	}
	t.atKills += killed
	t.ghosts += ghosts
	repeats := max(successes-1, 0)
	t.repeats += repeats
	if repeats > killed+ghosts {
		s.Errorf("%s succeeded %d times; %d of its runs died with their processes, %d went on after their lease", name, successes, killed, ghosts)
	}
	// A process that serves several invocations is never frozen, and renews what an abandoned handler holds.
	if ghosts > 0 && (!s.plan.ghosts || s.plan.perProcess > 1) {
		s.Errorf("%s: %d successes after the lease's end", name, ghosts)
	}
	if s.plan.inbox && !s.plan.rejected[name] && balance != 1 {
		t.doubled += int64(max(balance-1, 0))
		s.Errorf("%s had its effect %d times through the inbox", name, balance)
	}
}

func count(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
