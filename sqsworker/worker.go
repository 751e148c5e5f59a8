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
	given    Options // without the defaults
	opts     Options // as the worker was made: the loop has its own
	lines    *host.Lines
	log      *slog.Logger // to lines
	now      func() time.Time
	warm     bool // tests begin without the slow start

	hooks    hooks
	control  control
	counters counters
	state    atomic.Int32           // see health.go
	lastStep atomic.Int64           // of the loop, Unix nanoseconds
	full     atomic.Bool            // no receive is under way, since there is no capacity for one or no handler
	noNeed   atomic.Int64           // when no receive was needed last, Unix nanoseconds: full or paused
	progress atomic.Int64           // when a handler last returned, a delete was confirmed, or full began; Unix nanoseconds
	notReady atomic.Pointer[string] // why nothing can be handled; nil: it can
	waitsFor atomic.Pointer[string] // why Run receives nothing yet
	started  atomic.Bool
	hurried  context.Context // cancelled by Shutdown
	hurry    context.CancelFunc

	longTimeout sync.Once // logs a timeout beyond MaxExtension
}

// New returns a worker for the queue. The URL's suffix .fifo decides whether groups are handled in order.
//
// It reports every bad argument and option at once, each as a [*sqsonce.OptionError]. It makes no call and starts nothing;
// [Worker.Run] does.
func New(c Client, queueURL string, h sqsonce.Handler, optFns ...func(*Options)) (*Worker, error) {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	given := o
	o.setDefaults()
	if err := validate(c, queueURL, h, &given, &o); err != nil {
		return nil, err
	}
	w := &Worker{
		client: safeClient{c}, queueURL: queueURL, fifo: host.IsFIFO(queueURL), handler: h, given: given, opts: o,
		lines: &host.Lines{}, now: time.Now,
	}
	w.log = slog.New(w.lines.Handler(o.Logger.Handler())).With(keyQueue, queueURL)
	w.hooks = newHooks(w.log, o.Hooks)
	w.control.changed = make(chan struct{}, 1)
	w.control.concurrency.Store(int64(o.Concurrency))
	w.hurried, w.hurry = context.WithCancel(context.Background())
	return w, nil
}

// Run receives and handles messages until ctx is cancelled, then stops as the package documentation describes, and
// returns nil after a clean stop. It blocks all the while. What never returns of the user's keeps its goroutine: a handler, a
// function given to sqsonce.OnSettled, the slog.Handler. No other goroutine is left.
//
// Handlers and requests get the values of ctx and not its cancellation: cancelling ctx starts the stop and cancels
// nothing that is under way.
//
// Errors: the answer of SQS where no retry helps (queue missing, access denied, credentials refused, KMS key unusable; a
// signature that is refused again and again for 4 s, since the SDK corrects a clock that is off), after the same stop; the SDK's error if before the first
// receive no request could be sent for 30 s (no credentials, no Region, a name that does not resolve); [*StopError] if the stop left
// something unfinished; [ErrAlreadyRun] the second time.
func (w *Worker) Run(ctx context.Context) error {
	if !w.started.CompareAndSwap(false, true) {
		return ErrAlreadyRun
	}
	defer w.state.Store(stateEnded)
	defer w.lines.Flush(logFlush)
	ctx = w.lines.Context(ctx)
	defer host.Attach(ctx, w.log, "sqsworker", w.hooks.attach, w)()
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.hurried, cancel)()
	q, err := w.inspect(starting)
	if err != nil || starting.Err() != nil {
		return err
	}
	w.logStart(&q)
	return newLoop(ctx, w, q).run()
}

// Shutdown cancels the handlers at once, with cause sqsonce.ErrShutdown, instead of at StopTimeout. It starts the stop if
// that has not begun: it is for the second signal. Run still waits for long polls under way, at most until StopTimeout,
// since the messages of a cancelled poll may stay hidden for a visibility timeout; one log line says what it waits for.
// Before the first receive Run returns at once. Shutdown itself does not wait.
func (w *Worker) Shutdown() { w.hurry() }

// Keys of log attributes.
const (
	keyQueue     = "queue"
	keyMessage   = "message_id"
	keyEvent     = "key"
	keyGroup     = "group"
	keyCount     = "receive_count"
	keyError     = "error"
	keyReason    = "reason"
	keyDelay     = "delay"
	keySetting   = "setting"
	keyAttribute = "attribute"
	keyValue     = "value"
)
