package runtimeapi

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Function is a bootstrap and its processes. All methods are safe for concurrent use.
type Function struct {
	bootstrap string
	opts      Options
	stopWatch func() bool // ends the watch on the context of Start

	mu        sync.Mutex // guards everything below, and the processes and invocations
	closed    bool
	closing   chan struct{} // closed with closed
	processes []*process
	startWait time.Duration // before the next start; grows with each process that fails its init
	startAt   time.Time     // no start before
}

// Start checks the bootstrap and the options and returns the function. It starts no process: the first invocation does.
// When ctx ends, all processes are killed.
//
// The error joins one [*OptionError] per bad option or argument.
func Start(ctx context.Context, bootstrap string, optFns ...func(*Options)) (*Function, error) {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	o = o.withDefaults()
	path, err := filepath.Abs(bootstrap)
	if err == nil {
		_, err = exec.LookPath(path) // exists, and may be executed
	}
	if err != nil {
		err = &OptionError{Field: "bootstrap", Problem: err.Error()}
	}
	if err := errors.Join(err, o.check()); err != nil {
		return nil, err
	}
	// Several processes write to the same two writers.
	o.Stdout, o.Stderr = serialized(o.Stdout, o.Stderr)
	f := &Function{bootstrap: path, opts: o, closing: make(chan struct{})}
	f.stopWatch = context.AfterFunc(ctx, f.kill)
	return f, nil
}

// Invoke runs one invocation and returns the function's response. It returns when the process asks for its next
// invocation, or has exited, and not before: then it is free again, or gone.
//
// The errors are a [*FunctionError], [ErrThrottled], [ErrTooLarge] and [ErrClosed]; and when ctx ends its cause, though
// the invocation goes on, as on Lambda when the caller goes away.
func (f *Function) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	if len(event) > maxPayload {
		return nil, ErrTooLarge
	}
	for {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("runtimeapi: %w", context.Cause(ctx))
		}
		inv, err := f.assign(event)
		if err != nil {
			return nil, err
		}
		select {
		case <-inv.ended:
		case <-ctx.Done():
			return nil, fmt.Errorf("runtimeapi: invocation %s goes on without its caller: %w", inv.id, context.Cause(ctx))
		}
		if inv.err != errNotDelivered {
			return inv.response, inv.err
		}
		// The process died while idle. The function never saw the event: another process gets it.
	}
}

// assign gives an invocation to a process with room for it, or to a new one.
func (f *Function) assign(event []byte) (*invocation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	p := f.freeLocked()
	if p == nil {
		if len(f.processes) == f.opts.Processes {
			return nil, ErrThrottled
		}
		p = newProcess(f)
		f.processes = append(f.processes, p)
		go p.run()
	}
	inv := newInvocation(event)
	p.running = append(p.running, inv)
	p.work <- inv // has room for PerProcess
	return inv, nil
}

func (f *Function) freeLocked() *process {
	for _, p := range f.processes {
		if !p.dying && len(p.running) < f.opts.PerProcess {
			return p
		}
	}
	return nil
}

// PIDs returns the processes that run now.
func (f *Function) PIDs() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var pids []int
	for _, p := range f.processes {
		if p.cmd != nil {
			pids = append(pids, p.cmd.Process.Pid)
		}
	}
	return pids
}

// KillOne kills one process with SIGKILL, one that works on an invocation if there is one, and returns its ID when it is
// gone. Its invocation ends with a [*FunctionError]; the next one gets another process.
func (f *Function) KillOne() (pid int, err error) {
	f.mu.Lock()
	var victim *process
	for _, p := range f.processes {
		if p.cmd != nil && (victim == nil || p.works() && !victim.works()) {
			victim = p
		}
	}
	if victim == nil {
		f.mu.Unlock()
		return 0, errors.New("runtimeapi: no process is running")
	}
	pid = victim.cmd.Process.Pid
	victim.killLocked()
	f.mu.Unlock()
	<-victim.gone
	return pid, nil
}
