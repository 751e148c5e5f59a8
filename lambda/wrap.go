package lambda

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/thaw"
)

// adapter is what the invocations of a process share; all else is per invocation, since one process may serve several
// at once.
type adapter struct {
	handler sqsonce.Handler
	opts    Options
	log     *slog.Logger
	// alone says that the process serves one invocation at a time: at the deadline Lambda ends it.
	alone bool

	conns     thaw.Conns // of opts.Client
	queueURLs sync.Map   // ARN to URL
	noDLQ     sync.Once
	// ghosts counts abandoned handlers that have not returned yet.
	ghosts atomic.Int64
}

// Wrap returns the function that handles SQS events with h, for awslambda.Start or a test.
//
// The function returns an error, so that Lambda delivers the whole batch again, for an event without records, with
// records of another service than SQS or of several queues, or with one that has no message ID; no handler has run
// then. It also does where a message failed under Options.AllOrNothing. Otherwise the response names each failed message
// once. Its list is never nil. A message ID that is in the event twice is handled twice, and named if either failed.
//
// Without a deadline in its context it waits for its handlers, however long they take.
//
// Where one invocation runs at a time (AWS_LAMBDA_MAX_CONCURRENCY is unset or at most 1 when Wrap is called) the
// messages' KillAt is the deadline.
//
// Every bad argument and option is reported at once, each as a [*sqsonce.FieldError]. Nothing is started.
func Wrap(h sqsonce.Handler, optFns ...func(*Options)) (func(context.Context, events.SQSEvent) (events.SQSEventResponse, error), error) {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	if err := validate(h, &o); err != nil {
		return nil, err
	}
	o.setDefaults()
	a := &adapter{handler: h, opts: o, log: o.Logger, alone: servesAlone(os.Getenv("AWS_LAMBDA_MAX_CONCURRENCY"))}
	return a.invoke, nil
}

// servesAlone reads AWS_LAMBDA_MAX_CONCURRENCY. What is not a number is not taken for 1: a wrong KillAt would end
// leases under running handlers, while without one they are renewed.
func servesAlone(concurrency string) bool {
	if concurrency = strings.TrimSpace(concurrency); concurrency == "" {
		return true
	}
	n, err := strconv.Atoi(concurrency)
	return err == nil && n <= 1
}

func (a *adapter) invoke(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
	if err := check(event.Records); err != nil {
		a.log.ErrorContext(ctx, "lambda: event refused", keyError, err)
		return response(nil), err
	}
	v := a.begin(ctx, event.Records)
	defer v.end()
	v.wait(v.run())
	r := v.close()
	v.delay(ctx, r)
	return v.answer(ctx, r)
}

// Keys of log attributes.
const (
	keyMessage = "message_id"
	keyGroup   = "group"
	keyCount   = "receive_count"
	keyError   = "error"
	keyStack   = "stack"
)
