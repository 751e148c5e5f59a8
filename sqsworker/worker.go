package sqsworker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Worker receives the messages of one queue and calls a handler for each. Make one with [New] and run it once.
//
// A handler that returns [sqsonce.ErrUnavailable], as package dedup does while its store is down, has not made an attempt. The
// worker holds the message, with its FIFO group, outside MaxInFlight.
//
// If the error has a question ([sqsonce.UnavailableUntil], and every error of dedup's store), the worker asks it:
//
//   - While the question fails, the worker neither receives nor runs messages. After a minute it gives back messages, as long
//     as each has two receives left, because another worker may be able to run them.
//   - If the question passes, the worker sets only this message aside, and runs it again after 1 s, doubling to 5 min.
//
// Without a question three such outcomes in a row put the worker in doubt. It receives one message a second, to see whether
// others can be handled, and gives them back after 90 s. A worker starts with one message, until a message has had another
// outcome.
//
// While a question fails or the worker is in doubt, [Worker.Health] is not ready. The worker logs one line a minute while
// messages are unavailable, and one at the end.
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

	hooks       hooks
	control     control
	counters    counters
	state       atomic.Int32           // see health.go
	lastStep    atomic.Int64           // of the loop, Unix nanoseconds
	full        atomic.Bool            // no receive is under way, since there is no capacity for one or no handler
	noNeed      atomic.Int64           // when no receive was needed last, Unix nanoseconds: full or paused
	progress    atomic.Int64           // when a handler last returned, a delete was confirmed, or full began, in Unix nanoseconds
	notReady    atomic.Pointer[string] // why the worker can't handle messages, nil if it can
	waitsFor    atomic.Pointer[string] // why Run does not receive yet
	started     atomic.Bool
	shutdownCtx context.Context // cancelled by Shutdown
	shutdown    context.CancelFunc

	longTimeout sync.Once // logs a timeout beyond MaxExtension
}

// New returns a worker for the queue. The URL's suffix .fifo decides whether groups are handled in order.
//
// It reports every bad argument and option at once, each as a [*sqsonce.OptionError]. It neither calls SQS nor starts
// anything. [Worker.Run] does.
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
	w.control.limits = map[*int]struct{}{}
	w.control.setConcurrency(func() { w.control.given = o.Concurrency })
	w.shutdownCtx, w.shutdown = context.WithCancel(context.Background())
	return w, nil
}

// Run receives and handles messages until ctx is cancelled, then stops, and returns nil after a clean stop. It blocks until
// then. Handlers and requests get the values of ctx and not its cancellation, so a stop doesn't cancel the work under way.
//
// # Startup check
//
// Run reads the queue's attributes before its first receive, and logs each questionable setting of the queue and the options in
// one line, "sqsworker: questionable setting" with the keys setting, value and reason: a redrive policy that is missing or of
// one or two receives, a dead-letter queue with a shorter retention than the queue, a stop shorter than a poll, and options
// without effect on this kind of queue. The first timeout beyond MaxExtension is logged like this too. Run continues in all
// these cases.
//
// If Run is denied the attributes, it receives at once (see [Client]). If SQS doesn't answer (throttling, an outage), Run waits
// for 30 s, and /ready says so. Then it receives as without permission, and asks for the attributes once a minute. It waits
// longer if the queue's URL lacks the form of AWS's, because then its ARN is not known. If GetQueueUrl fails, Run makes the URL
// of the dead-letter queue from its name and the queue's URL.
//
// # Stop
//
// Cancelling ctx starts the stop:
//
//  1. The worker starts no new receive. It does not cancel long polls under way, because SQS may hand messages to a cancelled
//     one. Messages that they still bring are given back at once.
//  2. Messages that have not been started are given back. One whose next receive is its last stays hidden until the long
//     polls have ended. A message at its last receive before the dead-letter queue is run instead, as long as handlers
//     continue. If it has not been started by then, it is given back too, and SQS moves it without a run.
//  3. Handlers continue until [Options.StopTimeout]. Then their contexts are cancelled with cause [sqsonce.ErrShutdown], and
//     they have StopGrace to return. [Worker.Shutdown] cancels them at once, and also gives back messages at their last
//     receive.
//  4. Deletes and releases that are still open are sent, for up to five more seconds. The heartbeat ends last.
//  5. Run waits for the last log lines, and for the functions given to [sqsonce.OnSettled], at most a second each.
//
// A handler, a function given to sqsonce.OnSettled, or a slog.Handler that never returns keeps its goroutine. All other
// goroutines have ended when Run returns. [Worker.Stats] is the full report of the stop.
//
// # Errors
//
//   - The answer of SQS, after the same stop, if a retry can't help: the queue doesn't exist, access is denied, credentials
//     are refused, or a KMS key is unusable. The worker sends nothing more to a queue that was deleted. A refused signature
//     ends Run only if it is refused again and again for 4 s, because the SDK corrects a clock that is off.
//   - The SDK's error if Run could not send a request for 30 s before the first receive, for example without credentials,
//     without a Region, or because a name doesn't resolve. Messages have not been received yet.
//   - [*StopError] if the stop left something unfinished. It counts the messages and handlers.
//   - [ErrAlreadyRun] the second time.
//
// Each error has the queue's URL.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.run(ctx); err != nil {
		return fmt.Errorf("sqsworker: queue %s: %w", w.queueURL, err)
	}
	return nil
}

func (w *Worker) run(ctx context.Context) error {
	if !w.started.CompareAndSwap(false, true) {
		return ErrAlreadyRun
	}
	defer w.state.Store(stateEnded)
	defer w.lines.Flush(logFlush)
	ctx = w.lines.Context(ctx)
	defer host.Attach(ctx, w.log, "sqsworker", w.hooks.attach, w)()
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.shutdownCtx, cancel)()
	q, err := w.inspect(starting)
	if err != nil || starting.Err() != nil {
		return err
	}
	w.logStart(&q)
	return newLoop(ctx, w, q).run()
}

// Shutdown cancels the handlers at once, with cause sqsonce.ErrShutdown, instead of at StopTimeout. It starts the stop if that
// has not begun. Use it for the second signal. Run still waits for long polls under way, at most until StopTimeout. The
// messages of a cancelled poll may stay hidden for a visibility timeout. One log line lists the calls and handlers that it
// waits for. Before the first receive Run returns at once. Shutdown itself does not wait.
func (w *Worker) Shutdown() { w.shutdown() }

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
