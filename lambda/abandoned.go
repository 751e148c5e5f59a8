package lambda

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/aws/aws-lambda-go/lambda/messages"
)

// tooManyAbandoned returns an error if more goroutines than Options.Abandoned were abandoned and have not returned. Nothing
// but the end of the process ends them. aws-lambda-go reports an error with ShouldExit to Lambda, and then ends the process,
// as after a panic: Lambda delivers the batch again, to a new one.
func (a *adapter) tooManyAbandoned(ctx context.Context) error {
	n := a.abandoned.Load()
	if most := a.opts.Abandoned; most < 0 || n <= int64(most) {
		return nil
	}
	a.log.ErrorContext(ctx, "lambda: too many handlers or calls of SQS ignore the end of their context: the process ends",
		"abandoned_running", n, "most", a.opts.Abandoned)
	text := fmt.Sprintf("lambda: %d handlers or calls of SQS ignore the end of their context, Options.Abandoned is %d: the process ends", n, a.opts.Abandoned)
	return messages.InvokeResponse_Error{Type: "TooManyAbandoned", Message: text, ShouldExit: true}
}

// await calls f on a goroutine of its own, and reports whether it has returned before ctx ended. If not, f is abandoned: it counts
// until it returns, and what it writes must not be read.
func await(ctx context.Context, abandoned *atomic.Int64, f func()) bool {
	var settled atomic.Bool // true when f has returned, or was abandoned: the second one of the two sees that
	returned := make(chan struct{})
	go func() {
		defer func() {
			close(returned)
			if settled.Swap(true) {
				abandoned.Add(-1)
			}
		}()
		f()
	}()
	select {
	case <-returned:
		return true
	case <-ctx.Done():
	}
	abandoned.Add(1)
	if settled.Swap(true) { // it has returned meanwhile
		abandoned.Add(-1)
		<-returned
		return true
	}
	return false
}
