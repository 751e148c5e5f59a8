package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// ProcessorOptions configure [NewProcessor].
type ProcessorOptions struct {
	// Most users set these first.

	// Concurrency is the number of handlers that run at once. Each uses a connection of the pool, and the processor uses
	// one more. On SQLite one transaction writes at a time, so more than 1 doesn't help.
	//
	// Default: 10, on SQLite 1. Limits: not negative.
	Concurrency int
	// MaxAttempts is the number of failures, crashes included, after which an event is parked. The event gets one more
	// attempt if the last one ended in a crash while other events of the processor were running.
	//
	// Default: 10. Limits: a negative value never parks an event for its failures.
	MaxAttempts int
	// StopTimeout is how long handlers may run after Run's context has ended. Then their contexts are cancelled with cause
	// [sqsonce.ErrShutdown].
	//
	// Default: 25 s. Limits: a negative value cancels them at once.
	StopTimeout time.Duration

	// Claims and retries.

	// Poll is the time between two looks at the table while no event is due, up to a tenth shorter or longer.
	//
	// Default: 1 s. Limits: not negative.
	Poll time.Duration
	// LeaseDuration is how long an event waits if its processor crashes between the claim and the end of the attempt. A
	// handler may run longer, because its transaction keeps the event's row locked.
	//
	// Default: 30 s. Limits: at least 1 s.
	LeaseDuration time.Duration
	// Backoff returns how long an event waits after its attempt failed. The first attempt is 1.
	//
	// Default: full jitter, 1 s doubling up to 15 min.
	Backoff func(attempt int) time.Duration

	// Logs.

	// Logger gets failed attempts, parked events and lost leases, which Run doesn't return as errors.
	//
	// Default: slog.Default().
	Logger *slog.Logger
}

// ProcessorStats counts the attempts and the events of a Processor since [NewProcessor].
type ProcessorStats struct {
	Done    int64 // attempts whose writes were committed
	Skipped int64 // attempts that returned Skip: their events are done, and their writes were rolled back
	Failed  int64 // attempts that ended in an error and will be repeated
	Parked  int64 // events that were parked
	Crashed int64 // events that were parked because their attempts ended without an outcome
	Lost    int64 // attempts whose event another processor had claimed, and whose writes were rolled back

	Postponed int64 // attempts that were postponed, which events don't count
}

// Processor runs a handler for the events that a [Deferred] has stored. Any number of processors may work on one table.
type Processor struct {
	inbox    *Deferred
	o        ProcessorOptions       // with defaults
	due      func() claimStatements // of events that are due, other than suspects
	suspects func() claimStatements
	rewinds  time.Time // when to rewind next
	running  atomic.Bool
	counters struct{ done, skipped, failed, parked, crashed, lost, postponed atomic.Int64 }
}

// NewProcessor returns a processor, which starts with Run. The error joins one [*sqsonce.OptionError] per argument that
// can't be used.
func NewProcessor(d *Deferred, optFns ...func(*ProcessorOptions)) (*Processor, error) {
	o := ProcessorOptions{}
	for _, fn := range optFns {
		fn(&o)
	}
	problems := host.Problems{Package: "sqlstore"}
	problems.Add(d == nil, "inbox", "is nil")
	concurrency := 10
	if d != nil && d.store.dialect.OneWriter() {
		concurrency = 1
	}
	o.Concurrency = cmp.Or(o.Concurrency, concurrency)
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.LeaseDuration = cmp.Or(o.LeaseDuration, 30*time.Second)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, 10)
	o.StopTimeout = cmp.Or(o.StopTimeout, 25*time.Second)
	o.Logger = host.QueuedLogger(o.Logger)
	if o.Backoff == nil {
		o.Backoff = defaultBackoff
	}
	problems.Add(o.Concurrency < 0, "ProcessorOptions.Concurrency", "is negative")
	problems.Add(o.Poll < 0, "ProcessorOptions.Poll", "is negative")
	problems.Add(o.LeaseDuration < time.Second, "ProcessorOptions.LeaseDuration", "is less than 1 s")
	if err := problems.Err(); err != nil {
		return nil, err
	}
	// A lease that is much longer than those of processors was written by a clock that was ahead, and counts as ended. A
	// handler that still runs has the row's lock, and one that has not begun finds that it has lost the event.
	over := fmt.Sprintf("i.lease_until NOT BETWEEN {past} AND {past} + %d", 3*max(o.LeaseDuration, d.wait).Milliseconds())
	return &Processor{
		inbox: d, o: o,
		// Where due_at is not 0 and there was a lease, a processor of a version that knew no suspects had the event.
		due:      newClaimStatements(d.store.place, "i.due_at BETWEEN 1 AND {past} AND "+over),
		suspects: newClaimStatements(d.store.place, "i.due_at = 0 AND "+over),
	}, nil
}

func defaultBackoff(attempt int) time.Duration {
	return host.Jitter(time.Second, 15*time.Minute, attempt)
}

// Run claims the events that are due, the longest due first, and runs h for each in a transaction that also marks the event
// as done. It blocks until ctx ends and all handlers have returned, and then returns nil. A database that can't be used also
// ends Run, with its error, except one that is read-only or refuses the login, which a failover and a change of the password
// cause for a while. Run logs other errors of the database, and looks at the table again after Poll. Only one call of Run at a time is allowed.
//
// Of a FIFO queue's group, Run claims only the oldest event that is neither done nor parked. The next event waits until
// that one is done or parked, also while it backs off.
//
// Run counts and commits an attempt before h's transaction begins, so it also parks an event whose handler keeps crashing
// the process. A crash ends the attempts of all events that the process has claimed. Run then claims these one at a time,
// each when the processor doesn't run another handler, and waits for its end before it claims more. Run parks an event for
// crashes only if the last crash ended an attempt that ran alone. Processors in one process share its crashes. If a handler
// may crash, give each consumer a process of its own.
//
// The attempt's outcome is h's return:
//
//   - nil: Run commits h's writes and the mark. As with an [Inbox], h may be called again within the attempt if the
//     database ended the transaction or a commit's reply was lost. [Inbox.Handler] describes the demands that this makes on
//     h. If the database refuses the commit, the attempt has failed like one whose h returned an error. But if
//     it refuses a write of the processor's own too, the attempt isn't counted, as with [sqsonce.Unavailable].
//   - a success without an effect, such as [sqsonce.Skip]: h's writes are rolled back, and the mark is committed with the
//     reason.
//   - [sqsonce.RetryAfter]: h's writes are rolled back, and the event runs again after the delay. The attempt is counted,
//     even if the reason is [sqsonce.Unavailable].
//   - [sqsonce.Reject]: h's writes are rolled back, and the event is parked.
//   - [sqsonce.Unavailable]: h's writes are rolled back, and the event runs again within half a minute. The attempt isn't
//     counted, nor is one whose transaction could not begin.
//   - [sqsonce.Postpone]: h's writes are rolled back, and the event runs again after the delay. The attempt isn't counted.
//   - any other error, a panic or runtime.Goexit: h's writes are rolled back. The event runs again after Backoff, or is
//     parked after MaxAttempts.
//
// The error's text is stored with the event. An attempt that was cancelled by a stop ([sqsonce.ErrShutdown]) isn't counted.
// If the database is down when an outcome is to be stored, Run repeats the write for as long as LeaseDuration.
//
// The end of ctx doesn't cancel h's context at once: see StopTimeout.
func (p *Processor) Run(ctx context.Context, h func(context.Context, *sqsonce.Message, *sql.Tx) error) error {
	if h == nil {
		return fieldError("handler", "is nil")
	}
	if !p.running.CompareAndSwap(false, true) {
		return errors.New("sqlstore: processor: Run is already running")
	}
	defer p.running.Store(false)
	var lines host.Lines
	defer lines.Flush(time.Second)
	ctx = lines.Context(ctx)
	handlerCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var handlers sync.WaitGroup
	err := p.dispatch(ctx, func(j job, ended func()) {
		handlers.Go(func() {
			defer ended()
			p.handle(handlerCtx, j, h)
		})
	})
	stopTimer := time.AfterFunc(max(0, p.o.StopTimeout), func() { cancel(sqsonce.ErrShutdown) })
	defer stopTimer.Stop()
	handlers.Wait()
	return err
}

// dispatch claims events and starts them, not more than can run at once, so that other processors can claim the rest.
func (p *Processor) dispatch(ctx context.Context, start func(j job, ended func())) error {
	var (
		running atomic.Int64
		turn    = turn{patience: p.o.LeaseDuration}
	)
	// A job that ends frees a slot, and may make the next event of its group due.
	jobEnded := make(chan struct{}, 1)
	for ctx.Err() == nil {
		slots := p.o.Concurrency - int(running.Load())
		jobs, err := p.next(ctx, &turn, slots)
		if err != nil {
			if isPermanent(err) {
				return err
			}
			p.o.Logger.ErrorContext(ctx, "sqlstore: processor: claim failed: the next poll claims again", "error", err)
		}
		for _, j := range jobs {
			running.Add(1)
			start(j, func() {
				running.Add(-1)
				select {
				case jobEnded <- struct{}{}:
				default:
				}
			})
		}
		// If every slot got a job, more events may be due: wait for a slot and not for the next poll.
		full := slots <= 0 || len(jobs) == slots
		p.wait(ctx, !full, jobEnded)
	}
	return nil
}

// turn says whose turn it is: the suspects', each of which runs alone, or that of all other events.
type turn struct {
	alone    bool          // a suspect runs
	drains   bool          // claims wait until the running handlers have ended and a suspect can run
	until    time.Time     // end of the drain
	patience time.Duration // length of the next drain
	look     time.Time     // when to look for suspects
}

// next claims the events that start now. It looks for suspects once per Poll. If there is one, nothing else is claimed until
// all suspects have run: they would wait for ever if they had to find the processor idle. A drain that takes too long is
// given up for as long as it has lasted, and the next one is longer: one handler that hangs does not stop the others.
func (p *Processor) next(ctx context.Context, t *turn, slots int) (jobs []job, err error) {
	if slots <= 0 {
		return nil, nil
	}
	if err := p.inbox.store.ensureChecked(ctx); err != nil && ctx.Err() == nil {
		return nil, err
	} else if err != nil {
		return nil, nil
	}
	idle, now := slots == p.o.Concurrency, time.Now()
	if !now.Before(p.rewinds) {
		if err := p.rewind(ctx); err != nil {
			return nil, err
		}
		p.rewinds = now.Add(time.Minute)
	}
	looks := !now.Before(t.look)
	switch {
	case idle && (t.alone || t.drains || looks):
		jobs, err = p.claimSuspect(ctx)
		*t = turn{alone: len(jobs) > 0, look: now.Add(p.o.Poll), patience: p.o.LeaseDuration}
		for _, j := range jobs {
			p.o.Logger.WarnContext(ctx, "sqlstore: processor: the last attempt ended without an outcome: the event runs alone", "key", j.key, "message_id", j.message.ID, "attempt", j.message.ReceiveCount)
		}
		if t.alone || err != nil {
			return jobs, err
		}
	case t.alone, t.drains && now.Before(t.until):
		return nil, nil
	case t.drains:
		p.o.Logger.WarnContext(ctx, "sqlstore: processor: an event that is to run alone waits for running handlers", "handlers", p.o.Concurrency-slots, "waited", t.patience)
		*t = turn{look: now.Add(t.patience), patience: 2 * t.patience}
	case looks:
		t.look = now.Add(p.o.Poll)
		if t.drains, err = p.suspectDue(ctx); t.drains || err != nil {
			t.until = now.Add(t.patience)
			return nil, err
		}
	}
	return p.claim(ctx, slots)
}

// rewind makes events due that wait only because the server's clock was ahead when they were received. An event that was
// not put off by an attempt is due when it is received, and waits maxUnavailable at most after an attempt that did not
// count. A postponed one keeps the owner of its claim.
func (p *Processor) rewind(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.inbox.wait)
	defer cancel()
	s := p.inbox.store
	return s.retry(ctx, "rewind", func(ctx context.Context) error {
		_, err := s.dialect.Write(ctx, s.db, p.inbox.stmts().rewind, p.inbox.consumer, (2 * maxUnavailable).Milliseconds())
		return err
	})
}

// wait waits for a job to end, for ctx, and if poll is set for the next poll.
func (p *Processor) wait(ctx context.Context, poll bool, jobEnded <-chan struct{}) {
	var tick <-chan time.Time
	if poll {
		t := time.NewTimer(p.o.Poll*9/10 + rand.N(p.o.Poll/5+1))
		defer t.Stop()
		tick = t.C
	}
	select {
	case <-jobEnded:
	case <-tick:
	case <-ctx.Done():
	}
}

// Stats returns the processor's counters.
func (p *Processor) Stats() ProcessorStats {
	c := &p.counters
	return ProcessorStats{
		Done: c.done.Load(), Skipped: c.skipped.Load(), Failed: c.failed.Load(), Parked: c.parked.Load(), Crashed: c.crashed.Load(),
		Lost: c.lost.Load(), Postponed: c.postponed.Load(),
	}
}
