package fifo

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
)

// Publisher sends events to one queue. All methods are safe for concurrent use; what one goroutine publishes to a group
// keeps its order. An idle Publisher has no goroutine and no timer.
type Publisher struct {
	client    Client
	queueURL  string
	namespace string
	fifo      bool
	opts      Options
	window    time.Duration  // see safeWindow
	clocks    func() instant // readClocks, but in tests
	limit     sizeLimit
	closing   context.Context // ends when Close is called: nobody waits for room any longer
	stop      context.CancelCauseFunc
	stream    *lane           // of Publish and Enqueue
	ctx       context.Context // of all requests: ends when Close gives up
	giveUp    context.CancelCauseFunc

	mu       sync.Mutex
	closed   bool
	serial   uint64
	entries  map[*entry]struct{} // accepted and not yet answered
	room     room
	groups   groups
	guard    guard
	lanes    []*lane
	turn     int // lane that is served next
	requests int // under way
	hurry    int // calls of Flush and Close that wait: no linger
	pause    pause
	timer    *time.Timer // wakes dispatch; see there
}

// NewPublisher returns a Publisher for the queue. The namespace is the source of the events' IDs, or their type: 1 to 48
// of A-Z a-z 0-9 . _ : / -. It is part of every event's key and must never change while events are on their way.
//
// The suffix .fifo of the queue's name decides. On a standard queue events get no MessageDeduplicationId, their group is
// the tenant of a fair queue, and nothing is done for the order; an attempt whose answer was lost may enqueue an event
// twice, which a consumer that guards its events by their IDs absorbs.
//
// It returns one [*sqsonce.FieldError] per bad argument, joined, makes no call and starts nothing.
func NewPublisher(c Client, queueURL, namespace string, optFns ...func(*Options)) (*Publisher, error) {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	o.setDefaults()
	var errs []error
	if c == nil {
		errs = append(errs, badField("client", "nil"))
	}
	isFIFO, err := checkQueueURL(queueURL)
	if err := errors.Join(append(errs, err, checkNamespace(namespace), o.check())...); err != nil {
		return nil, err
	}

	p := &Publisher{
		client: c, queueURL: queueURL, namespace: namespace, fifo: isFIFO, opts: o,
		window:  safeWindow(o.AttemptTimeout),
		clocks:  readClocks,
		limit:   newSizeLimit(),
		room:    room{messages: o.MaxMessages, bytes: o.MaxBytes},
		entries: make(map[*entry]struct{}),
		groups:  newGroups(isFIFO),
		guard:   newGuard(),
	}
	p.closing, p.stop = context.WithCancelCause(context.Background())
	p.ctx, p.giveUp = context.WithCancelCause(context.Background())
	p.stream = &lane{ctx: p.ctx, linger: o.Linger}
	p.lanes = []*lane{p.stream}
	return p, nil
}

// Publish sends one event and waits for its answer. Its error is a [*PublishError].
//
// ctx ends the wait, not the send: an event that is not in a request yet is taken back, which is [ErrNotSent]; for one
// that may be on its way the attempts go on, and the error is [ErrUnknownOutcome].
func (p *Publisher) Publish(ctx context.Context, e Event) (Receipt, error) {
	en, err := p.enqueue(ctx, p.stream, e, nil)
	if err != nil {
		return Receipt{}, err
	}
	pending := en.pending
	select {
	case <-pending.done:
		return pending.receipt, pending.err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !pending.answered() && !p.takeBack(en, context.Cause(ctx)) {
		return Receipt{}, pending.fail(because(ErrUnknownOutcome, context.Cause(ctx)))
	}
	p.dispatch()
	return pending.receipt, pending.err
}

// Enqueue accepts one event and returns at once, or when the buffer has room for it. ctx ends that wait only:
// [ErrBufferFull]. The error is a [*PublishError].
func (p *Publisher) Enqueue(ctx context.Context, e Event) (*Pending, error) {
	en, err := p.enqueue(ctx, p.stream, e, nil)
	if err != nil {
		return nil, err
	}
	return en.pending, nil
}

// enqueue checks an event and accepts it, unless after has failed.
func (p *Publisher) enqueue(ctx context.Context, l *lane, ev Event, after *Pending) (*entry, error) {
	fail := func(err error) error { return &PublishError{EventID: ev.ID, Group: ev.Group, Err: err} }
	if ctx.Err() != nil {
		return nil, fail(because(ErrNotSent, context.Cause(ctx)))
	}
	e, err := p.newEntry(ev)
	if err != nil {
		return nil, fail(err)
	}
	if err := p.checkSize(ctx, e.size); err != nil {
		if _, ok := errors.AsType[*sqsonce.FieldError](err); ok {
			return nil, fail(err)
		}
		return nil, fail(because(ErrNotSent, err))
	}
	if err := p.acquire(ctx, e.size); err != nil {
		return nil, fail(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.accept(e, l, after); err != nil {
		p.room.give(e.size)
		return nil, fail(err)
	}
	p.dispatch()
	return e, nil
}

// accept puts an entry into its group. The caller holds the lock.
func (p *Publisher) accept(e *entry, l *lane, after *Pending) error {
	if p.closed {
		return ErrClosed
	}
	if after != nil && after.answered() && after.err != nil {
		return halted(after.event, cause(after.err))
	}
	now := time.Now()
	if !p.guard.claim(e, now) {
		return ErrDedupConflict
	}
	p.serial++
	e.serial, e.lane, e.due = p.serial, l, now.Add(max(l.linger, 0))
	p.entries[e] = struct{}{}
	p.groups.add(e, e.event.Group)
	return nil
}
