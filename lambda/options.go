package lambda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Options configure [Wrap] and [Start]. The zero value of each field is its default.
type Options struct {
	// What most users set first.

	// Concurrency is how many handlers run at once in one invocation. A process that serves several invocations at once
	// (AWS_LAMBDA_MAX_CONCURRENCY) runs that many in each. At least 1. Default: 10.
	Concurrency int
	// DeadLetterQueue is the URL of the queue for rejected messages, of the same kind as the function's queue. It needs a
	// client. A FIFO message that fails at its last receive (maxReceiveCount of the queue's redrive policy), or one receive
	// before those behind it in its group have theirs, is sent there too, and the messages behind it are run. Default: the one of the queue's redrive policy. Without one a
	// rejected message is reported as failed.
	DeadLetterQueue string
	// Backoff returns the delay after a failure, from the try, 1 for the first. In a function the try is the receive count:
	// SQS counts every delivery, also one that is not a try, such as one while the store was unavailable. It needs a client.
	// The delay counts from the failure and is rounded up to whole seconds; at least 1 s from the visibility change, at most
	// 11 h 30 min. Default: 10 s, 1 min, then 5 min, and a random part of up to a quarter more.
	Backoff func(try int) time.Duration

	// The invocation.

	// Margin is how long before the deadline the handlers' contexts end. The handlers have half of it to return, sends to the
	// dead-letter queue and visibility changes a quarter, and the response the rest. If not more than the margin remains when the invocation begins, no message
	// is started. At most 15 min. Default: 5% of the time that remains when the invocation begins, at least 500 ms and at
	// most 5 s.
	Margin time.Duration
	// AllOrNothing makes the function return an error if any message failed, so that Lambda delivers the whole batch
	// again. It is for mappings without ReportBatchItemFailures. Messages that are in the dead-letter queue by then are
	// delivered again with the batch, and are sent there again. Default: false.
	AllOrNothing bool
	// Client sends visibility changes and rejected messages. Default: in [Start] a client for the function's own role, made
	// from the environment variables that Lambda sets: AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
	// AWS_SESSION_TOKEN; also AWS_ENDPOINT_URL_SQS and AWS_ENDPOINT_URL, and no other settings of the SDK. In [Wrap] none:
	// then, and with [NoClient], only the visibility timeout and the redrive policy of the queue act, and a rejected message is
	// reported as failed.
	Client Client
	// Abandoned is how many goroutines the process may have that were abandoned and have not returned: handlers after the
	// margin, calls of Client, and hooks, that ignore their context. Beyond it an invocation starts no handler and returns an error,
	// as does one that goes beyond it without a success; awslambda.Start then ends the process, and the next one has none.
	// Default: 10 x Concurrency; negative: no limit.
	Abandoned int

	// What is told of it.

	// Logger gets each failed message and a summary of each invocation, never a body. A handler that blocks harms
	// nobody: up to 1,024 lines wait, further ones are dropped, and the next line says how many (dropped_lines). An answer waits
	// for the last lines, at most 50 ms and a quarter of the time that remains. Default: slog.Default().
	Logger *slog.Logger
	// OnError is called after each handler that failed: whose outcome is failed, rejected or unavailable. The rules of [sqsonce.Hooks]
	// apply; for more use Hooks. Default: none.
	OnError func(ctx context.Context, m *sqsonce.Message, err error)
	// Hooks are called for telemetry: see [Hooks]. Default: none.
	Hooks []Hooks
	// ErrorText is what is written of a handler's error into reject-reason, which whoever reads the dead-letter queue sees. One
	// that panics leaves the error's type. Default: Error.
	ErrorText func(error) string
}

// maxTimeout is the longest timeout of a function.
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const maxTimeout = 15 * time.Minute

func (o *Options) setDefaults() {
	o.Concurrency = cmp.Or(o.Concurrency, 10)
	o.Abandoned = cmp.Or(o.Abandoned, 10*o.Concurrency)
	if o.Backoff == nil {
		o.Backoff = host.DefaultBackoff
	}
	o.Logger = host.Logger(o.Logger)
	if o.OnError != nil {
		o.Hooks = append(slices.Clip(o.Hooks), Hooks{Hooks: host.OnError(o.OnError)})
	}
}

// validate reports every bad argument and option at once. It runs before setDefaults. makesClient says that one is made where
// Options.Client is not set.
func validate(h sqsonce.Handler, o *Options, makesClient bool) error {
	var errs []error
	add := func(bad bool, field, format string, args ...any) {
		if bad {
			errs = append(errs, &sqsonce.OptionError{Package: "lambda", Field: field, Problem: fmt.Sprintf(format, args...)})
		}
	}
	add(h == nil, "handler", "is nil")
	add(o.Concurrency < 0, "Options.Concurrency", "is %d, must be at least 1", o.Concurrency)
	add(o.Margin < 0 || o.Margin > maxTimeout, "Options.Margin",
		"is %s, must be positive and at most 15 min: at its deadline a function loses its response", o.Margin)
	noClient := o.Client == nil && !makesClient
	add(o.Client != nil && host.IsNil(o.Client), "Options.Client", "is a nil %T", o.Client)
	add(noClient && o.DeadLetterQueue != "", "Options.DeadLetterQueue", "needs a client: set Options.Client")
	add(noClient && o.Backoff != nil, "Options.Backoff", "needs a client: set Options.Client")
	if o.DeadLetterQueue != "" {
		problem := host.QueueURLProblem(o.DeadLetterQueue)
		add(problem != "", "Options.DeadLetterQueue", "%s", problem)
	}
	return errors.Join(errs...)
}
