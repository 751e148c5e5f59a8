package runtimeapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/localstack/esm"
)

// Function is a bootstrap and its processes. All methods are safe for concurrent use.
type Function struct {
	bootstrap string
	opts      Options
	stopWatch func() bool // stops watching the context of Start

	mu        sync.Mutex // guards the fields below, and all processes and invocations
	closed    bool
	closing   chan struct{} // closed with closed
	processes []*process
	startWait time.Duration // pause before the next start; grows with each process that fails its init
	startAt   time.Time     // no process starts before
}

// Start checks the bootstrap and the options and returns the function. The first invocation starts a process, not Start. When ctx
// is cancelled, all processes are killed.
//
// The error joins one error for each bad option or argument.
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
		err = &optionError{Field: "bootstrap", Problem: err.Error()}
	}
	if err := errors.Join(err, o.check()); err != nil {
		return nil, err
	}
	o.Stdout, o.Stderr = serialized(o.Stdout, o.Stderr)
	f := &Function{bootstrap: path, opts: o, closing: make(chan struct{})}
	f.stopWatch = context.AfterFunc(ctx, f.kill)
	return f, nil
}

// Invoke runs one invocation and returns the function's response. It returns when the process asks for its next
// invocation, or has exited, and not before.
//
// The errors are a [*FunctionError], [esm.ErrThrottled], [ErrClosed], and one for an event above 6 MB. When ctx is cancelled, Invoke returns
// an error that wraps its cause, but the invocation continues, as on Lambda when the caller disconnects.
func (f *Function) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	if len(event) > maxPayload {
		return nil, errTooLarge
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
			return nil, fmt.Errorf("runtimeapi: context cancelled; invocation %s continues and its response is lost: %w", inv.id, context.Cause(ctx))
		}
		if inv.err != errNotDelivered {
			return inv.response, inv.err
		}
		// The process died before it got the event. Another process gets it.
	}
}

// assign gives an invocation to a process that is free, or to a new one.
func (f *Function) assign(event []byte) (*invocation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	p := f.freeLocked()
	if p == nil {
		if len(f.processes) == f.opts.Processes {
			return nil, esm.ErrThrottled
		}
		p = newProcess(f)
		f.processes = append(f.processes, p)
		go p.run()
	}
	inv := newInvocation(event)
	p.running = append(p.running, inv)
	p.work <- inv // never blocks: the channel has a buffer of PerProcess
	return inv, nil
}

func (f *Function) freeLocked() *process {
	for _, p := range f.processes {
		if !p.ending && len(p.running) < f.opts.PerProcess {
			return p
		}
	}
	return nil
}

// PIDs returns the IDs of the processes that run now.
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

// KillOne kills one process with SIGKILL, preferably one with an invocation. It returns the ID of the process after the process
// has exited. The invocation ends with a [*FunctionError], and the next one gets another process.
func (f *Function) KillOne() (pid int, err error) {
	f.mu.Lock()
	var victim *process
	for _, p := range f.processes {
		if p.cmd != nil && (victim == nil || p.busy() && !victim.busy()) {
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
	<-victim.exited
	return pid, nil
}

// Pauses before a start, after processes that failed their init.
const (
	minStartWait = 100 * time.Millisecond
	maxStartWait = 5 * time.Second
)

// initFailedLocked makes the next start wait. Otherwise a bootstrap that crashes at once would be started as fast as
// invocations arrive.
func (f *Function) initFailedLocked() {
	f.startWait = min(max(2*f.startWait, minStartWait), maxStartWait)
	f.startAt = time.Now().Add(f.startWait)
}

func (f *Function) initDoneLocked() { f.startWait, f.startAt = 0, time.Time{} }

// waitToStart reports whether a process may be started now.
func (f *Function) waitToStart() bool {
	f.mu.Lock()
	wait := time.Until(f.startAt)
	f.mu.Unlock()
	t := time.NewTimer(max(wait, 0))
	defer t.Stop()
	select {
	case <-f.closing:
		return false
	case <-t.C:
		return true
	}
}

// Close refuses further invocations, waits for the running ones, and then ends the processes. A process that registered an
// extension gets SIGTERM, and SIGKILL 500 ms later. The other processes get SIGKILL. If ctx is cancelled first, Close kills all
// processes and returns an error that wraps the cause of ctx. Close returns after all processes have exited.
func (f *Function) Close(ctx context.Context) error {
	f.stopWatch()
	f.mu.Lock()
	f.closeLocked()
	f.mu.Unlock()

	var err error
	for inv := f.anyRunning(); inv != nil && err == nil; inv = f.anyRunning() {
		select {
		case <-inv.ended:
		case <-ctx.Done():
			err = fmt.Errorf("runtimeapi: closed while invocations were running: %w", context.Cause(ctx)) // they are killed below
		}
	}
	f.mu.Lock()
	processes := slices.Clone(f.processes)
	for _, p := range processes {
		p.terminateLocked()
	}
	f.mu.Unlock()
	for _, p := range processes {
		select {
		case <-p.exited:
		case <-ctx.Done():
			f.kill()
			<-p.exited
		}
	}
	return err
}

func (f *Function) closeLocked() {
	if !f.closed {
		f.closed = true
		close(f.closing)
	}
}

func (f *Function) anyRunning() *invocation {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.processes {
		if len(p.running) > 0 {
			return p.running[0]
		}
	}
	return nil
}

// kill ends every process at once.
func (f *Function) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeLocked()
	for _, p := range f.processes {
		p.killLocked()
	}
}

// maxPayload is the limit of events and responses of a synchronous invocation: 6 MB.
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const maxPayload = 6 << 20

// errNotDelivered means that the process ended before it asked for the invocation.
var errNotDelivered = errors.New("runtimeapi: not delivered")

// invocation is an event and the state of its processing. It is assigned to a process, delivered when the process asks for
// it, gets a result from the process, and ends when the process asks for the next one or exits. Function.mu guards it
// until ended is closed.
type invocation struct {
	id        string
	event     []byte
	delivered bool
	hasResult bool
	timer     *time.Timer // of the timeout, once delivered
	response  []byte
	err       error
	ended     chan struct{}
}

func newInvocation(event []byte) *invocation {
	return &invocation{id: requestID(), event: event, ended: make(chan struct{})}
}

func (i *invocation) setResultLocked(response []byte, err error) {
	i.hasResult, i.response, i.err = true, response, err
}

func (i *invocation) endLocked() {
	if i.timer != nil {
		i.timer.Stop()
	}
	close(i.ended)
}

// requestID returns a random UUID.
func requestID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails: it ends the program instead
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
