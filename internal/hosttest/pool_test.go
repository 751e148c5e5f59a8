package hosttest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/lambda"
)

// environment is a Lambda environment: a process of the function.
type environment struct {
	*process
	function awslambda.Handler
	busy     int // invocations that it serves now
}

func newEnvironment(t *testing.T, p *process, h sqsonce.Handler, optFns ...func(*lambda.Options)) *environment {
	f := must.Get(lambda.NewHandler(h, optFns...))(t)
	return &environment{process: p, function: f}
}

// pool is the function's environments. An invocation gets one that is free, or a new one.
type pool struct {
	newEnvironment func() *environment
	perProcess     int // invocations at once. Default: 1

	mu  sync.Mutex
	all []*environment // that are alive
}

var errKilled = errors.New("the process was killed")

// invoke is an esm.Invoker.
func (p *pool) invoke(ctx context.Context, event []byte) ([]byte, error) {
	e := p.take()
	defer p.put(e)
	return e.invoke(ctx, event)
}

// invoke runs an invocation. An environment that has not responded at the deadline is killed.
func (e *environment) invoke(ctx context.Context, event []byte) ([]byte, error) {
	type result struct {
		response []byte
		err      error
	}
	done := make(chan result, 1)
	go func() {
		response, err := e.function.Invoke(ctx, event)
		done <- result{response, err}
	}()
	select {
	case r := <-done:
		return r.response, r.err
	case <-ctx.Done():
		e.kill()
		return nil, context.Cause(ctx)
	case <-e.dead:
		return nil, errKilled
	}
}

func (p *pool) take() *environment {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.all {
		if e.alive() && e.busy < max(p.perProcess, 1) {
			e.busy++
			return e
		}
	}
	e := p.newEnvironment()
	e.busy = 1
	p.all = append(p.all, e)
	return e
}

func (p *pool) put(e *environment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.busy--
	p.all = slices.DeleteFunc(p.all, func(e *environment) bool { return !e.alive() })
}

// kill ends all environments.
func (p *pool) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.all {
		e.kill()
	}
}
