package esm

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Invoker invokes the function with an event and returns its response. Every error is a function error: the function
// returned an error, panicked, ran into its timeout or crashed. Only an error that matches [ErrThrottled] means that the
// function was not invoked.
//
// The Invoke method of runtimeapi.Function is an Invoker. The package's example makes one from a Go function. Do not use
// the handler of aws-lambda-go's lambda.NewHandler: its invocations write their responses into one shared buffer. A
// mapping invokes concurrently, so it would read the response of another invocation and delete the wrong messages.
type Invoker func(ctx context.Context, event []byte) (response []byte, err error)

// ErrThrottled is the error of an Invoker when Lambda would return status 429, because all execution environments are busy.
var ErrThrottled = errors.New("esm: function throttled")

var errGoexit = errors.New("function called runtime.Goexit")

// function is an Invoker and the timeout of its invocations.
type function struct {
	invoke   Invoker
	timeout  time.Duration
	timesOut bool // InvokerTimesOut
}

// call invokes once. It ignores the cancellation of ctx: an invocation that has started completes.
func (f *function) call(ctx context.Context, event []byte) ([]byte, error) {
	ctx = context.WithoutCancel(ctx)
	if !f.timesOut {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	type result struct {
		response []byte
		err      error
	}
	done := make(chan result, 1)
	go func() {
		r := result{err: errGoexit} // if the function neither returns nor panics
		defer func() {
			if p := recover(); p != nil {
				r = result{err: fmt.Errorf("function panicked: %v\n%s", p, debug.Stack())}
			}
			done <- r
		}()
		response, err := f.invoke(ctx, event)
		r = result{response, err}
	}()

	select {
	case r := <-done:
		// Compares times instead of ctx.Err: at the exact deadline the timer of ctx may not have fired yet.
		if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
			return nil, timeoutError(f.timeout) // Lambda has killed the function
		}
		if r.err == nil && len(r.response) > maxPayload {
			return nil, fmt.Errorf("response of %d bytes exceeds the 6 MB of a synchronous invocation", len(r.response))
		}
		return r.response, r.err
	case <-ctx.Done():
		// Lambda kills the process. A Go function cannot be killed: it continues, and its result is ignored.
		return nil, timeoutError(f.timeout)
	}
}

// timeoutError is Lambda's error text of a function timeout.
type timeoutError time.Duration

func (e timeoutError) Error() string {
	return fmt.Sprintf("Task timed out after %.2f seconds", time.Duration(e).Seconds())
}

// Pauses between invocations of a throttled batch; doubled with each.
const (
	minThrottlePause = 250 * time.Millisecond
	maxThrottlePause = 10 * time.Second
)

var (
	// errExpired means that throttling, or a wait for its groups, took as long as the visibility timeout of the batch.
	errExpired = errors.New("visibility timeout ended before the function could be invoked")
	// errStopped means that Run stops before the batch was invoked.
	errStopped = errors.New("stopped before the function could be invoked")
)

// callUntil invokes the batch, and repeats that while the function is throttled. At expiry SQS makes the messages visible
// to other consumers, so Lambda drops the batch.
func (m *mapping) callUntil(ctx context.Context, expiry time.Time, event []byte) ([]byte, error) {
	pause := minThrottlePause
	for {
		if ctx.Err() != nil {
			return nil, errStopped
		}
		if !time.Now().Before(expiry) {
			return nil, errExpired
		}
		response, err := m.function.call(ctx, event)
		if !errors.Is(err, ErrThrottled) {
			return response, err
		}
		m.log.Debug("esm: function throttled", "pause", pause)
		sleep(ctx, min(pause, time.Until(expiry)))
		pause = min(2*pause, maxThrottlePause)
	}
}
