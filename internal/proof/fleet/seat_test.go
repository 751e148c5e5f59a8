//go:build unix

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/sqsonce/sqsonce/internal/proof/process"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

// seat is a process and its successors, or a function and its processes, behind one network.
type seat struct {
	*fleet
	role role
	net  *network
	rng  *rand.Rand

	mu    sync.Mutex
	harms []harm
}

// harm is what was done to a seat.
type harm struct {
	what     string
	from, to time.Time
	trouble  *trouble // of its network
}

// Harms that are no fault of the plan: a handler has ended its process, or an invocation; throttledBatch is a harm to one batch only.
const (
	poisoned         = "poisoned"
	failedInvocation = "failed invocation"
	throttledBatch   = "throttled invocation"
)

// stopBound is how long a stop may take.
const stopBound = 30 * time.Second

// suffer does harm to the seat while f runs.
func (s *seat) suffer(what string, t *trouble, f func()) {
	h := harm{what: what, from: time.Now(), trouble: t}
	s.net.trouble.Store(t)
	f()
	s.net.trouble.Store(nil)
	h.to = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.harms = append(s.harms, h)
}

// harm does one of these to the seat, or has its network in trouble for some seconds.
func (s *seat) harm(kill, stop, deploy func()) {
	switch s.rng.IntN(8) {
	case 0:
		s.suffer("killed", nil, kill)
	case 1:
		s.suffer("stopped", nil, stop)
	case 2:
		s.suffer("deployed", nil, deploy)
	default:
		t := draw(s.rng)
		s.suffer(t.kind, t, func() { s.pause(s.between(3 * time.Second)) })
	}
}

// between returns d to 3d.
func (s *seat) between(d time.Duration) time.Duration {
	return d + time.Duration(s.rng.Int64N(int64(2*d)))
}

// env is the environment of a process. The clock of some is off, but for a function's: Lambda tells it by that clock when an invocation ends.
func (s *seat) env() []string {
	text, err := json.Marshal(s.role)
	if err != nil {
		panic(err)
	}
	ahead := []int{0, 0, 0, 600, -600}[s.rng.IntN(5)]
	if s.role.Kind == "function" {
		ahead = 0
	}
	return []string{envRole + "=" + string(text), fmt.Sprint(envClock, "=", ahead)}
}

func (s *seat) start() *process.Process {
	p, err := process.Start(s.ctx, process.Options{Program: s.program, Env: s.env()})
	if err != nil {
		panic(err)
	}
	return p
}

// processes keeps a process in the seat until the fleet has finished.
func (s *seat) processes() {
	p := s.start()
	for !s.over() {
		if !p.Live(s.between(time.Second)) {
			s.ended(p)
			p = s.start()
		}
		s.harm(func() {
			_ = p.Kill() // ended tells of any other end
			s.ended(p)
			p = s.start()
		}, func() {
			_ = p.Stop(func() { time.Sleep(s.between(5 * time.Second)) })
		}, func() {
			old := p
			p = s.start()
			s.terminate(old)
		})
	}
	for {
		select {
		case <-s.finished:
			s.terminate(p)
			return
		case <-p.Over():
			if s.ended(p); s.role.Kind == "publisher" && !p.Killed() {
				return // it has published all
			}
			p = s.start()
		}
	}
}

// terminate has the process stop, as a deploy does.
func (s *seat) terminate(p *process.Process) {
	_ = p.Signal(syscall.SIGTERM)
	if p.Live(stopBound) {
		s.complain("%s: process %d runs %s after SIGTERM", s.role.Seat, p.Pid, stopBound)
		_ = p.Kill()
	}
	s.ended(p)
}

func (s *seat) ended(p *process.Process) {
	switch err := p.Wait(); {
	case err != nil && err.Error() == fmt.Sprint("exit status ", poisonStatus):
		s.suffer(poisoned, nil, func() {})
	case err != nil && err.Error() == "signal: terminated": // it was deployed before it listened
	case err != nil:
		s.complain("%s: process %d ended with %v", s.role.Seat, p.Pid, err)
	}
}

// function keeps a function and its mapping until the fleet has finished.
func (s *seat) function() {
	f, err := runtimeapi.Start(s.ctx, s.program, func(o *runtimeapi.Options) {
		o.Env, o.Timeout, o.Processes, o.Stderr = s.env(), functionTimeout, 2, os.Stderr
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	aws := role{AWS: s.network(s.role.Seat).URL} // the mapping's network is AWS's own
	mapped := make(chan error, 1)
	go func() {
		mapped <- esm.Run(ctx, aws.sqs(), esm.Config{
			QueueURL: s.role.Queues[0], MaximumConcurrency: 3, FunctionTimeout: functionTimeout, InvokerTimesOut: true,
			ReportBatchItemFailures: true, Wait: time.Second, Logger: slog.New(slog.DiscardHandler),
		}, func(ctx context.Context, event []byte) ([]byte, error) {
			h := harm{what: failedInvocation, from: time.Now()}
			out, err := f.Invoke(ctx, event)
			if errors.Is(err, esm.ErrThrottled) { // there are fewer processes than batches at once
				h.what = throttledBatch
			}
			if h.to = time.Now(); err != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.harms = append(s.harms, h)
			}
			return out, err
		})
	}()
	for !s.over() {
		s.pause(s.between(time.Second))
		kill := func() { _, _ = f.KillOne() } // there may be none
		s.harm(kill, func() {
			pids := f.PIDs()
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have ended
			}
			time.Sleep(s.between(2 * time.Second))
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
		}, kill)
	}
	<-s.finished
	cancel()
	if err := <-mapped; err != nil {
		s.complain("%s: the mapping ended with %v", s.role.Seat, err)
	}
	if err := f.Close(s.ctx); err != nil {
		s.complain("%s: %v", s.role.Seat, err)
	}
}
