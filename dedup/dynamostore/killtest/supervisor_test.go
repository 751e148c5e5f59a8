package killtest_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"
)

// point is the place at which a child is killed.
type point string

const (
	atAcquire  point = "acquire"
	atRenew    point = "renew"
	atRelease  point = "release"
	atComplete point = "complete"
	atCommit   point = "commit"
	atStart    point = "handler, before its effect"
	atEnd      point = "handler, after its effect"
	elsewhere  point = "elsewhere"
)

// supervisor keeps a number of children running, and kills them.
type supervisor struct {
	t   *testing.T
	env []string

	mu       sync.Mutex
	rng      *rand.Rand
	next     int
	children map[string]*child // by number
	toKill   int               // kills to come
	kills    map[point]int
	stopped  bool
	wg       sync.WaitGroup
}

type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	dead  time.Time // when it was killed; zero: it runs
}

func newSupervisor(t *testing.T, seed uint64, kills int, env ...string) *supervisor {
	return &supervisor{
		t: t, env: env, rng: rand.New(rand.NewPCG(seed, 0)), toKill: kills,
		children: map[string]*child{}, kills: map[point]int{},
	}
}

func (c *supervisor) start(n int) {
	for range n {
		c.wg.Go(func() {
			for c.runOne() {
			}
		})
	}
}

// runOne runs one child until it is killed. It reports false when no other child shall follow.
func (c *supervisor) runOne() bool {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return false
	}
	c.next++
	name := strconv.Itoa(c.next)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), c.env...), envChild+"="+name)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.mu.Unlock()
		c.t.Errorf("start a child: %v", err)
		return false
	}
	me := &child{cmd: cmd, stdin: stdin}
	c.children[name] = me
	c.mu.Unlock()

	err = cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if me.dead.IsZero() {
		c.t.Errorf("child %s ended without a kill: %v", name, err)
		return false
	}
	return !c.stopped
}

// chance decides whether the child is killed at this point, and when: before the request has its effect; between the effect
// and the answer; or before the effect, where the request still arrives later.
func (c *supervisor) chance(name string, p point) (kill, before bool, late time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	me := c.children[name]
	if me == nil || !me.dead.IsZero() || c.toKill <= 0 || c.rng.IntN(odds[p]) > 0 {
		return false, false, 0
	}
	switch c.rng.IntN(3) {
	case 0:
		return true, true, 0
	case 1:
		return true, false, 0
	default:
		return true, true, 1 + rand.N(latest)
	}
}

// latest is longer than the time in which another child takes the event over and finishes it.
const latest = 8 * lease

// odds give each point its share of the kills: renewals are frequent and releases rare.
var odds = map[point]int{atAcquire: 12, atRenew: 60, atRelease: 2, atComplete: 6, atCommit: 6, atStart: 20, atEnd: 16, elsewhere: 20}

func (c *supervisor) kill(name string, p point) {
	c.mu.Lock()
	defer c.mu.Unlock()
	me := c.children[name]
	if me == nil || !me.dead.IsZero() || c.toKill <= 0 {
		return
	}
	c.toKill--
	c.kills[p]++
	c.end(me)
}

func (c *supervisor) end(me *child) {
	if err := me.cmd.Process.Kill(); err != nil {
		c.t.Errorf("kill: %v", err)
	}
	me.dead = time.Now()
}

// died returns when a child was killed, and false while it runs.
func (c *supervisor) died(name string) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.children[name].dead
	return at, !at.IsZero()
}

func (c *supervisor) killing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.toKill > 0
}

func (c *supervisor) stop() {
	c.mu.Lock()
	c.stopped = true
	for _, me := range c.children {
		if me.dead.IsZero() {
			c.end(me)
		}
	}
	c.mu.Unlock()
	c.wg.Wait()
}

func (c *supervisor) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%d children, kills: %v", c.next, c.kills)
}
