package fifo

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
)

var (
	errWindowOver = errors.New("fifo: no further attempt: SQS deduplicates for 5 minutes only")
	errCopies     = errors.New("fifo: no further attempt: each may put another copy into a standard queue")
)

// attempt is one request and its result.
type attempt struct {
	batch   []*entry        // what was sent
	expired []*entry        // what was not, since its window is over
	results []attemptResult // of the batch
	again   [][]*entry      // parts of the batch to send at once, each in a request of its own

	timeout, took      time.Duration
	answered, timedOut bool
}

// send makes one attempt for the entries of a request, and more where they must be divided.
func (p *Publisher) send(r *request) {
	for parts := [][]*entry{r.entries}; len(parts) > 0; {
		a := p.beginAttempt(r, parts[0])
		if len(a.batch) > 0 {
			p.try(r.ctx, a)
		}
		parts = p.settle(r, a, parts[1:])
	}
}

// settle does what the results ask for. It returns the parts that are left to send.
func (p *Publisher) settle(r *request, a *attempt, parts [][]*entry) [][]*entry {
	p.mu.Lock()
	defer p.unlock()
	for _, e := range a.expired {
		p.fail(e, p.finalError(e, errWindowOver))
	}
	var throttled error
	for i, e := range a.batch {
		switch r := a.results[i]; r.proof {
		case provesThrottled:
			throttled = r.err
		case provesNothing:
			p.logUnknown(e, r)
		}
		e.note(a.results[i])
		if len(a.again) == 0 {
			p.apply(e, a.results[i])
		}
	}
	if throttled != nil {
		now := time.Now()
		p.stats.Throttled++
		p.throttle.extend(now)
		p.logThrottled(now, throttled)
	}
	p.adaptTimeout(a)
	parts = append(a.again, parts...)
	if len(parts) == 0 {
		p.requests--
		r.cancel(nil)
		close(r.done)
	}
	p.dispatch()
	return parts
}

// beginAttempt returns an attempt for the entries whose window is not over. It runs right before the request: any time may
// have passed since dispatch chose the entries, if the process was frozen.
func (p *Publisher) beginAttempt(r *request, batch []*entry) *attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !r.isWanted() { // any longer: cancelLane is about to have the lock
		r.cancel(batch[0].lane.why())
	}
	now := p.clocks()
	a := &attempt{timeout: p.timeout}
	for _, e := range batch {
		if e.opened {
			used := now.since(e.first)
			if used > p.window {
				a.expired = append(a.expired, e)
				continue
			}
			a.timeout = min(a.timeout, latestEnd-used)
		}
		if e.attempts == 0 {
			e.started = time.Now()
		} else {
			p.stats.Repeated++
		}
		e.attempts++
		e.began = now
		a.batch = append(a.batch, e)
	}
	if len(a.batch) > 0 {
		p.stats.Requests++
	}
	return a
}

// try sends one request, once, and notes what the response proves about each entry.
func (p *Publisher) try(parent context.Context, a *attempt) {
	ctx, cancel := context.WithTimeout(parent, a.timeout)
	defer cancel()
	in := &sqs.SendMessageBatchInput{QueueUrl: &p.queueURL, Entries: make([]sqstypes.SendMessageBatchRequestEntry, len(a.batch))}
	for i, e := range a.batch {
		in.Entries[i] = p.message(e, i)
	}
	// Inside the timeout, which ends before the window.
	sendCtx, answered := p.sending(ctx, a.batch)
	start := time.Now()
	out, w, err := p.client.SendMessageBatch(sendCtx, in)
	a.took = time.Since(start)
	defer func() { answered(a.sendResult(err)) }()
	if err == nil {
		a.answered = true
		a.results = readResults(out, a.batch)
		return
	}
	a.timedOut = ctx.Err() != nil && parent.Err() == nil
	if a.timedOut { // the idle connections may have died together with this one: no further attempt waits on one of them
		p.client.conns.Distrust()
	}
	r := classify(err, w)
	if r.proof == provesUnsigned && parent.Err() != nil {
		r.proof = provesNotSent // the caller ended it
	}
	r.ofEvent = r.proof == provesRefused && len(a.batch) == 1 && isOfEvent(err)
	a.results = slices.Repeat([]attemptResult{r}, len(a.batch))
	a.again = divide(a.batch, r)
}

// divide returns the parts of a batch that may succeed without the others, or nil. If SQS refuses a whole request, one of its
// entries or their sum may be the reason: it is sent again in halves, and at last singly, so that only the culprit is refused.
// Ten entries take at most nine requests with one culprit, and nineteen with ten. If the client broke, it may break over one
// entry again and again: each is sent singly.
func divide(batch []*entry, r attemptResult) [][]*entry {
	_, panicked := errors.AsType[*sqsonce.PanicError](r.err)
	switch {
	case len(batch) == 1:
		return nil
	case panicked || errors.Is(r.err, errNoAnswer):
		return slices.Collect(slices.Chunk(batch, 1))
	case r.proof == provesRefused && mayBeOneEntry(r.err):
		return slices.Collect(slices.Chunk(batch, (len(batch)+1)/2))
	}
	return nil
}

// note keeps what an attempt says about an entry. The window starts with the first attempt that may have put the event into the
// queue: those before it certainly did not.
func (e *entry) note(r attemptResult) {
	e.lastErr = foreign(r.err)
	if r.proof != provesNothing {
		return
	}
	e.copies++
	e.unknown = true
	e.openWindow()
}

func (e *entry) openWindow() {
	if !e.opened {
		e.opened, e.first = true, e.began
	}
}

// proofOf is what the result of an attempt proves, with what earlier attempts have left open. The caller holds the lock.
func (p *Publisher) proofOf(e *entry, r attemptResult) proof {
	proved := r.proof
	if proved == provesUnsigned {
		proved = p.unsigned.refused(time.Now())
	}
	if proved == provesRefused && e.unknown {
		// An earlier attempt may have put the event into the queue, or may still do so. If the entry ended here, the next event
		// of the group could overtake it. A further attempt may still succeed.
		return provesNotSent
	}
	return proved
}

// apply does what the result of an attempt asks for: the entry succeeds, fails, or is tried again. The caller holds the
// lock.
func (p *Publisher) apply(e *entry, r attemptResult) {
	switch r.proof = p.proofOf(e, r); r.proof {
	case provesSent:
		p.sent(e, r)
	case provesRefused:
		err := p.finalError(e, nil)
		if r.ofEvent && errors.Is(err, ErrNotSent) { // else an earlier call may have sent it
			err = refusal{err}
		}
		p.fail(e, err)
	case provesNothing, provesNotSent, provesThrottled, provesUnsigned:
		p.tryAgain(e, r)
	}
}

// sent ends an entry that SQS has accepted, or dropped as a copy.
func (p *Publisher) sent(e *entry, r attemptResult) {
	p.throttle.n = 0
	p.unsigned = unsigned{}
	if p.fifo && p.recent.isDropped(e, r.sequence) {
		var err error = refusal{ErrDedupConflict}
		if e.unknown { // an earlier attempt may reach SQS after it has forgotten the other event
			err = ErrDedupConflict
		}
		p.fail(e, withOutcome(ErrNotSent, err))
		return
	}
	e.openWindow()
	p.groups.remove(e)
	p.gather(e.group)
	p.finish(e, p.receipt(e, r), nil)
}

// tryAgain sends an entry again after a delay, while that can still do anything.
func (p *Publisher) tryAgain(e *entry, r attemptResult) {
	switch {
	case e.lane.hasEnded() && p.cancel(e):
		return
	case !p.fifo && e.copies > mostRepeats:
		p.fail(e, p.finalError(e, errCopies))
		return
	}
	var delay time.Duration // none for a throttled entry: the throttle delays all requests
	if r.proof != provesThrottled {
		delay = retryDelay(e.attempts)
	}
	if e.opened {
		remaining := p.window - lastAttemptMargin - p.clocks().since(e.first)
		if remaining <= 0 {
			p.fail(e, p.finalError(e, errWindowOver))
			return
		}
		delay = min(delay, remaining)
	}
	p.logRetry(e, r)
	p.groups.retry(e, delay, p)
}
