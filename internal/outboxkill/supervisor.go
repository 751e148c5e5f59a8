//go:build unix

package outboxkill

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
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
	children map[*child]bool
	toKill   int            // kills to come
	kills    map[string]int // by point
	toStop   int            // children that are to be stopped
	stops    int            // and were
	stopped  bool
	wg       sync.WaitGroup
}

type child struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	role   string
	killed bool // by the parent
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
func (s *supervisor) plan(role string) (point string, nth int, life time.Duration, stop bool) {
	all := points[role]
	point, nth = all[s.rng.IntN(len(all))], 1+s.rng.IntN(30)
	life = time.Duration(200+s.rng.IntN(2000)) * time.Millisecond
	return point, nth, life, role == relayRole && (s.toStop+s.stops == 0 || s.rng.IntN(10) == 0)
}

// runOne runs one child until it is killed. It reports false when no other child shall follow.
func (s *supervisor) runOne(role string) bool {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return false
	}
	point, nth, life, stop := s.plan(role)
	if stop {
		s.toStop++
	}
	c, err := s.launch(role, fmt.Sprintf("%s=%s", envPoint, point), fmt.Sprintf("%s=%d", envNth, nth))
	s.mu.Unlock()
	if err != nil {
		s.t.Errorf("start a child: %v", err)
		return false
	}
	over := make(chan struct{})
	var parent sync.WaitGroup
	parent.Go(func() { s.treat(c, life, stop, over) })
	err = c.cmd.Wait()
	close(over)
	parent.Wait()
	return s.ended(c, point, err)
}

// launch starts a child. The caller holds the lock.
func (s *supervisor) launch(role string, env ...string) (*child, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(append(os.Environ(), s.env...), envRole+"="+role), env...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, stdin: stdin, role: role}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.children[c] = true
	return c, nil
}

// treat stops the child for a while in which the queue forgets, and kills it at the end of its life.
func (s *supervisor) treat(c *child, life time.Duration, stop bool, over <-chan struct{}) {
	wait := func(d time.Duration) bool {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-over:
			return false
		}
	}
	if stop {
		alive := wait(life / 2)
		if alive {
			s.signal(c, syscall.SIGSTOP)
			s.forget()
			wait(500 * time.Millisecond) // others go on
			s.signal(c, syscall.SIGCONT)
		}
		s.mu.Lock()
		s.toStop--
		if alive {
			s.stops++
		}
		s.mu.Unlock()
	}
	if wait(life) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.stopped {
			c.killed = true
			s.signal(c, syscall.SIGKILL)
		}
	}
}

func (s *supervisor) signal(c *child, sig syscall.Signal) {
	if err := c.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Errorf("%v: %v", sig, err)
	}
}

// ended notes how a child ended, and reports whether another one follows.
func (s *supervisor) ended(c *child, point string, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.children, c)
	if s.stopped {
		return false
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		s.t.Errorf("a %s ended without a kill: %v", c.role, err)
		return false
	}
	if c.killed {
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
	for c := range s.children {
		s.signal(c, syscall.SIGKILL)
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// finish runs a relay that is not killed until done.
func (s *supervisor) finish(done func() bool) {
	s.mu.Lock()
	c, err := s.launch(relayRole)
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
	s.signal(c, syscall.SIGKILL)
	_ = c.cmd.Wait() // killed
}
