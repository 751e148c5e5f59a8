package sqsworker

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

// beatBy has the heartbeat look at the leases at that time, or earlier.
func (l *loop) beatBy(at time.Time) {
	if l.beating != nil && l.beating.index >= 0 && !l.beating.at.After(at) {
		return
	}
	if soon := l.now().Add(l.beatWindow()); at.After(soon) {
		at = soon
	}
	l.schedule.cancel(l.beating)
	l.beating = l.schedule.add(at, l.beat)
}

// beatWindow is how much earlier than due an extension may go along with others, and the longest time between two looks
// at the leases: while a machine is suspended alarms stand still, and only a look shows that a lease has ended.
func (l *loop) beatWindow() time.Duration { return min(2*time.Second, l.opts.Visibility/10) }

// beat extends what is due and ends what is over. Every message is extended from its receipt until its delete is
// confirmed, also while it waits for a handler: prefetched messages that outlive their visibility timeout are the most
// reported duplicates of SQS consumers. Messages that are being given back are not.
func (l *loop) beat() {
	now := l.now()
	next := now.Add(l.beatWindow())
	var due, over []*delivery
	for _, d := range l.table {
		le := &d.lease
		switch {
		case d.state == releasing:
			continue // what it needed its lease for has been sent, or will find it over
		case !le.live(now):
			over = append(over, d)
			continue
		case le.extending || le.final:
		case !le.due.After(now), le.failures == 0 && !le.due.After(now.Add(l.beatWindow())):
			due = append(due, d)
			le.extending = true
		case le.due.Before(next):
			next = le.due
		}
		if end := now.Add(le.left(now)); end.Before(next) {
			next = end
		}
	}
	for _, d := range over {
		l.lose(d, "visibility timeout passed", nil)
	}
	// Messages of one receive stay together: full batches, and what AWS advises for high-throughput FIFO queues.
	slices.SortFunc(due, byReceipt)
	for batch := range slices.Chunk(due, maxBatch) {
		l.extend(batch)
	}
	if len(l.table) > 0 {
		l.beatBy(next)
	}
}

func (l *loop) extend(batch []*delivery) {
	start := l.now()
	changes := make([]change, 0, len(batch))
	for _, d := range batch {
		c := change{d: d, handle: d.lease.handle}
		c.visibility, c.last = d.lease.extension(start, l.opts.Visibility, l.opts.MaxExtension)
		// At the cap, or where an extension would bring the end nearer, there is nothing to ask for.
		if c.visibility <= d.lease.left(start) {
			d.lease.final, d.lease.extending = true, false
			continue
		}
		changes = append(changes, c)
	}
	if len(changes) == 0 {
		return
	}
	l.changeVisibility(changes, l.patience(), false)
}

func (l *loop) extensionsAnswered(e visibilityChanged) {
	l.slow = l.now().Sub(e.start) >= l.firstPatience()
	early := rand.Float64()
	for i, c := range e.changes {
		l.extended(c, e.results[i], e.start, early)
	}
}

// patience is how long an extension may wait for its answer. Three tries fit between half the visibility timeout and its
// end; while answers take longer than one try, as those of a slow SQS do, tries are twice as long.
func (l *loop) patience() time.Duration {
	d := l.firstPatience()
	if l.slow {
		d *= 2
	}
	return min(d, callTimeout)
}

func (l *loop) firstPatience() time.Duration {
	return min(max(l.opts.Visibility/6, 500*time.Millisecond), callTimeout)
}

func (l *loop) extended(c change, err error, start time.Time, early float64) {
	d, le := c.d, &c.d.lease
	if le.handle != c.handle || d.state == gone || le.lost {
		return // the answer is about an older handle
	}
	now := l.now()
	le.extending = false
	switch {
	case err == nil && !le.live(now):
		// SQS may have got the call after the visibility timeout, and answer success also then: it hides nothing from who
		// has the message by now. Only an answer inside the proven time proves more.
		l.lose(d, "visibility timeout passed before the extension's answer", nil)
		return
	case err == nil:
		le.extended(start, now, c.visibility, l.opts.Visibility, c.last, early)
	case isHandleDead(err) && d.sent:
		// A delete that came first leaves nothing to extend: its answer says whether that is so.
		le.refused, le.final = true, true
		return
	case isHandleDead(err):
		l.lose(d, "receipt handle refused", err)
		return
	default:
		// The proven end stays the truth: tried again while it allows.
		le.failures++
		if !le.warned { // once for a lease: a long handler in a long outage would fill the log
			le.warned = true
			l.log.Warn("sqsworker: extension failed", keyMessage, d.m.ID, keyError, err)
		}
		le.due = now.Add(min(host.Jitter(200*time.Millisecond, 5*time.Second, le.failures), le.left(now)/4+time.Millisecond))
	}
	if d.state == releasing {
		l.releases.put(d) // it waited for this answer
		return
	}
	l.beatBy(le.due)
}

// callTimeout is the longest a delete, a release or an extension may take before it is tried again.
const callTimeout = 5 * time.Second

// change is one entry of a visibility change: an extension, or a release.
type change struct {
	d          *delivery
	handle     string
	visibility time.Duration
	last       bool // of an extension: no more after it
}

// visibilityChanged is the answer to one call of ChangeMessageVisibilityBatch.
type visibilityChanged struct {
	changes  []change
	results  results
	err      error     // of the whole call
	start    time.Time // before the call
	releases bool      // else extensions
}

func (l *loop) visibilityChanged(e visibilityChanged) {
	if e.err != nil && isFatal(e.err) {
		l.fail(e.err)
	}
	if e.releases {
		l.releasesAnswered(e)
	} else {
		l.extensionsAnswered(e)
	}
}

// changeVisibility sends up to ten changes in one call.
func (l *loop) changeVisibility(changes []change, timeout time.Duration, releases bool) {
	start := l.now()
	l.counters.extensions.Add(1)
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &l.queueURL}
	for i, c := range changes {
		in.Entries = append(in.Entries, sqstypes.ChangeMessageVisibilityBatchRequestEntry{
			Id: host.EntryID(i), ReceiptHandle: aws.String(c.handle), VisibilityTimeout: host.Seconds(c.visibility, maxVisibility),
		})
	}
	l.call(func() event {
		ctx, cancel := context.WithTimeout(l.callCtx, timeout)
		defer cancel()
		out, err := l.client.ChangeMessageVisibilityBatch(ctx, in, once)
		results := newResults(len(changes), err)
		if err == nil {
			for i := range out.Successful {
				results.succeeded(out.Successful[i].Id)
			}
			results.failed(out.Failed)
		}
		return visibilityChanged{changes, results, err, start, releases}
	})
}

// release gives a message back: others may receive it after delay. It is not extended from here on, and tried again
// until its visibility timeout does what we could not.
func (l *loop) release(d *delivery, delay time.Duration) {
	if !d.lease.live(l.now()) {
		l.lose(d, "visibility timeout passed before the release", nil)
		return
	}
	l.set(d, releasing)
	d.delay, d.tries = delay, 0
	// An extension under way could reach SQS after the release and hide the message for a whole visibility timeout: the
	// release waits for its answer.
	if !d.lease.extending {
		l.releases.put(d)
	}
}

// giveBack releases a message whose handler is not to be started or not to be started again, because the worker stops.
func (l *loop) giveBack(d *delivery) {
	if d.state == held {
		l.counters.retried.Add(1)
		l.release(d, d.alarm.at.Sub(l.now()))
		return
	}
	l.counters.released.Add(1)
	l.release(d, 0)
}

func (l *loop) sendReleases(batch []*delivery) {
	now := l.now()
	changes := make([]change, 0, len(batch))
	for _, d := range batch {
		if !d.lease.live(now) {
			l.releases.calls--
			l.leave(d) // it is back already
			continue
		}
		// SQS refuses what would pass its 12 h after the receive.
		rest := maxVisibility - time.Second - elapsed(now, d.lease.received)
		changes = append(changes, change{d: d, handle: d.lease.handle, visibility: min(d.delay, rest.Truncate(time.Second))})
	}
	if len(changes) == 0 {
		return
	}
	l.changeVisibility(changes, callTimeout, true)
}

func (l *loop) releasesAnswered(e visibilityChanged) {
	l.releases.calls -= len(e.changes)
	for i, c := range e.changes {
		l.givenBack(c.d, e.results[i])
	}
}

func (l *loop) givenBack(d *delivery, err error) {
	superseded := l.table[d.m.ID] != d // received again already: its old handle must not hide it
	switch {
	case err == nil || superseded || isHandleDead(err):
		l.leave(d)
	default:
		if d.tries == 0 {
			l.log.Warn("sqsworker: release failed", keyMessage, d.m.ID, keyError, err)
		}
		l.again(&l.releases, d, releasing)
	}
}
