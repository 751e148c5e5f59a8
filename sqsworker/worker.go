package sqsworker

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Worker receives the messages of one queue and calls a handler for each. Make one with [New] and run it once.
type Worker struct {
	client   Client
	queueURL string
	fifo     bool
	handler  sqsonce.Handler
	opts     Options
	log      *slog.Logger
	now      func() time.Time

	counters  counters
	state     atomic.Int32 // see health.go
	lastTurn  atomic.Int64 // of the loop, Unix nanoseconds
	full      atomic.Bool  // InFlight is used up
	started   atomic.Bool
	hurry     chan struct{}
	hurryOnce sync.Once
}

// New returns a worker for the queue. The URL's suffix .fifo decides whether groups are kept in order.
//
// Every bad argument and option is reported at once, each as a [*sqsonce.FieldError]. No call is made and nothing is
// started before [Worker.Run].
func New(c Client, queueURL string, h sqsonce.Handler, optFns ...func(*Options)) (*Worker, error) {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	o.setDefaults()
	if err := validate(c, queueURL, h, &o); err != nil {
		return nil, err
	}
	return &Worker{
		client: c, queueURL: queueURL, fifo: host.IsFIFO(queueURL), handler: h, opts: o,
		log: o.Logger.With(keyQueue, queueURL),
		now: time.Now, hurry: make(chan struct{}),
	}, nil
}

// Run receives and handles messages until ctx ends, then stops as the package documentation describes, and returns nil
// after a clean stop. It blocks all the while and leaves no goroutine behind but those of handlers that never return.
//
// Handlers and requests get ctx's values and not its cancellation: ending ctx starts the stop and ends nothing that is
// under way.
//
// Errors: what SQS answered, where it cannot heal (queue missing, access denied, KMS key unusable), after the same
// stop; [*StopError] where the stop left something behind; [ErrAlreadyRun] the second time.
func (w *Worker) Run(ctx context.Context) error {
	if !w.started.CompareAndSwap(false, true) {
		return ErrAlreadyRun
	}
	defer w.state.Store(stateEnded)
	q, err := w.inspect(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	return newLoop(ctx, w, q).run()
}

// Hurry cancels the handlers at once, with cause sqsonce.ErrShutdown, instead of at StopTimeout, and stops the worker
// if nothing has yet: it is for the second signal. Long polls under way are still waited for, at most until
// StopTimeout, since ending one may hide its messages for a visibility timeout. It does not wait.
func (w *Worker) Hurry() { w.hurryOnce.Do(func() { close(w.hurry) }) }

// Keys of log attributes.
const (
	keyQueue     = "queue"
	keyMessage   = "message_id"
	keyGroup     = "group"
	keyCount     = "receive_count"
	keyError     = "error"
	keyReason    = "reason"
	keyDelay     = "delay"
	keySetting   = "setting"
	keyAttribute = "attribute"
	keyValue     = "value"
)
