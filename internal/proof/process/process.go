//go:build unix

package process

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// Options say how a process starts.
type Options struct {
	Program string // default: the test binary
	Args    []string
	Env     []string // besides the parent's
	Doom    Doom
	// Stdout reads the standard output to its end. nil: it is discarded.
	Stdout func(io.Reader)
	// Stderr is the parent's where it is nil.
	Stderr io.Writer
}

// Process is a process of the test binary, or of another program.
type Process struct {
	Stdin io.WriteCloser
	Pid   int

	cmd    *exec.Cmd
	doom   Doom
	killed atomic.Bool
	over   chan struct{}
	err    error // when over
}

// Start starts a process. It is killed when ctx ends.
func Start(ctx context.Context, o Options) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, cmp.Or(o.Program, os.Args[0]), o.Args...), doom: o.Doom, over: make(chan struct{})}
	p.cmd.Env = append(append(os.Environ(), o.Env...), envPoint+"="+o.Doom.Point, envNth+"="+strconv.Itoa(o.Doom.Nth))
	p.cmd.Stderr = o.Stderr
	if o.Stderr == nil {
		p.cmd.Stderr = os.Stderr
	}
	// A group of its own: if this process dies the kernel ends it, also while it is stopped.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if p.Stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout := io.ReadCloser(nil)
	if o.Stdout != nil {
		if stdout, err = p.cmd.StdoutPipe(); err != nil {
			return nil, err
		}
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.Pid = p.cmd.Process.Pid
	go func() {
		defer close(p.over)
		if stdout != nil {
			o.Stdout(stdout)
		}
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// Over is closed when the process has ended and all that it wrote is read.
func (p *Process) Over() <-chan struct{} { return p.over }

// Live lets the process run for d, and reports whether it still does.
func (p *Process) Live(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.over:
		return false
	}
}

// Signal sends a signal. It returns nil if the process has ended.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Stop stops the process while f runs, as a debugger or a suspended machine does.
func (p *Process) Stop(f func()) error {
	err := p.Signal(syscall.SIGSTOP)
	f()
	return errors.Join(err, p.Signal(syscall.SIGCONT))
}

// Kill is kill -9, where the process has not ended.
func (p *Process) Kill() error {
	select {
	case <-p.over:
		return nil
	default:
	}
	p.killed.Store(true)
	return p.Signal(syscall.SIGKILL)
}

// Wait waits for the end. It returns an error unless the process ended with status 0, was killed by Kill, or met its Doom.
func (p *Process) Wait() error {
	<-p.over
	if p.Killed() {
		return nil
	}
	return p.err
}

// Killed reports that the process was killed by Kill, or met its Doom.
func (p *Process) Killed() bool {
	<-p.over
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL && (p.killed.Load() || p.doom.Point != "")
}

// Met returns the point at which the process killed itself. "": it did not.
func (p *Process) Met() string {
	if p.Killed() && !p.killed.Load() {
		return p.doom.Point
	}
	return ""
}
