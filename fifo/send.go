package fifo

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

var (
	errWindowOver = errors.New("fifo: no further attempt: SQS deduplicates for 5 minutes only")
	errCopies     = errors.New("fifo: no further attempt: each may put another copy into a standard queue")
	errNoResult   = errors.New("fifo: SQS returned neither success nor failure for the entry")
	errTwoResults = errors.New("fifo: SQS returned more than one result for the entry")
	errChecksum   = errors.New("fifo: SQS returned the MD5 of another body than the one sent")
)

// safeWindow is how long after the start of an event's first attempt with an unknown outcome another attempt may start.
//
// SQS deduplicates for five minutes after it accepts a message, which is not before that start: the attempts before it did not
// reach the queue. So SQS recognises an attempt that arrives within five minutes of it; AWS does not say whether a recognised
// copy prolongs the interval. An attempt ends at latestEnd at the latest, and a request that is still on its way then has
// another 10 s.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
func safeWindow(attemptTimeout time.Duration) time.Duration {
	return min(285*time.Second, latestEnd-attemptTimeout)
}

const (
	// latestEnd is when the last attempt ends, from the start of the window. An attempt whose timeout has grown is cut to it.
	latestEnd = 290 * time.Second
	// maxAttemptTimeout is the most for Options.AttemptTimeout, and for what it grows to.
	maxAttemptTimeout = time.Minute
	// mostRepeats is how often an attempt with an unknown outcome is repeated on a standard queue, which recognises no copy.
	mostRepeats = 2
	// warnAfter is how long an event is tried before a line says so, and the time between two such lines.
	warnAfter = time.Minute
)

// lastAttemptMargin is how long before the end of the window the last attempt is planned, because timers fire late.
const lastAttemptMargin = time.Second

// instant is a reading of both clocks. The monotonic clock stops in a frozen Lambda environment and in a suspended
// computer; a correction moves the wall clock.
type instant struct {
	mono time.Duration
	wall time.Time
}

var processStart = time.Now()

func readClocks() instant {
	now := time.Now()
	return instant{mono: now.Sub(processStart), wall: now.Round(0)}
}

// since returns the time since start, by the clock that says more: SQS's own clock does not stop.
func (i instant) since(start instant) time.Duration {
	return max(i.mono-start.mono, i.wall.Sub(start.wall))
}

// The delay before an attempt: a random part of 100 ms, doubled with each failure up to 5 s.
const (
	firstDelay   = 100 * time.Millisecond
	longestDelay = 5 * time.Second
)

// retryDelay returns the delay after the n-th failure in a row, counted from 1.
func retryDelay(n int) time.Duration { return host.Jitter(firstDelay, longestDelay, n) }

// throttle delays all requests after SQS throttled the queue and not one entry.
type throttle struct {
	until time.Time
	n     int // throttled requests in a row
}

func (t *throttle) extend(now time.Time) {
	t.n++
	if until := now.Add(retryDelay(t.n)); until.After(t.until) {
		t.until = until
	}
}

// unsigned counts attempts that failed because of credentials or a signature: there were none, or they were refused. One such
// failure passes, but a configuration that is wrong must not stay hidden.
type unsigned struct{ first, last time.Time }

const (
	// unsignedPatience is how long such attempts are repeated.
	unsignedPatience = 5 * time.Second
	// unsignedMemory is how long a failure counts as one of a row.
	unsignedMemory = time.Minute
)

// refused returns what one more failure proves.
func (u *unsigned) refused(now time.Time) proof {
	if now.Sub(u.last) > unsignedMemory {
		u.first = now
	}
	u.last = now
	if now.Sub(u.first) < unsignedPatience {
		return provesNotSent
	}
	return provesRefused
}

// attempt is one request and what came of it.
type attempt struct {
	batch   []*entry        // what was sent
	expired []*entry        // what was not, since its window is over
	results []attemptResult // of the batch
	again   [][]*entry      // parts of the batch to send at once, each in a request of its own

	timeout, took      time.Duration
	answered, timedOut bool
}

// send makes one attempt for the entries of a batch, which are in flight, and more where it must be divided.
func (p *Publisher) send(l *lane, batch []*entry) {
	for parts := [][]*entry{batch}; len(parts) > 0; {
		a := p.beginAttempt(parts[0])
		if len(a.batch) > 0 {
			p.request(l.ctx, a)
		}
		parts = p.settle(a, parts[1:])
	}
}

// settle does what the results ask for. It returns the parts that are left to send.
func (p *Publisher) settle(a *attempt, parts [][]*entry) [][]*entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range a.expired {
		p.fail(e, e.finalError(errWindowOver))
	}
	throttled := false
	for i, e := range a.batch {
		throttled = throttled || a.results[i].proof == provesThrottled
		e.note(a.results[i])
		if len(a.again) == 0 {
			p.apply(e, a.results[i])
		}
	}
	if throttled {
		p.throttle.extend(time.Now())
	}
	p.adaptTimeout(a)
	parts = append(a.again, parts...)
	if len(parts) == 0 {
		p.requests--
	}
	p.dispatch()
	return parts
}

// adaptTimeout gives the next attempt twice the time after one that took too long. What SQS answers after the timeout is an
// unknown outcome, and a copy on a standard queue; a queue that is slow now would answer every attempt so. A response within
// Options.AttemptTimeout sets it back. The caller holds the lock.
func (p *Publisher) adaptTimeout(a *attempt) {
	switch {
	case a.timedOut:
		p.timeout = max(p.timeout, min(2*a.timeout, maxAttemptTimeout))
	case a.answered && a.took <= p.opts.AttemptTimeout:
		p.timeout = p.opts.AttemptTimeout
	}
}

// beginAttempt returns an attempt for the entries whose window is not over. It runs right before the request: any time may
// have passed since dispatch chose the entries, if the process was frozen.
func (p *Publisher) beginAttempt(batch []*entry) *attempt {
	now := p.clocks()
	p.mu.Lock()
	defer p.mu.Unlock()
	a := &attempt{timeout: p.timeout}
	for _, e := range batch {
		if e.unknown {
			used := now.since(e.first)
			if used > p.window {
				a.expired = append(a.expired, e)
				continue
			}
			a.timeout = min(a.timeout, latestEnd-used)
		}
		if e.attempts == 0 {
			e.started = time.Now()
		}
		e.attempts++
		e.began = now
		a.batch = append(a.batch, e)
	}
	return a
}

// request sends one request, once, and notes what the response proves about each entry.
func (p *Publisher) request(parent context.Context, a *attempt) {
	ctx, cancel := context.WithTimeout(parent, a.timeout)
	defer cancel()
	in := &sqs.SendMessageBatchInput{QueueUrl: &p.queueURL, Entries: make([]sqstypes.SendMessageBatchRequestEntry, len(a.batch))}
	for i, e := range a.batch {
		in.Entries[i] = p.message(e, i)
	}
	start := time.Now()
	out, w, err := p.client.SendMessageBatch(ctx, in)
	a.took = time.Since(start)
	if err == nil {
		a.answered = true
		a.results = readResults(out, a.batch)
		return
	}
	a.timedOut = ctx.Err() != nil && parent.Err() == nil
	r := classify(err, w)
	if r.proof == provesUnsigned && parent.Err() != nil {
		r.proof = provesNotSent // the caller ended it
	}
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

// readResults returns the result of each entry. An entry that the response does not name, names twice or has another
// checksum for may be in the queue or not.
func readResults(out *sqs.SendMessageBatchOutput, batch []*entry) []attemptResult {
	results := make([]attemptResult, len(batch))
	for i := range results {
		results[i] = attemptResult{proof: provesNothing, err: errNoResult}
	}
	named := make([]bool, len(batch))
	set := func(id *string, result func(*entry) attemptResult) {
		i, ok := host.EntryIndex(id, len(batch))
		switch {
		case !ok: // an ID that was not sent: the entry it stands for stays without a result
		case named[i]:
			results[i] = attemptResult{proof: provesNothing, err: errTwoResults}
		default:
			named[i] = true
			results[i] = result(batch[i])
		}
	}
	for _, s := range out.Successful {
		set(s.Id, func(e *entry) attemptResult {
			sum := md5.Sum([]byte(e.event.Body))
			if aws.ToString(s.MD5OfMessageBody) != hex.EncodeToString(sum[:]) {
				return attemptResult{proof: provesNothing, err: errChecksum}
			}
			return attemptResult{proof: provesSent, messageID: aws.ToString(s.MessageId), sequence: aws.ToString(s.SequenceNumber)}
		})
	}
	for _, f := range out.Failed {
		set(f.Id, func(*entry) attemptResult { return classifyEntry(f) })
	}
	return results
}

// note keeps what an attempt says about an entry. The window starts with the first attempt that may have put the event into the
// queue: those before it certainly did not.
func (e *entry) note(r attemptResult) {
	e.lastErr = r.err
	if r.proof != provesNothing {
		return
	}
	e.copies++
	if !e.unknown {
		e.unknown, e.first = true, e.began
	}
}

// apply does what the result of an attempt asks for: the entry succeeds, fails, or is tried again. The caller holds the
// lock.
func (p *Publisher) apply(e *entry, r attemptResult) {
	if r.proof == provesUnsigned {
		r.proof = p.unsigned.refused(time.Now())
	}
	if r.proof == provesRefused && e.unknown {
		// An earlier attempt may have put the event into the queue, or may still do so. If the entry ended here, the next event
		// of the group could overtake it. A further attempt may still succeed.
		r.proof = provesNotSent
	}
	switch {
	case r.proof == provesSent:
		p.throttle.n = 0
		p.unsigned = unsigned{}
		p.groups.remove(e)
		p.finish(e, p.receipt(e, r), nil)
		return
	case r.proof == provesRefused:
		p.fail(e, e.finalError(nil))
		return
	case e.lane.ctx.Err() != nil:
		p.cancel(e)
		return
	case !p.fifo && e.copies > mostRepeats:
		p.fail(e, e.finalError(errCopies))
		return
	}
	var delay time.Duration // none for a throttled entry: the throttle delays all requests
	if r.proof != provesThrottled {
		delay = retryDelay(e.attempts)
	}
	if e.unknown {
		remaining := p.window - lastAttemptMargin - p.clocks().since(e.first)
		if remaining <= 0 {
			p.fail(e, e.finalError(errWindowOver))
			return
		}
		delay = min(delay, remaining)
	}
	p.logRetry(e, r)
	p.groups.retry(e, delay, &p.mu, p.dispatch)
}

// fail ends an entry with an error, and all entries behind it in its group: they would be delivered before it if it was
// published again. The caller holds the lock.
func (p *Publisher) fail(e *entry, err error) {
	followers := p.groups.halt(e)
	p.finish(e, Receipt{}, err)
	for _, f := range followers {
		if f.lane.ctx.Err() != nil {
			p.finish(f, Receipt{}, f.finalError(context.Cause(f.lane.ctx))) // its own call has ended
			continue
		}
		p.finish(f, Receipt{}, haltedBehind(e.pending.event, err))
	}
}

// haltedBehind has the text of the earlier event's error only: a later event does not match its ErrUnknownOutcome.
func haltedBehind(earlier string, err error) error {
	return fmt.Errorf("%w: event %.128q: %v", ErrGroupHalted, earlier, err)
}

// withdraw removes an entry whose caller does not wait any longer, unless it is in flight or an attempt may have put it
// into the queue. The entries behind it move up: its own caller decided to leave it out. The caller holds the lock.
func (p *Publisher) withdraw(e *entry, why error) bool {
	if e.inFlight || e.unknown {
		return false
	}
	p.groups.remove(e)
	p.finish(e, Receipt{}, e.finalError(why))
	return true
}

// finish sets the result of an entry that its group no longer has. The caller holds the lock.
func (p *Publisher) finish(e *entry, r Receipt, err error) {
	e.pending.receipt = r
	if err != nil {
		e.pending.err = e.pending.publishError(err)
	}
	delete(p.entries, e)
	p.recent.end(e, err == nil || e.unknown, time.Now())
	p.capacity.free(e.size)
	close(e.pending.done)
}
