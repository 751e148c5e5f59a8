package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// crew runs the commands as processes.
type crew struct {
	bin, dir  string
	stack     *stack
	workers   []*process
	others    []*process
	functions *functions
	failed    chan error // a process that was not killed has failed
}

func newCrew(bin, dir string, s *stack) *crew {
	return &crew{bin: bin, dir: dir, stack: s, failed: make(chan error, 16)}
}

type process struct {
	name, queue string
	cmd         *exec.Cmd
	log         string
	done        chan struct{} // closed when the process has ended; err is set then
	err         error
	expected    atomic.Bool // to be killed
}

func (c *crew) callsFile() string { return filepath.Join(c.dir, "calls") }

func (c *crew) worker(queue string) error {
	p, err := c.start(c.stack.backend.worker, queue)
	if err == nil {
		c.workers = append(c.workers, p)
	}
	return err
}

func (c *crew) publish(h *half) error {
	p, err := c.start("publish", h.queue, "FILE="+h.file, "NAMESPACE=orders", "RESEND=10", "RETRY=5")
	if err == nil {
		c.others = append(c.others, p)
	}
	return err
}

func (c *crew) start(command, queue string, env ...string) (*process, error) {
	p := &process{name: command, queue: queue, done: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(c.bin, command))
	p.cmd.Env = append(append(os.Environ(), c.environment(queue)...), env...)
	log, err := os.CreateTemp(c.dir, command+"-*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	p.log, p.cmd.Stdout, p.cmd.Stderr = log.Name(), log, log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
		if p.err != nil && !p.expected.Load() {
			c.failed <- p.failure()
		}
	}()
	return p, nil
}

// failure is how the process ended, with the end of what it wrote.
func (p *process) failure() error {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return errors.Join(p.err, err)
	}
	return fmt.Errorf("%s of %s: %w\n%s", p.name, p.queue, p.err, text[max(0, len(text)-2000):])
}

// killOne kills a worker of the queue as a crash would, without a chance to finish anything.
func (c *crew) killOne(queue string) (pid int, err error) {
	for i, p := range c.workers {
		if p.queue != queue {
			continue
		}
		c.workers = append(c.workers[:i], c.workers[i+1:]...)
		p.expected.Store(true)
		if err := p.cmd.Process.Kill(); err != nil {
			return 0, err
		}
		<-p.done
		return p.cmd.Process.Pid, nil
	}
	return 0, fmt.Errorf("no worker of %s to kill", queue)
}

// stop ends the workers by SIGTERM; each must then exit with status 0.
func (c *crew) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	for _, p := range c.workers {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
	}
	for _, p := range append(c.workers, c.others...) {
		select {
		case <-p.done:
			if p.err != nil {
				return p.failure()
			}
		case <-ctx.Done():
			return fmt.Errorf("%s of %s did not end: %w", p.name, p.queue, ctx.Err())
		}
	}
	c.workers, c.others = nil, nil
	f := c.functions
	c.functions = nil
	return f.stop(ctx)
}

// killAll leaves no process behind, however the demo ends.
func (c *crew) killAll() {
	if c.functions != nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = c.functions.stop(ended) // something else has failed already
	}
	for _, p := range append(c.workers, c.others...) {
		p.expected.Store(true)
		_ = p.cmd.Process.Kill() // it may have ended by itself
		<-p.done
	}
}
