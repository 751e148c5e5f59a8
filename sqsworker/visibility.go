package sqsworker

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

// A visibility change is an extension, which the heartbeat sends, or a release, which gives a message back. Both go by
// ChangeMessageVisibilityBatch, at most ten in a call.

// change is one entry of a call.
type change struct {
	d          *delivery
	handle     string // the delivery may have another one when the answer comes
	visibility time.Duration
	last       bool // of an extension: no more after it
}

// visibilityChanged is the answer to one call.
type visibilityChanged struct {
	changes  []change
	results  results
	err      error     // of the whole call
	start    time.Time // before the call
	releases bool      // else extensions
}

func (l *loop) changeVisibility(changes []change, timeout time.Duration, releases bool) {
	start := l.now()
	l.counters.extensions.Add(1)
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &l.queueURL}
	for i, c := range changes {
		in.Entries = append(in.Entries, sqstypes.ChangeMessageVisibilityBatchRequestEntry{
			Id: host.EntryID(i), ReceiptHandle: aws.String(c.handle), VisibilityTimeout: host.Seconds(c.visibility, maxVisibility),
		})
	}
	purpose, calls := "release", []*host.Call(nil)
	if !releases {
		purpose, calls = "extend", l.hooks.callsOf(changes)
	}
	l.call(func() event {
		ctx, cancel := context.WithTimeout(l.callCtx, timeout)
		defer cancel()
		ctx, done := l.hooks.begin(ctx, Call{
			QueueURL: l.queueURL, Purpose: purpose, Entries: len(changes),
			Messages: messagesOf(&l.hooks, changes, func(c change) *delivery { return c.d }),
		})
		out, err := l.client.ChangeMessageVisibilityBatch(ctx, in, singleAttempt)
		results := newResults(len(changes), err)
		if err == nil {
			for _, e := range out.Successful {
				results.succeeded(e.Id)
			}
			results.failed(out.Failed, func(i int) string { return changes[i].handle })
		}
		done(results.callResult(err))
		results.extended(calls, changes, start)
		return visibilityChanged{changes, results, err, start, releases}
	})
}

func (l *loop) visibilityChanged(e visibilityChanged) {
	l.changeFailed(e.err, e.start, &l.signatures.changes)
	if e.releases {
		l.releasesAnswered(e)
	} else {
		l.extensionsAnswered(e)
	}
}

// heartbeatBy has the heartbeat look at the leases at that time, or earlier.
func (l *loop) heartbeatBy(at time.Time) {
	if l.heartbeat.pending() && !l.heartbeat.at.After(at) {
		return
	}
	if soon := l.now().Add(l.heartbeatWindow()); at.After(soon) {
		at = soon
	}
	l.schedule.cancel(l.heartbeat)
	l.heartbeat = l.schedule.add(at, l.extendDue)
}

// heartbeatWindow is how much earlier than due an extension may go along with others. It is also the longest time between
// two looks at the leases: while a machine is suspended timers stand still, and only a look shows that a lease has ended.
func (l *loop) heartbeatWindow() time.Duration {
	return min(2*time.Second, l.opts.VisibilityTimeout/10)
}

// extendDue is the heartbeat. It extends the leases that are due and ends those that are over. It extends every message
// from its receipt until its delete is confirmed, also while the message waits for a handler: that messages which wait in
// a worker outlive their visibility timeout is the most reported cause of duplicates. Messages that are given back are not
// extended.
func (l *loop) extendDue() {
	now := l.now()
	next := now.Add(l.heartbeatWindow())
	var due, over []*delivery
	for _, d := range l.deliveries {
		le := &d.lease
		switch {
		case d.state == releasing:
			continue // sendReleases checks its lease
		case !le.live(now):
			over = append(over, d)
			continue
		case le.final || l.deletes.missing:
		case !le.due.After(now), le.failures+le.calls == 0 && !le.due.After(now.Add(l.heartbeatWindow())):
			due = append(due, d)
		case le.due.Before(next):
			next = le.due
		}
		if end := now.Add(le.remaining(now)); end.Before(next) {
			next = end
		}
	}
	for _, d := range over {
		l.loseLease(d, "visibility timeout passed", nil)
	}
	l.extendAll(due, now)
	l.expireFollowing(due)
	if until := l.extensions.until; until.After(now) && until.Before(next) {
		next = until
	}
	if len(l.deliveries) > 0 {
		l.heartbeatBy(next)
	}
}

// extendAll extends messages, if extensions work at present. If not, one call tries whether they do again.
func (l *loop) extendAll(due []*delivery, now time.Time) {
	// Messages of one receive stay together: batches are full, and AWS advises it for high-throughput FIFO queues.
	slices.SortFunc(due, compareReceipt)
	room := l.extensions.room(now, 0)
	for batch := range slices.Chunk(due, host.MaxBatch) {
		if room == 0 {
			break
		}
		room--
		l.extend(batch)
		if l.extensions.window > 0 {
			l.extensions.until = now.Add(l.shortPatience())
		}
	}
}

func (l *loop) extend(batch []*delivery) {
	start := l.now()
	var changes []change
	var longest time.Duration
	for _, d := range batch {
		le := &d.lease
		c := change{d: d, handle: le.handle}
		c.visibility, c.last = le.extension(start, l.opts.VisibilityTimeout, l.opts.MaxExtension)
		if c.visibility <= le.remaining(start) {
			// At MaxExtension, or near it: an extension would bring the end nearer.
			le.final, le.unproven = true, false
			continue
		}
		le.due = start.Add(host.Double(l.extensionPatience(), maxVisibility, le.calls+1))
		le.calls++
		longest = max(longest, le.remaining(start))
		changes = append(changes, c)
	}
	if len(changes) > 0 {
		l.changeVisibility(changes, min(longest, maxPatience), false) // an answer after the lease's end proves nothing
	}
}

// extensionPatience is how long an extension may wait for its answer before another one is sent beside it: twice as long
// for each that waits already. Where the last answer took longer than that, so may the next one.
func (l *loop) extensionPatience() time.Duration {
	return max(l.shortPatience(), l.extensionTook*3/2)
}

func (l *loop) shortPatience() time.Duration {
	return max(min(l.opts.VisibilityTimeout/6, callTimeout), 500*time.Millisecond)
}

const extensionDelay = 200 * time.Millisecond

// mostExtensionDelay leaves time for more tries before the lease ends.
func (l *loop) mostExtensionDelay(d *delivery, now time.Time) time.Duration {
	return min(max(d.lease.remaining(now)/4, extensionDelay), 5*time.Second)
}

func (l *loop) extensionsAnswered(e visibilityChanged) {
	now := l.now()
	switch {
	case errors.Is(e.err, context.DeadlineExceeded) && e.start.Before(l.extensionAt):
		// Its leases have ended, or another try was answered: SQS is slow, and works.
	case e.err != nil:
		for _, c := range e.changes {
			l.extensions.fail(e.start, now, extensionDelay, l.mostExtensionDelay(c.d, now))
		}
	default:
		l.extensionTook, l.extensionAt = now.Sub(e.start), now
		if l.extensions.window > 0 {
			l.extensions.succeed()
			l.heartbeatBy(now)
		}
	}
	jitter := rand.Float64()
	for i, c := range e.changes {
		l.extensionAnswered(c, e.results[i], e.start, jitter)
	}
}

func (l *loop) extensionAnswered(c change, err error, start time.Time, jitter float64) {
	d, le := c.d, &c.d.lease
	if le.handle != c.handle || d.state == gone || le.lost {
		return // the answer is about an older handle
	}
	now := l.now()
	le.calls--
	switch {
	case err == nil && !le.live(now):
		// The call may have reached SQS after the visibility timeout. SQS may answer success also then, and hide nothing
		// from the consumer that has the message by now. Only an answer inside the proven time proves more.
		l.counters.notExtended.Add(1)
		l.loseLease(d, "visibility timeout passed before the extension's answer", nil)
		return
	case err == nil:
		l.counters.extended.Add(1)
		le.extended(start, now, c.visibility, l.opts.VisibilityTimeout, c.last, jitter)
		l.counters.running.changed(d)
	case isRefused(err) && d.mayBeDeleted():
		// A delete that reached SQS first leaves nothing to extend. Its answer, or that of the next try, says whether that is
		// so. If none comes, the lease ends.
		le.refused, le.final = true, true
		return
	case isRefused(err):
		l.counters.notExtended.Add(1)
		l.loseLease(d, "receipt handle refused", err)
		return
	default:
		l.counters.notExtended.Add(1)
		l.extensionFailed(d, err, now, jitter)
	}
	if d.state == releasing {
		if le.calls == 0 {
			l.releases.add(d) // it waited for this answer
		}
		return
	}
	l.heartbeatBy(le.due)
}

// extensionFailed has the extension tried again. The lease ends when it would have ended.
func (l *loop) extensionFailed(d *delivery, err error, now time.Time, jitter float64) {
	le := &d.lease
	le.failures++
	if !le.warned { // once for a lease: a long handler in a long outage would fill the log
		le.warned = true
		l.log.WarnContext(d.context(), "sqsworker: extension failed", d.about(keyError, err)...)
	}
	delay := host.Double(extensionDelay, l.mostExtensionDelay(d, now), le.failures)
	le.due = now.Add(delay/2 + time.Duration(jitter*float64(delay)/2))
	// Extensions that failed wait for the same instant, so that they go out together.
	if l.extendAgain.After(now) && !l.extendAgain.After(le.due) {
		le.due = l.extendAgain
	}
	l.extendAgain = le.due
}

// release gives a message back: others may receive it after delay. It is not extended from here on. The release is tried
// again until the visibility timeout ends, which gives the message back too.
func (l *loop) release(d *delivery, delay time.Duration) {
	if !d.lease.live(l.now()) {
		l.loseLease(d, "visibility timeout passed before the release", nil)
		return
	}
	l.setState(d, releasing)
	l.unpark(d)
	l.logLastReceive(d)
	d.delay, d.failures = max(delay, l.hiddenInStop(d)), 0
	// An extension under way could reach SQS after the release, and hide the message for a whole visibility timeout: the
	// release waits for its answer.
	if d.lease.calls == 0 {
		l.releases.add(d)
	}
}

func (l *loop) sendReleases(batch []*delivery) {
	now := l.now()
	var changes []change
	for _, d := range batch {
		if !d.lease.live(now) {
			l.releases.inCalls--
			l.remove(d) // visible again without the release
			continue
		}
		// SQS refuses what goes beyond its 12 h after the receive.
		rest := maxVisibility - time.Second - elapsed(now, d.lease.received)
		changes = append(changes, change{d: d, handle: d.lease.handle, visibility: min(d.delay, rest.Truncate(time.Second))})
	}
	if len(changes) > 0 {
		l.releases.calls++
		l.changeVisibility(changes, callTimeout, true)
	}
}

func (l *loop) releasesAnswered(e visibilityChanged) {
	l.releases.calls--
	l.releases.inCalls -= len(e.changes)
	if e.err != nil {
		l.slowDown(&l.releases, e.start)
	} else {
		l.releases.slow.succeed()
	}
	for i, c := range e.changes {
		l.releaseAnswered(c.d, e.results[i])
	}
}

func (l *loop) releaseAnswered(d *delivery, err error) {
	replaced := l.deliveries[d.m.ID] != d // received again already: the old handle must not hide it
	if err == nil || replaced || isRefused(err) {
		l.remove(d)
		return
	}
	if d.failures == 0 {
		l.log.WarnContext(d.context(), "sqsworker: release failed", d.about(keyError, err)...)
	}
	l.retry(&l.releases, d)
}
