package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/plan"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

// functions are the Lambda functions of the plan, and their mappings. Between stop and start there are none.
type functions struct {
	w      *world
	log    io.Writer
	failed chan error // gets the error of a mapping that cannot go on

	mu       sync.Mutex
	all      map[string]*function
	mappings map[string]*mapping // by ID
}

// function is a function of the plan. It runs if it has a bootstrap.
type function struct {
	plan.Function
	process *runtimeapi.Function // nil without a bootstrap
	out     *prefixed
}

func newFunctions(w *world, log io.Writer) *functions {
	return &functions{w: w, log: &lockedWriter{w: log}, failed: make(chan error, 1)}
}

// start starts the functions, whose processes start with their first invocations, and the mappings.
func (fs *functions) start(ctx context.Context) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.all, fs.mappings = map[string]*function{}, map[string]*mapping{}
	for _, p := range fs.w.plan.Functions {
		f := &function{Function: p, out: &prefixed{to: fs.log, prefix: "[" + p.Name + "] "}}
		fs.all[p.Name] = f
		if p.Bootstrap == "" {
			continue
		}
		env, err := fs.environment(ctx, p)
		if err == nil {
			f.process, err = runtimeapi.Start(context.WithoutCancel(ctx), p.Bootstrap, func(o *runtimeapi.Options) {
				o.Env, o.Timeout, o.MemorySize, o.Processes, o.Stdout, o.Stderr = env, p.Timeout, p.MemorySize, p.Concurrency, f.out, f.out
			})
		}
		if err != nil {
			return fmt.Errorf("function %s: %w", p.Name, err)
		}
	}
	for _, p := range fs.w.plan.Mappings {
		m := &mapping{Mapping: p, fs: fs, f: fs.all[p.Function], modified: time.Now()}
		fs.mappings[p.ID] = m
		if err := errors.Join(m.check(p), m.checkSource(ctx, p)); err != nil {
			return fmt.Errorf("function %s: mapping of %s: %w", p.Function, p.Source, err)
		}
		m.start()
	}
	return nil
}

// stopGrace is how long a stop waits for invocations. Then it kills their processes.
const stopGrace = 2 * time.Second

// stop stops all mappings, and then ends all processes.
func (fs *functions) stop() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	for _, m := range fs.mappings {
		m.stop()
	}
	var ended sync.WaitGroup
	for _, f := range fs.all {
		if f.process != nil {
			ended.Go(func() {
				if err := f.process.Close(ctx); err != nil {
					fmt.Fprintf(f.out, "localaws: %v\n", err)
				}
				f.out.flush()
			})
		}
	}
	ended.Wait()
	for _, m := range fs.mappings {
		m.runs.Wait()
	}
	fs.all, fs.mappings = nil, nil
}

// fail ends localaws.
func (fs *functions) fail(err error) {
	select {
	case fs.failed <- err:
	default: // it ends already
	}
}

// environment is what the function gets: clients find localaws, then its own variables, and those of -env.
func (fs *functions) environment(ctx context.Context, f plan.Function) (env []string, err error) {
	for _, v := range environment(fs.w.url, fs.w.o.region) {
		env = append(env, v[0]+"="+v[1])
	}
	for _, variables := range []map[string]string{f.Env, fs.w.o.env} {
		for _, name := range slices.Sorted(maps.Keys(variables)) {
			value := variables[name]
			if table := (plan.Mapping{Source: value}).TableName(); table != "" {
				if value, err = fs.w.streamARN(ctx, table); err != nil {
					return nil, fmt.Errorf("variable %s: %w", name, err)
				}
			}
			env = append(env, name+"="+value)
		}
	}
	return append(env, "AWS_LAMBDA_FUNCTION_NAME="+f.Name), nil
}

// invoke is an esm.Invoker.
func (f *function) invoke(ctx context.Context, event []byte) ([]byte, error) {
	return f.process.Invoke(ctx, event)
}

var errNoBootstrap = errors.New("the function has no bootstrap: start localaws with -bootstrap")

// maxLine is how much of an unfinished line is kept.
const maxLine = 64 << 10

// prefixed writes whole lines, each with a prefix.
type prefixed struct {
	to     io.Writer
	prefix string

	mu   sync.Mutex
	rest string
}

func (p *prefixed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.rest + string(b)
	if len(text) > maxLine && !strings.Contains(text, "\n") {
		text += "\n"
	}
	end := strings.LastIndexByte(text, '\n') + 1
	p.rest = text[end:]
	var out strings.Builder
	for line := range strings.Lines(text[:end]) {
		out.WriteString(p.prefix + line)
	}
	if out.Len() > 0 {
		if _, err := io.WriteString(p.to, out.String()); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func (p *prefixed) flush() {
	p.mu.Lock()
	unfinished := p.rest != ""
	p.mu.Unlock()
	if unfinished {
		_, _ = p.Write([]byte("\n")) // its reader has gone
	}
}

// lockedWriter keeps the lines of several functions apart.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
