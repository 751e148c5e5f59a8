package lambda

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

// Options configure [Start], [NewHandler] and [Wrap]. The zero value of each field is its default.
type Options struct {
	// Most users set these first.

	// Concurrency is how many handlers run at once in one invocation. A process that serves several invocations at once
	// (AWS_LAMBDA_MAX_CONCURRENCY) runs that many in each.
	// Default: 10. Limits: at least 1.
	Concurrency int
	// DeadLetterQueue is the URL of the queue for rejected messages, of the same kind as the function's queue. It needs a
	// client. Once SQS has confirmed a send, the message counts as a success, and Lambda deletes it. The host repeats a send
	// whose answer is lost, so a standard dead-letter queue may have the message more than once. Without a dead-letter queue a
	// rejected message is reported as failed.
	//
	// The messages of a FIFO group share their receives, and after the last one SQS would move them all, without a run. So the
	// host sends a FIFO message here that failed or was cut off at its last receive (maxReceiveCount of the queue's redrive
	// policy). It sends the head of a group one receive earlier if messages behind it share that receive, from the second
	// receive on. The messages behind it then run in the same invocation, or have the last receive for themselves. At its last
	// receive, while other messages of its group wait behind it, a message's context ends after half of the time that is left,
	// or later if the message was behind another one and the latest run times leave the others enough.
	//
	// A handler that doesn't return makes no difference, and neither does a message that is unavailable alone at its last
	// receive. If the host can't send a message at its last receive, the messages behind it run if SQS moves it. The host
	// doesn't send a message in an outage, a message that is in progress elsewhere, or a message that middleware keeps from its
	// handler. SQS moves such a message after its last receive, with its group.
	//
	// A delay always ends before the last two visibility timeouts of a message's retention, at least 1 min. A message that fails
	// there, or isn't started behind another one of its FIFO group, is sent here with this reason.
	//
	// The sends run alongside the handlers, as many at once. After a send that SQS did not answer within 10 s the invocation
	// stops sending, and a rejected message is a failure like any other.
	//
	// Default: the dead-letter queue of the queue's redrive policy.
	DeadLetterQueue string
	// Backoff returns the delay after a failure, from the attempt, 1 for the first. In a function the attempt is the receive
	// count. SQS counts every delivery, also a delivery that isn't an attempt, such as one while the store was unavailable. It
	// needs a client. The delay counts from the failure and is rounded up to whole seconds.
	// Default: 10 s, 1 min, then 5 min, and a random part of up to a quarter more. Limits: at least 1 s from the visibility
	// change, at most 10 h 20 min.
	Backoff func(attempt int) time.Duration

	// The invocation.

	// Margin is how long before the deadline the handlers' contexts end. The handlers have half of it to return, sends to the
	// dead-letter queue and visibility changes a quarter, and the response the rest. If the time that remains when the
	// invocation begins isn't longer than the margin, the function doesn't start any message.
	//
	// The function also doesn't start a message if the run times of this process say that it can't end before the margin. This
	// is so if more than 5% of the latest 100 runs, successful or not, took longer than the time that is left. The message is
	// reported as failed, with the rest of its FIFO group. This costs a receive but avoids a run that is cut off. One message of
	// each invocation is started whatever the run times say, and so is a message at its last receive by the queue's redrive
	// policy, or near the end of its retention.
	//
	// Default: 5% of the time that remains when the invocation begins, at least 500 ms and at most 5 s. Limits: at most 15 min.
	Margin time.Duration
	// AllOrNothing makes the function return an error if any message failed, so that Lambda delivers the whole batch again. Use
	// it for mappings without ReportBatchItemFailures. Messages that are in the dead-letter queue by then are delivered again
	// with the batch, and are sent there again.
	// Default: false.
	AllOrNothing bool
	// Client sends visibility changes and rejected messages. Without a client, or with [NoClient], only the visibility timeout
	// and the redrive policy of the queue act, and a rejected message is reported as failed.
	//
	// [Start] makes a client for the function's own role if this field is nil, from the environment variables that Lambda sets:
	// AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. It also reads AWS_ENDPOINT_URL_SQS and
	// AWS_ENDPOINT_URL, and ignores the other settings of the SDK.
	//
	// Default: in Start that client, in [NewHandler] and [Wrap] nil. Limits: an *sqs.Client has a Region or an endpoint.
	Client Client
	// Abandoned is how many abandoned goroutines that have not returned the process may have. These are handlers after the
	// margin, calls of Client, and hooks, that ignore their context. Beyond this number an invocation doesn't start handlers and
	// returns an error. An invocation that goes beyond it without a success returns an error too. awslambda.Start then ends the
	// process, and the next process begins without such goroutines.
	//
	// An abandoned handler is logged, its message is reported as failed, and its result changes neither the response nor a
	// queue. Lambda freezes the process after the response, and the handler continues in a later invocation, because a library
	// can't end it. Its writes to the event's record depend on the record's owner, as always.
	//
	// Default: 10 x Concurrency. A negative number removes the limit.
	Abandoned int

	// Logs, hooks and error texts.

	// Logger gets each failed message, and a summary of each invocation in which one failed, never a body. docs/logs.md lists the lines. If its
	// slog.Handler blocks, the host drops lines. An answer waits for it at most 50 ms and a quarter of the time that remains.
	// Default: slog.Default().
	Logger *slog.Logger
	// OnError is called after each handler whose outcome is failed, rejected or unavailable. The rules of [sqsonce.Hooks] apply.
	// For more use Hooks.
	// Default: nil.
	OnError func(ctx context.Context, m *sqsonce.Message, err error)
	// Hooks are called for telemetry. See [Hooks].
	// Default: empty.
	Hooks []Hooks
	// ErrorText returns the text of a handler's error for the attribute reject-reason, which the readers of the dead-letter
	// queue see. If it panics, the host writes the error's type instead.
	// Default: Error.
	ErrorText func(error) string
}

// maxMargin is the longest timeout of a function that is not on Managed Instances.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
const maxMargin = 15 * time.Minute

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
	p := host.Problems{Package: "lambda"}
	add := p.Add
	add(h == nil, "handler", "is nil, or was made of a nil handler or middleware")
	add(o.Concurrency < 0, "Options.Concurrency", "is %d, must be at least 1", o.Concurrency)
	add(o.Margin < 0 || o.Margin > maxMargin, "Options.Margin",
		"is %s, must be positive and at most 15 min: at its deadline a function loses its response", o.Margin)
	noClient := o.Client == nil && !makesClient
	add(o.Client != nil && host.IsNil(o.Client), "Options.Client", "is a nil %T", o.Client)
	if c, ok := o.Client.(*sqs.Client); ok && c != nil {
		add(c.Options().Region == "" && c.Options().BaseEndpoint == nil, "Options.Client", "%s", sdkhttp.Cure("", nil))
	}
	add(noClient && o.DeadLetterQueue != "", "Options.DeadLetterQueue", "needs a client: set Options.Client")
	add(noClient && o.Backoff != nil, "Options.Backoff", "needs a client: set Options.Client")
	if o.DeadLetterQueue != "" {
		problem := host.QueueURLProblem(o.DeadLetterQueue)
		add(problem != "", "Options.DeadLetterQueue", "%s", problem)
	}
	return p.Err()
}
