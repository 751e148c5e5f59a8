package fifo

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/sqsonce/sqsonce/internal/host"
)

var (
	errWindowOver = errors.New("fifo: no further attempt: SQS deduplicates for 5 minutes only")
	errNoResult   = errors.New("fifo: SQS returned neither success nor failure for the entry")
	errTwoResults = errors.New("fifo: SQS returned more than one result for the entry")
	errChecksum   = errors.New("fifo: SQS returned the MD5 of another body than the one sent")
)

// safeWindow is how long after the start of an event's first attempt another attempt may start.
//
// SQS deduplicates for five minutes after it accepts a message, which is not before that start. So SQS recognises an attempt
// that arrives within five minutes of it; AWS does not say whether a recognised copy prolongs the interval. An attempt takes
// up to its timeout, and a request that is still on its way after the timeout has another 10 s.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
func safeWindow(attemptTimeout time.Duration) time.Duration {
	return min(285*time.Second, 290*time.Second-attemptTimeout)
}

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

// send makes one attempt for the entries of a batch, which are in flight.
func (p *Publisher) send(r *request) {
	batch, expired := p.beginAttempt(r.entries)
	var results []attemptResult
	if len(batch) > 0 {
		results = p.attempt(r.ctx, batch)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests--
	r.cancel(nil)
	defer close(r.done)
	for _, e := range expired {
		p.fail(e, p.finalError(e, errWindowOver))
	}
	throttled := false
	for i, e := range batch {
		throttled = throttled || results[i].proof == provesThrottled
		p.apply(e, results[i])
	}
	if throttled {
		p.throttle.extend(time.Now())
	}
	p.dispatch()
}

// beginAttempt starts the window of each entry at its first attempt, and returns the entries whose window is over. It runs
// right before the request: any time may have passed since dispatch chose the entries, if the process was frozen.
func (p *Publisher) beginAttempt(batch []*entry) (inWindow, expired []*entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clocks()
	for _, e := range batch {
		if !e.opened {
			e.first, e.opened = now, true
		} else if now.since(e.first) > p.window {
			expired = append(expired, e)
			continue
		}
		e.attempts++
		inWindow = append(inWindow, e)
	}
	return inWindow, expired
}

// attempt sends one request, once, and returns what the response proves about each entry.
func (p *Publisher) attempt(ctx context.Context, batch []*entry) []attemptResult {
	ctx, cancel := context.WithTimeout(ctx, p.opts.AttemptTimeout)
	defer cancel()
	in := &sqs.SendMessageBatchInput{QueueUrl: &p.queueURL, Entries: make([]sqstypes.SendMessageBatchRequestEntry, len(batch))}
	for i, e := range batch {
		in.Entries[i] = p.message(e, i)
	}
	var w sendWatch
	out, err := p.client.SendMessageBatch(ctx, in, singleAttempt, w.install)
	if err == nil {
		return readResults(out, batch)
	}
	results := make([]attemptResult, len(batch))
	for i := range results {
		results[i] = classify(err, w.neverSent())
	}
	return results
}

// singleAttempt turns off the SDK's retries, which do not know the window, and its check of checksums, which drops the
// results of all ten entries when one does not match.
func singleAttempt(o *sqs.Options) {
	o.Retryer = aws.NopRetryer{}
	o.DisableMessageChecksumValidation = true
}

// sendWatch tells a request that the SDK gave to the HTTP client from one that failed before, for example because there
// are no credentials.
type sendWatch struct{ installed, sent atomic.Bool }

func (w *sendWatch) install(o *sqs.Options) {
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		w.installed.Store(true)
		// The last middleware of the deserialize step: next is the HTTP client.
		return s.Deserialize.Add(middleware.DeserializeMiddlewareFunc("fifo.sent", func(
			ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
		) (middleware.DeserializeOutput, middleware.Metadata, error) {
			w.sent.Store(true)
			return next.HandleDeserialize(ctx, in)
		}), middleware.After)
	})
}

// neverSent is false if the watch was not installed: nothing is known about a client that is not the SDK's.
func (w *sendWatch) neverSent() bool { return w.installed.Load() && !w.sent.Load() }

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

// apply does what the result of an attempt asks for: the entry succeeds, fails, or is tried again. The caller holds the
// lock.
func (p *Publisher) apply(e *entry, r attemptResult) {
	e.lastErr = r.err
	if r.proof == provesRefused && e.unknown {
		// An earlier attempt may have put the event into the queue, or may still do so. If the entry ended here, the next event
		// of the group could overtake it. A further attempt may still succeed.
		r.proof = provesNotSent
	}
	switch r.proof {
	case provesSent:
		p.throttle.n = 0
		if p.fifo && p.recent.isDropped(e, r.sequence) {
			p.fail(e, withOutcome(ErrNotSent, ErrDedupConflict))
			return
		}
		p.groups.remove(e)
		p.finish(e, p.receipt(e, r), nil)
		return
	case provesRefused:
		p.fail(e, p.finalError(e, nil))
		return
	case provesNothing:
		e.unknown = true
	}

	if e.lane.hasEnded() && p.cancel(e) {
		return
	}
	remaining := p.window - lastAttemptMargin - p.clocks().since(e.first)
	if remaining <= 0 {
		p.fail(e, p.finalError(e, errWindowOver))
		return
	}
	p.opts.Logger.Debug("fifo: attempt failed, the event is sent again", "event", e.pending.event, "group", e.pending.group,
		"attempt", e.attempts, "unknown", r.proof == provesNothing, "error", r.err)
	var delay time.Duration // none for a throttled entry: the throttle delays all requests
	if r.proof != provesThrottled {
		delay = min(retryDelay(e.attempts), remaining)
	}
	p.groups.retry(e, delay, &p.mu, p.dispatch)
}

// fail ends an entry with an error, and all entries behind it in its group: they would be delivered before it if it was
// published again. The caller holds the lock.
func (p *Publisher) fail(e *entry, err error) {
	followers := p.groups.halt(e)
	p.finish(e, Receipt{}, err)
	var halted []*entry
	for _, f := range followers {
		if f.lane.hasEnded() {
			p.finish(f, Receipt{}, p.finalError(f, f.lane.why())) // its own call has ended
			continue
		}
		p.finish(f, Receipt{}, haltedBehind(e.event.ID, err, p.outcome(f)))
		halted = append(halted, f)
	}
	if !e.lane.hasEnded() || e.lane == p.shared { // else its caller decided so
		p.failed(e, len(halted))
	}
	for _, f := range halted {
		p.failed(f, 0)
	}
}

// withdraw removes an entry whose caller does not wait any longer, unless it is in flight or an attempt may have put it
// into the queue. The entries behind it move up: its own caller decided to leave it out. The caller holds the lock.
func (p *Publisher) withdraw(e *entry, why error) bool {
	if e.inFlight() || e.unknown {
		return false
	}
	p.groups.remove(e)
	p.finish(e, Receipt{}, p.finalError(e, why))
	return true
}

// finish sets the result of an entry that its group no longer has. The caller holds the lock.
func (p *Publisher) finish(e *entry, r Receipt, err error) {
	e.pending.receipt = r
	if err != nil {
		e.pending.err = p.publishError(e, err)
	}
	e.leaveLane()
	p.forgetLane(e.lane)
	p.recent.end(e, err == nil || e.unknown, r.Sequence, time.Now())
	p.capacity.free(e.size)
	close(e.pending.done)
}
