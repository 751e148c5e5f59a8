package esm

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Invoker invokes the function with an event and returns its response. An error is a function error, whatever its kind:
// the function returned one, panicked, ran out of time or crashed. Only an error that matches [ErrThrottled] says that
// the function was not invoked.
//
// The Invoke method of runtimeapi.Function is one; the package's example makes one of a Go function. That of
// aws-lambda-go's lambda.NewHandler only looks like one: what it returns is in a buffer that its other invocations write
// into, so that a mapping, which invokes concurrently, would read another invocation's answer and delete by it.
type Invoker func(ctx context.Context, event []byte) (response []byte, err error)

// ErrThrottled is an Invoker's answer where Lambda answers 429: no execution environment is free.
var ErrThrottled = errors.New("esm: function throttled")

var errGoexit = errors.New("function called runtime.Goexit")

// call invokes once. It does not end with ctx: what is invoked is finished.
func (m *mapping) call(ctx context.Context, event []byte) ([]byte, error) {
	ctx = context.WithoutCancel(ctx)
	if !m.cfg.InvokerTimesOut {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.cfg.FunctionTimeout)
		defer cancel()
	}
	type answer struct {
		response []byte
		err      error
	}
	answered := make(chan answer, 1)
	go func() {
		a := answer{err: errGoexit} // what is left if the function does not return
		defer func() {
			if p := recover(); p != nil {
				a = answer{err: fmt.Errorf("function panicked: %v\n%s", p, debug.Stack())}
			}
			answered <- a
		}()
		response, err := m.invoke(ctx, event)
		a = answer{response, err}
	}()

	select {
	case a := <-answered:
		// By the clock, not by ctx.Err: at the very deadline the timer of ctx may not have fired yet.
		if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
			return nil, timeoutError(m.cfg.FunctionTimeout) // it returned because it was killed
		}
		if a.err == nil && len(a.response) > maxPayload {
			return nil, fmt.Errorf("response of %d bytes exceeds the 6 MB of a synchronous invocation", len(a.response))
		}
		return a.response, a.err
	case <-ctx.Done():
		// Lambda kills the process. A Go function cannot be killed: what goes on is no longer listened to.
		return nil, timeoutError(m.cfg.FunctionTimeout)
	}
}

// timeoutError is a function that ran out of time, in Lambda's words.
type timeoutError time.Duration

func (e timeoutError) Error() string {
	return fmt.Sprintf("Task timed out after %.2f seconds", time.Duration(e).Seconds())
}

// Pauses between invocations of a throttled batch.
const (
	minThrottlePause = 250 * time.Millisecond
	maxThrottlePause = 10 * time.Second
)

var (
	// errDropped: the batch was throttled, or held back by its groups, until its messages' visibility ended.
	errDropped = errors.New("visibility timeout ended before the function could be invoked")
	// errStopped: Run stops, and the batch was not invoked.
	errStopped = errors.New("stopped before the function could be invoked")
)

// callUntil invokes the batch, again and again while the function is throttled. At expiry SQS delivers the messages to
// somebody else, and Lambda drops its copy.
func (m *mapping) callUntil(ctx context.Context, expiry time.Time, event []byte) ([]byte, error) {
	pause := minThrottlePause
	for {
		if ctx.Err() != nil {
			return nil, errStopped
		}
		if !time.Now().Before(expiry) {
			return nil, errDropped
		}
		response, err := m.call(ctx, event)
		if !errors.Is(err, ErrThrottled) {
			return response, err
		}
		m.log.Debug("esm: function throttled", "pause", pause)
		sleep(ctx, min(pause, time.Until(expiry)))
		pause = min(2*pause, maxThrottlePause)
	}
}
