package lambda

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Start serves the function's invocations with h and never returns. Call it last in main. If an argument or option is bad, it
// prints each error to standard error and ends the process with status 1 before the first invocation.
//
// Start makes a client as Options.Client describes. If the environment lacks a variable for it, Start logs an error and
// serves without a client.
func Start(h sqsonce.Handler, optFns ...func(*Options)) {
	a, err := newAdapter(h, optFns, func() (Client, error) { return newClient(os.Getenv) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	awslambda.Start(a)
}

// NewHandler returns the handler that [Start] serves, for awslambda.StartWithOptions or middleware. It does what the function of [Wrap]
// does, and takes less CPU, because it reads only what it needs of an event.
func NewHandler(h sqsonce.Handler, optFns ...func(*Options)) (awslambda.Handler, error) {
	a, err := newAdapter(h, optFns, nil)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Wrap returns the function that handles SQS events with h, for a test, or for middleware that needs a function.
//
// The function returns an error, without starting a handler, if the event has no records, records of another service or of
// several queues, or a record without a message ID. It also returns an error if a message failed and Options.AllOrNothing is
// set. After an error Lambda delivers the whole batch again. Otherwise the response names each failed message once. Its list is
// never nil. A message ID that is in the event twice is handled twice, and is named if either of the two failed.
//
// It also returns an error if more handlers and calls of SQS than Options.Abandoned don't return. This is a
// messages.InvokeResponse_Error of aws-lambda-go with ShouldExit, after which awslambda.Start ends the process.
//
// If the context lacks a deadline, the function waits for its handlers without a limit.
//
// The messages' KillAt is the deadline if the process serves one invocation at a time, because AWS_LAMBDA_MAX_CONCURRENCY is
// unset or at most 1 at the call of Wrap.
//
// Wrap reports every bad argument and option at once, each as a [*sqsonce.OptionError]. It doesn't start anything.
func Wrap(h sqsonce.Handler, optFns ...func(*Options)) (func(context.Context, events.SQSEvent) (events.SQSEventResponse, error), error) {
	a, err := newAdapter(h, optFns, nil)
	if err != nil {
		return nil, err
	}
	return a.invoke, nil
}

// newAdapter makes a client with newClient, which may be nil, where the options have none.
func newAdapter(h sqsonce.Handler, optFns []func(*Options), newClient func() (Client, error)) (*adapter, error) {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	noClient := o.Client == NoClient
	if noClient {
		o.Client = nil
	}
	makesClient := newClient != nil && o.Client == nil && !noClient
	if err := validate(h, &o, makesClient); err != nil {
		return nil, err
	}
	o.setDefaults()
	a := &adapter{handler: h, noClient: noClient, oneInvocation: oneInvocationAtATime(os.Getenv("AWS_LAMBDA_MAX_CONCURRENCY"))}
	a.log = slog.New(a.lines.LateHandler(o.Logger.Handler()))
	if makesClient {
		var err error
		if o.Client, err = newClient(); err != nil {
			a.log.Error("lambda: no SQS client: delays are not set, and rejected messages are not sent to the dead-letter queue; set Options.Client, to NoClient if that is wanted", keyError, err)
			a.lines.Flush(logFlush)
		}
	}
	a.opts, a.hooks = o, newHooks(a.log, o.Hooks)
	a.client = &safeClient{next: o.Client, abandoned: &a.abandoned}
	return a, nil
}

// adapter is the state that the invocations of a process share. All other state belongs to one invocation, because a process
// may serve several at once.
type adapter struct {
	handler sqsonce.Handler
	opts    Options
	lines   host.Lines
	log     *slog.Logger // writes to lines: what is logged waits for nothing of the user's
	hooks   hooks
	// oneInvocation says that the process serves one invocation at a time: Lambda ends the process at its deadline.
	oneInvocation bool

	client    *safeClient // of opts.Client; not called without one
	noClient  bool        // Options.Client is NoClient
	queueURLs sync.Map    // ARN to URL
	queues    sync.Map    // ARN to knownQueue
	questions sync.Map    // ID to *asked
	runTimes  runTimes    // of the handlers
	// Each is logged once: that an error needs a client, and that a rejected message cannot be sent to a dead-letter queue.
	logNoClient, logNoDLQ sync.Once
	abandoned             atomic.Int64 // handlers, calls of the client and hooks that were abandoned and have not returned yet
}

// oneInvocationAtATime reads AWS_LAMBDA_MAX_CONCURRENCY. A value that is no number does not count as 1: with a wrong KillAt
// the lease of a running handler would end, while without a KillAt it is renewed.
func oneInvocationAtATime(concurrency string) bool {
	if concurrency = strings.TrimSpace(concurrency); concurrency == "" {
		return true
	}
	n, err := strconv.Atoi(concurrency)
	return err == nil && n <= 1
}

// Invoke handles the JSON text of an event.
func (a *adapter) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var e event
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	answer, err := a.serve(ctx, e.Records)
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// invoke handles an event that awslambda has decoded.
func (a *adapter) invoke(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
	return a.serve(ctx, recordsOf(event.Records))
}

func (a *adapter) serve(ctx context.Context, records []record) (events.SQSEventResponse, error) {
	defer a.flushLog(ctx)
	ctx = a.lines.Context(ctx)
	if err := check(records); err != nil {
		a.log.ErrorContext(ctx, "lambda: event refused", keyError, err)
		return response(nil), err
	}
	if err := a.tooManyAbandoned(ctx); err != nil {
		return response(nil), err
	}
	v := a.newInvocation(ctx, records)
	ctx = v.begin(ctx)
	v.start(ctx)
	defer v.cancel()
	v.handlers.add(v.chains...)
	v.wait()
	if v.closeHandlers() {
		v.waitForSends()
	}
	r := v.closeResults()
	v.delay(ctx, r)
	answer, err := v.respond(ctx, r)
	v.finish(ctx, r, err)
	return answer, err
}

// Keys of log attributes.
const (
	keyMessage = "message_id"
	keyEvent   = "key"
	keyGroup   = "group"
	keyCount   = "receive_count"
	keyError   = "error"
)
