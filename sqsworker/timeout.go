package sqsworker

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce"
)

// withTimeout returns ctx with the deadline that Options.Timeout gives the message. It is called on the handler's
// goroutine and where the handler's panics are recovered: Timeout is the user's, may panic, and may take long. began gets
// the timeout, if there is one.
func (w *Worker) withTimeout(ctx context.Context, m *sqsonce.Message, began func(time.Duration)) (context.Context, context.CancelFunc) {
	var timeout time.Duration
	if w.opts.Timeout != nil {
		timeout = w.opts.Timeout(m)
	}
	if timeout <= 0 {
		return ctx, func() {}
	}
	if timeout > w.opts.MaxExtension {
		w.longTimeout.Do(func() {
			w.warnIf(true, "Options.Timeout", timeout, "handlers are cancelled with ErrLeaseLost at MaxExtension, before their timeout")
		})
	}
	began(timeout)
	return context.WithTimeout(ctx, timeout)
}

// timeoutBegan says that a handler is about to be called with a deadline. It comes before the handler's return, because the
// handler's goroutine posts both.
type timeoutBegan struct {
	d       *delivery
	timeout time.Duration
}
