package fifo

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// Publisher sends events to one queue. Make one with [NewPublisher]. All methods are safe for concurrent use. The events that
// one goroutine publishes to a group keep their order. An idle Publisher doesn't use goroutines or timers, unless
// Options.Logger blocks.
type Publisher struct {
	client    *safeClient
	queueURL  string
	namespace string
	fifo      bool
	opts      Options
	lines     host.Lines      // what opts.Logger writes to
	window    time.Duration   // see safeWindow
	clocks    func() instant  // readClocks, except in tests
	closing   chan struct{}   // closed by Close: nobody waits for capacity any longer
	shared    *lane           // of Publish and Enqueue
	ctx       context.Context // of all requests
	cancelAll context.CancelCauseFunc

	hooks  hooks
	detach func() // what Hooks.Attach returned, once

	mu       sync.Mutex
	closed   bool
	stats    Stats    // its counters
	answered []*entry // that got their results under this lock, and failed or have hooks: see unlock
	serial   uint64
	capacity capacity
	limit    sizeLimit
	groups   groups
	recent   recentEvents
	failures
	lanes    map[*lane]struct{} // those that are open, and those that have entries
	requests int                // in flight
	flushes  int                // calls of Flush and Close that wait: no linger
	throttle throttle
	unsigned unsigned
	timeout  time.Duration // of the next attempt: see adaptTimeout
	warned   time.Time     // that an event waits long
	// For log lines: of attempts with an unknown outcome, and of requests that SQS throttled.
	unknown, throttling episode
	timer               *time.Timer // calls dispatch
}

// NewPublisher returns a Publisher for the queue. The namespace is the source of the events' IDs, or their type: 1 to 48 of A-Z
// a-z 0-9 . _ : / -. It is part of the key of every event. Keep the namespace while the queue, the dead-letter queue or the
// caller still has an event, or the event gets a second key.
//
// A queue whose name ends in .fifo is a FIFO queue. On a standard queue an event doesn't have a MessageDeduplicationId, and its
// group, if it has one, is the tenant of a fair queue. A standard queue doesn't keep the order. An attempt whose response is
// lost may put an event into the queue twice. A consumer that deduplicates events by their IDs runs its handler once.
//
// The client's region must be that of the queue's URL, unless the client has an endpoint of its own.
//
// The error joins one [*sqsonce.OptionError] per bad argument. NewPublisher neither calls AWS nor starts a goroutine.
func NewPublisher(c Client, queueURL, namespace string, optFns ...func(*Options)) (*Publisher, error) {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	o.setDefaults()
	if err := validate(c, queueURL, namespace, &o); err != nil {
		return nil, err
	}
	isFIFO := host.IsFIFO(queueURL)
	p := &Publisher{
		client: &safeClient{client: c}, queueURL: queueURL, namespace: namespace, fifo: isFIFO, opts: o,
		window:   safeWindow(o.attemptTimeout),
		timeout:  o.attemptTimeout,
		clocks:   readClocks,
		closing:  make(chan struct{}),
		capacity: capacity{messages: o.MaxMessages, bytes: o.MaxBytes},
		failures: newFailures(),
		groups:   newGroups(isFIFO),
		recent:   newRecentEvents(),
	}
	// Late: the publisher logs under its lock, where nothing of the user's is called.
	p.opts.Logger = slog.New(p.lines.LateHandler(o.Logger.Handler()))
	p.ctx, p.cancelAll = context.WithCancelCause(context.Background())
	p.shared = newLane(p.ctx, p.ctx, o.Linger)
	p.lanes = map[*lane]struct{}{p.shared: {}}
	p.hooks = newHooks(p.opts.Logger, o.Hooks)
	p.detach = sync.OnceFunc(host.Attach(p.ctx, o.Logger, "fifo", p.hooks.attach, p))
	return p, nil
}

// QueueURL returns the URL of the queue.
func (p *Publisher) QueueURL() string { return p.queueURL }

// Publish sends one event and waits for its result. Its error is a [*PublishError].
//
// ctx ends the wait and not the send. An event that is not in flight yet is not sent, and the error is [ErrNotSent]. The
// publisher goes on sending an event that may have reached SQS, and the error is [ErrUnknownOutcome].
func (p *Publisher) Publish(ctx context.Context, e Event) (Receipt, error) {
	return p.publish(ctx, &entry{event: e})
}

// publish sends one entry and waits for its result.
func (p *Publisher) publish(ctx context.Context, e *entry) (Receipt, error) {
	if _, err := p.enqueue(ctx, p.shared, e, nil, 1); err != nil {
		return Receipt{}, err
	}
	pending := e.pending
	select {
	case <-pending.done:
	case <-ctx.Done():
	}
	why := foreign(context.Cause(ctx))
	p.mu.Lock()
	if !pending.hasResult && p.withdraw(e, why) {
		p.dispatch()
	}
	r, err := p.readOrLeave(e, why)
	hasResult := pending.hasResult
	p.unlock()
	if hasResult {
		<-pending.done
	}
	return r, err
}

// Enqueue accepts one event and returns at once. At the limit of Options.MaxMessages or MaxBytes it waits until other events
// have their results. ctx ends only that wait, with [ErrBufferFull]. The error is a [*PublishError].
//
// The publisher attempts to send the event until it has a result. While SQS throttles, or can't be reached, only Close ends
// that.
func (p *Publisher) Enqueue(ctx context.Context, e Event) (*PublishResult, error) {
	en, err := p.enqueue(ctx, p.shared, &entry{event: e}, nil, 0)
	if err != nil {
		return nil, err
	}
	return en.pending, nil
}

// enqueue checks an event and accepts it, unless the event after which it must come has failed. waiters is the number of
// callers that wait for the result.
func (p *Publisher) enqueue(ctx context.Context, l *lane, e *entry, after *PublishResult, waiters int) (*entry, error) {
	e.hooked = p.accepting(ctx, e.event)
	if err := p.tryEnqueue(ctx, l, e, after, waiters); err != nil {
		p.notAccepted(e.hooked, err)
		return nil, err
	}
	return e, nil
}

// check fills an entry. It returns an error for what can never be sent.
func (p *Publisher) check(e *entry) error {
	if err := p.refusedError(e); err != nil {
		return err
	}
	err := p.fill(e)
	if err == nil {
		err = p.checkSize(e)
	}
	if err != nil {
		return p.badEvent(e, err)
	}
	return nil
}

// notAccepted gives an event that was not accepted its result.
func (p *Publisher) notAccepted(h *hookedEvent, err error) {
	p.mu.Lock()
	p.stats.count(err)
	p.mu.Unlock()
	if h != nil {
		p.answer(h, Receipt{}, err, time.Time{})
	}
}

func (p *Publisher) tryEnqueue(ctx context.Context, l *lane, e *entry, after *PublishResult, waiters int) error {
	if err := p.check(e); err != nil {
		return err
	}
	e.pending.waiters = waiters
	if e.hooked != nil {
		p.fit(e)
	}
	if err := p.reserveCapacity(ctx, l, e.size); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.publishError(e, withOutcome(p.outcome(e), err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.accept(e, l, after); err != nil {
		p.capacity.free(e.size)
		return p.publishError(e, err)
	}
	p.dispatch()
	return nil
}

// neverAccepted returns the error of an event that was not looked at.
func (p *Publisher) neverAccepted(ev *Event, why error) error {
	e := p.unchecked(ev)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.publishError(e, because(p.outcome(e), why))
}

// unchecked returns an entry that is known by its key at most.
func (p *Publisher) unchecked(ev *Event) *entry {
	e := &entry{event: *ev}
	if key, err := DedupID(p.namespace, ev.ID); err == nil {
		e.keyHash = hashKey(key)
	}
	return e
}

// accept puts an entry into its group. The caller holds the lock.
func (p *Publisher) accept(e *entry, l *lane, after *PublishResult) error {
	if p.closed {
		return withOutcome(p.outcome(e), ErrClosed)
	}
	if why := l.why(); why != nil { // cancelLane, which would end the entry, may have had the lock
		return because(p.outcome(e), why)
	}
	if after != nil && after.hasResult && after.err != nil {
		return haltedBehind(after.event, reasonOf(after.err), p.outcome(e))
	}
	if latch := p.latches[e.event.Group]; latch != nil {
		p.logHalted(e, latch)
		return haltedBehind(latch.event, latch.err, p.outcome(e))
	}
	now := time.Now()
	if !p.recent.begin(e, now) {
		return withOutcome(ErrNotSent, refusal{ErrDedupConflict})
	}
	p.serial++
	e.serial, e.pending.serial, e.accepted, e.due = p.serial, p.serial, now, now.Add(max(l.linger, 0))
	e.joinLane(l)
	p.groups.add(e, e.event.Group)
	return nil
}
