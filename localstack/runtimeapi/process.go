package runtimeapi

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is one execution environment: a process of the bootstrap. It has its own Runtime API, so that every call comes
// from a known process. Function.mu guards it.
type process struct {
	f      *Function
	work   chan *invocation // assigned and not yet delivered
	exited chan struct{}    // closed after the process has exited and is removed from its function

	cmd         *exec.Cmd     // nil before the process runs
	running     []*invocation // assigned and not ended, oldest first
	initialized bool          // it has asked for an invocation
	initErr     *FunctionError
	extension   bool // it registered one, so it gets SIGTERM before SIGKILL
	ending      bool
}

// termGrace is the time from SIGTERM to SIGKILL with an internal extension.
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
const termGrace = 500 * time.Millisecond

// pipeGrace is how long output is read after the process has exited, in case its child processes have its pipes open.
const pipeGrace = time.Second

func newProcess(f *Function) *process {
	return &process{f: f, work: make(chan *invocation, f.opts.PerProcess), exited: make(chan struct{})}
}

// run starts the process and returns after it has exited.
func (p *process) run() {
	defer close(p.exited)
	if !p.f.waitToStart() {
		p.exit(ErrClosed)
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.exit(&FunctionError{Type: typeEntrypoint, Message: err.Error()})
		return
	}
	server := &http.Server{Handler: p.routes()}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // returns after Close below, or if the listener breaks; then the process exits
	}()
	why := p.wait(p.command(l.Addr().String()))
	_ = server.Close() // the process, the other end of every connection, is dead
	<-served
	p.exit(why)
}

func (p *process) command(api string) *exec.Cmd {
	cmd := exec.Command(p.f.bootstrap)
	cmd.Dir = filepath.Dir(p.f.bootstrap)
	cmd.Env = environment(p.f.bootstrap, api, p.f.opts)
	cmd.Stdout, cmd.Stderr = p.f.opts.Stdout, p.f.opts.Stderr
	cmd.WaitDelay = pipeGrace
	ownGroup(cmd)
	return cmd
}

// wait starts the process, waits until it exits, and returns nil for exit status 0. It keeps its thread, since on Linux the process
// would be killed with the thread that has started it.
func (p *process) wait(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.f.mu.Lock()
	if p.ending {
		p.f.mu.Unlock()
		return ErrClosed
	}
	err := cmd.Start()
	if err == nil {
		p.cmd = cmd
	}
	p.f.mu.Unlock()
	if err != nil {
		return &FunctionError{Type: typeEntrypoint, Message: err.Error()}
	}
	initTimer := time.AfterFunc(p.f.opts.initTimeout, p.initTimedOut)
	defer initTimer.Stop()
	return cmd.Wait()
}

func (p *process) initTimedOut() {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if !p.initialized {
		p.initErr = initTimedOut(p.f.opts.initTimeout)
		p.killLocked()
	}
}

// exit removes the process from its function and ends its invocations.
func (p *process) exit(why error) {
	f := p.f
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes = slices.DeleteFunc(f.processes, func(o *process) bool { return o == p })
	if !p.initialized && !f.closed {
		f.initFailedLocked()
	}
	for _, inv := range p.running {
		if !inv.hasResult {
			inv.setResultLocked(nil, p.reason(inv, why))
		}
		inv.endLocked()
	}
	p.running = nil
}

// reason is the error of an invocation that got no result from the process.
func (p *process) reason(inv *invocation, why error) error {
	if _, ok := errors.AsType[*FunctionError](why); ok || errors.Is(why, ErrClosed) {
		return why
	}
	switch {
	case p.initialized && !inv.delivered:
		return errNotDelivered
	case !p.initialized && p.initErr != nil:
		return p.initErr
	}
	return exitedWith(inv.id, why)
}

// busy reports whether an invocation was delivered to the process and has not ended.
func (p *process) busy() bool {
	return slices.ContainsFunc(p.running, func(i *invocation) bool { return i.delivered })
}

// terminateLocked ends the process as Lambda ends an execution environment.
func (p *process) terminateLocked() {
	if p.ending {
		return
	}
	if p.cmd == nil || !p.extension {
		p.killLocked()
		return
	}
	p.ending = true
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has exited
	time.AfterFunc(termGrace, func() {
		p.f.mu.Lock()
		defer p.f.mu.Unlock()
		p.killLocked()
	})
}

func (p *process) killLocked() {
	p.ending = true
	if p.cmd != nil {
		killGroup(p.cmd)
	}
}

const (
	defaultName   = "function"
	defaultRegion = "us-east-1"
)

// variable is the value of a variable of Options.Env, or else byDefault.
func (o Options) variable(name, byDefault string) string {
	value := byDefault
	for _, v := range o.Env {
		if s, ok := strings.CutPrefix(v, name+"="); ok {
			value = s
		}
	}
	return value
}

// name, region and arn are those of the function. Options.Env may give it another name or Region.
func (o Options) name() string { return o.variable("AWS_LAMBDA_FUNCTION_NAME", defaultName) }

func (o Options) region() string { return o.variable("AWS_REGION", defaultRegion) }

func (o Options) arn() string {
	return "arn:aws:lambda:" + o.region() + ":000000000000:function:" + o.name()
}

// environment returns the variables that Lambda sets, with credentials that are not valid on AWS, and Options.Env.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
func environment(bootstrap, api string, o Options) []string {
	env := []string{
		"AWS_LAMBDA_RUNTIME_API=" + api,
		"AWS_LAMBDA_FUNCTION_NAME=" + o.name(),
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + strconv.Itoa(o.MemorySize),
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/" + o.name(),
		"AWS_LAMBDA_LOG_STREAM_NAME=local",
		"AWS_REGION=" + o.region(),
		"AWS_DEFAULT_REGION=" + o.region(),
		"AWS_ACCESS_KEY_ID=test",
		"AWS_SECRET_ACCESS_KEY=test",
		"AWS_SESSION_TOKEN=test",
		"_HANDLER=" + filepath.Base(bootstrap),
		"LAMBDA_TASK_ROOT=" + filepath.Dir(bootstrap),
		"TZ=:UTC",
		"LANG=en_US.UTF-8",
	}
	if o.PerProcess > 1 {
		env = append(env, "AWS_LAMBDA_MAX_CONCURRENCY="+strconv.Itoa(o.PerProcess))
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, o.Env...) // of two with the same name the last one applies
}

// serialized makes the writers safe for several processes. They share one lock, because they may be the same writer.
func serialized(stdout, stderr io.Writer) (io.Writer, io.Writer) {
	var mu sync.Mutex
	wrap := func(w io.Writer) io.Writer {
		if w == nil {
			return nil
		}
		return &lockedWriter{mu: &mu, w: w}
	}
	return wrap(stdout), wrap(stderr)
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
