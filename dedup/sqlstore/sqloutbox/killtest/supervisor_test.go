//go:build unix

package killtest_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/proof/process"
)

// elsewhere is a kill at no point that a child knows.
const elsewhere = "elsewhere"

// supervisor keeps children running, each of which is killed.
type supervisor struct {
	t      *testing.T
	env    []string
	forget func() // has the queue forget what it accepted

	mu       sync.Mutex
	rng      *rand.Rand
	children map[*process.Process]bool
	toKill   int            // kills to come
	kills    map[string]int // by point
	toStop   int            // children that are to be stopped
	stops    int            // and were
	stopped  bool
	wg       sync.WaitGroup
}

func (s *supervisor) start() {
	for i := range relays + producers {
		role := relayRole
		if i >= relays {
			role = producerRole
		}
		s.wg.Go(func() {
			for s.runOne(role) {
			}
		})
	}
}

// plan draws where a child dies, and when the parent kills it if it has not got there, and whether it is stopped before.
func (s *supervisor) plan(role string) (doom process.Doom, life time.Duration, stop bool) {
	all := points[role]
	doom = process.Doom{Point: all[s.rng.IntN(len(all))], Nth: 1 + s.rng.IntN(30)}
	life = time.Duration(200+s.rng.IntN(2000)) * time.Millisecond
	return doom, life, role == relayRole && (s.toStop+s.stops == 0 || s.rng.IntN(10) == 0)
}

// runOne runs one child until it is killed. It reports false when no other child shall follow.
func (s *supervisor) runOne(role string) bool {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return false
	}
	doom, life, stop := s.plan(role)
	if stop {
		s.toStop++
	}
	p, err := s.launch(role, doom)
	s.mu.Unlock()
	if err != nil {
		s.t.Errorf("start a child: %v", err)
		return false
	}
	if stop {
		s.pause(p, life/2)
	}
	if p.Live(life) {
		s.kill(p)
	}
	return s.ended(p, role)
}

// launch starts a child. The caller holds the lock.
func (s *supervisor) launch(role string, doom process.Doom) (*process.Process, error) {
	p, err := process.Start(s.t.Context(), process.Options{Env: append([]string{envRole + "=" + role}, s.env...), Doom: doom})
	if err == nil {
		s.children[p] = true
	}
	return p, err
}

// pause stops the child after a while, for one in which the queue forgets.
func (s *supervisor) pause(p *process.Process, after time.Duration) {
	alive := p.Live(after)
	if alive {
		err := p.Stop(func() {
			s.forget()
			time.Sleep(500 * time.Millisecond) // others go on
		})
		if err != nil {
			s.t.Error(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.toStop--
	if alive {
		s.stops++
	}
}

func (s *supervisor) kill(p *process.Process) {
	must.Do(s.t, p.Kill())
}

// ended notes how a child ended, and reports whether another one follows.
func (s *supervisor) ended(p *process.Process, role string) bool {
	err, point := p.Wait(), p.Met()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.children, p)
	if s.stopped {
		return false
	}
	if err != nil || !p.Killed() {
		s.t.Errorf("a %s ended without a kill: %v", role, err)
		return false
	}
	if point == "" {
		point = elsewhere
	}
	s.toKill--
	s.kills[point]++
	return true
}

// waitForKills waits until all kills are done and a relay was stopped, for two minutes and two seconds more for each.
func (s *supervisor) waitForKills() {
	left := func() (kills int, stopped bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.toKill, s.stops > 0
	}
	kills, stopped := left()
	for deadline := time.Now().Add(drain + time.Duration(kills)*2*time.Second); kills > 0 || !stopped; kills, stopped = left() {
		if s.t.Failed() {
			return
		}
		if time.Now().After(deadline) {
			s.t.Errorf("%d kills are left; a relay was stopped: %t", kills, stopped)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// stop kills the children that are left.
func (s *supervisor) stop() {
	s.mu.Lock()
	s.stopped = true
	for p := range s.children {
		s.kill(p)
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// finish runs a relay that is not killed until done.
func (s *supervisor) finish(done func() bool) {
	s.mu.Lock()
	p, err := s.launch(relayRole, process.Doom{})
	s.mu.Unlock()
	if err != nil {
		s.t.Fatalf("start a child: %v", err)
	}
	start := time.Now()
	for !done() {
		if time.Since(start) > drain {
			s.t.Errorf("%s after the last kill there are events in the outbox; %s", drain, s)
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.kill(p)
	must.Do(s.t, p.Wait())
}

func (s *supervisor) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d stops; kills: %v", s.stops, s.kills)
}
