package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/backoff"
)

// ProcessorOptions configure [NewProcessor].
type ProcessorOptions struct {
	// Concurrency is how many handlers run at once. Each has a connection of the pool, and the processor one more. On
	// SQLite, where one transaction writes at a time, more than 1 gains nothing. Default: 10; 1 on SQLite.
	Concurrency int
	// Poll is how often the table is asked while there is nothing to do, by up to a tenth earlier or later. Default: 1 s.
	Poll time.Duration
	// Lease is how long an event waits whose processor vanished between its claim and its outcome. A handler may run
	// longer: the event's row is locked meanwhile. Default: 30 s.
	Lease time.Duration
	// MaxAttempts is after how many failures, crashes included, an event is parked. Default: 10; negative: never.
	MaxAttempts int
	// Backoff is how long an event waits after its attempt failed, from 1. Default: full jitter, 1 s doubling to 15 min.
	Backoff func(attempt int) time.Duration
	// StopTimeout is how long handlers may go on after Run's context has ended, before theirs is cancelled with cause
	// sqsonce.ErrShutdown. Default: 25 s; negative: none.
	StopTimeout time.Duration
	// Logger gets what no error carries: failed attempts, parked events, lost leases. Default: discard.
	Logger *slog.Logger
}

// ProcessorStats counts what a Processor has seen since [NewProcessor].
type ProcessorStats struct {
	Done    int64 // handlers that were committed
	Failed  int64 // attempts that ended in an error and are tried again
	Parked  int64 // events parked
	Crashed int64 // events parked because their attempts ended without an outcome
	Lost    int64 // attempts that found their lease taken over: nothing of them was committed
}

// Processor runs a handler for the events that a [Deferred] has stored. Any number of processors may work on one table.
type Processor struct {
	inbox   *Deferred
	o       ProcessorOptions // with defaults
	running atomic.Bool
	counts  struct{ done, failed, parked, crashed, lost atomic.Int64 }
}

// NewProcessor returns a processor; it starts nothing. The error joins one [*sqsonce.FieldError] per field that cannot be
// used.
func NewProcessor(d *Deferred, optFns ...func(*ProcessorOptions)) (*Processor, error) {
	o := ProcessorOptions{}
	for _, fn := range optFns {
		fn(&o)
	}
	var errs []error
	if d == nil {
		errs = append(errs, fieldError("inbox", "is nil"))
	}
	concurrency := 10
	if d != nil && d.store.dialect.engine == sqlite {
		concurrency = 1
	}
	o.Concurrency = cmp.Or(o.Concurrency, concurrency)
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, 10)
	o.StopTimeout = cmp.Or(o.StopTimeout, 25*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Backoff == nil {
		o.Backoff = backoff.Default
	}
	if o.Concurrency < 0 {
		errs = append(errs, fieldError("ProcessorOptions.Concurrency", "is negative"))
	}
	if o.Poll < 0 {
		errs = append(errs, fieldError("ProcessorOptions.Poll", "is negative"))
	}
	if o.Lease < time.Second {
		errs = append(errs, fieldError("ProcessorOptions.Lease", "is less than 1 s"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Processor{inbox: d, o: o}, nil
}

// Run takes events that are due, the longest due first, and runs h for each in a transaction with the mark that it is
// done. It blocks until ctx ends and all handlers have returned, and then returns nil. A [*DatabaseError] ends it too, but
// for [ErrReadOnly], which a failover brings and takes away; what else the database answers is logged, and the table is
// asked again after Poll. One call at a time.
//
// Of a group of a FIFO queue only the oldest event that is neither done nor parked is taken: the next one waits until it
// is, also while it backs off.
//
// An attempt is counted, and committed, before h's transaction begins: a handler that takes its process down with it is
// parked in the end too. What h returns decides:
//
//   - nil: its writes and the mark are committed. As with an [Inbox], h may be called again within the attempt where the
//     database ended the transaction or a commit's answer was lost, with what is said there of handlers.
//   - [sqsonce.RetryAfter]: rolled back, and tried again after the delay.
//   - [sqsonce.Reject]: rolled back and parked.
//   - any other error, a panic or runtime.Goexit: rolled back, and tried again by Backoff; parked after MaxAttempts.
//
// The error's text is kept with the event. An attempt that a stop ended ([sqsonce.ErrShutdown]) is not counted.
//
// h's context does not end with ctx: see StopTimeout.
func (p *Processor) Run(ctx context.Context, h func(context.Context, *sqsonce.Message, *sql.Tx) error) error {
	if h == nil {
		return fieldError("handler", "is nil")
	}
	if !p.running.CompareAndSwap(false, true) {
		return errors.New("sqlstore: processor: is running already")
	}
	defer p.running.Store(false)
	if err := p.inbox.store.use(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	handlers, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var running sync.WaitGroup
	err := p.dispatch(ctx, func(j job, leave func()) {
		running.Go(func() {
			defer leave()
			p.handle(handlers, j, h)
		})
	})
	hurry := time.AfterFunc(max(0, p.o.StopTimeout), func() { cancel(sqsonce.ErrShutdown) })
	defer hurry.Stop()
	running.Wait()
	return err
}

// dispatch claims events and starts them, no more than can run at once: a lease is for an event that is at work, and the
// others are there for other processors.
func (p *Processor) dispatch(ctx context.Context, start func(j job, leave func())) error {
	var working atomic.Int64
	left := make(chan struct{}, 1) // an event's outcome makes room, and may make the next of its group due
	for ctx.Err() == nil {
		free := p.o.Concurrency - int(working.Load())
		var jobs []job
		if free > 0 {
			var err error
			if jobs, err = p.claim(ctx, free); err != nil {
				if final(err) {
					return err
				}
				p.o.Logger.ErrorContext(ctx, "sqlstore: processor: claim failed, and is tried again", "error", err)
			}
		}
		for _, j := range jobs {
			working.Add(1)
			start(j, func() {
				working.Add(-1)
				select {
				case left <- struct{}{}:
				default:
				}
			})
		}
		if len(jobs) > 0 && len(jobs) == free {
			free = 0 // there may be more: as soon as there is room
		}
		p.await(ctx, free > 0, left)
	}
	return nil
}

// await waits for a handler to end, for ctx, and where there is room for the next poll.
func (p *Processor) await(ctx context.Context, poll bool, left <-chan struct{}) {
	var tick <-chan time.Time
	if poll {
		t := time.NewTimer(p.o.Poll*9/10 + rand.N(p.o.Poll/5+1))
		defer t.Stop()
		tick = t.C
	}
	select {
	case <-left:
	case <-tick:
	case <-ctx.Done():
	}
}

// final reports whether no retry mends the error.
func final(err error) bool {
	_, is := errors.AsType[*DatabaseError](err)
	return is && !errors.Is(err, ErrReadOnly)
}

// Stats returns what has been counted since NewProcessor.
func (p *Processor) Stats() ProcessorStats {
	c := &p.counts
	return ProcessorStats{
		Done: c.done.Load(), Failed: c.failed.Load(), Parked: c.parked.Load(), Crashed: c.crashed.Load(), Lost: c.lost.Load(),
	}
}
