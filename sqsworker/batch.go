package sqsworker

import (
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

// batchQueue gathers deliveries for one kind of batch call: deletes, or releases.
type batchQueue struct {
	send     func(batch []*delivery)
	pending  []*delivery
	urgent   bool          // send without a linger
	linger   *timer        // runs while something waits to be sent with others
	inCalls  int           // deliveries in calls under way
	calls    int           // calls under way
	maxCalls int           // with fast answers; ignored in a stop; 0: no limit
	took     time.Duration // by a call that was answered, smoothed
	slow     slowdown
	missing  bool                           // the queue does not exist any more: nothing is sent
	failed   [maxRetryLevel + 1][]*delivery // entries that failed, by how often
}

const (
	// slowCall is how long a call may run before the worker wants more calls under way.
	slowCall = 200 * time.Millisecond
	// maxRetryLevel is the number of failures after which the wait of an entry is no longer doubled.
	maxRetryLevel = 7
)

func (q *batchQueue) add(d *delivery) { q.pending = append(q.pending, d) }

// unanswered is how many deliveries wait to be sent, or for an answer: what they use of capacity will be free soon. Those
// that wait for a retry are not among them.
func (q *batchQueue) unanswered() int {
	if q.slow.failures > 0 {
		return q.inCalls
	}
	return len(q.pending) + q.inCalls
}

// answered records how long a call took. The smoothing is that of TCP's round trips.
func (q *batchQueue) answered(took time.Duration) { q.took += (took - q.took) / 8 }

// limit is how many calls may be under way: where they are slow, so many more that they do as much in a second.
func (q *batchQueue) limit() int {
	if q.maxCalls == 0 {
		return math.MaxInt
	}
	return int(float64(q.maxCalls) * max(1, q.took.Seconds()/slowCall.Seconds()))
}

// slowdown slows down the calls of one kind while they fail. After a failure one call at a time is made, after a delay that
// doubles. All other entries wait, and go out in full batches when calls succeed again. With a delay for each message batches
// would fall apart, and the number of calls would grow when SQS can take the least of them.
type slowdown struct {
	failures int       // failed calls in a row
	counted  time.Time // when the last of them was
	until    time.Time // there is no call before
	window   int       // calls at once; 0: no limit
}

const maxWindow = 64

// fail counts a failed call, but not one that was under way already when the last one failed: an outage fails them all.
func (s *slowdown) fail(start, now time.Time, delay time.Duration, most time.Duration) {
	if s.failures > 0 && !start.After(s.counted) {
		return
	}
	s.failures++
	s.counted, s.window = now, 1
	s.until = now.Add(host.Jitter(delay, most, s.failures))
}

// succeed lets twice as many calls be made at once as before.
func (s *slowdown) succeed() {
	s.failures, s.until = 0, time.Time{}
	if s.window *= 2; s.window > maxWindow {
		s.window = 0
	}
}

// room is how many more calls may be made, with so many under way.
func (s *slowdown) room(now time.Time, calls int) int {
	switch {
	case now.Before(s.until):
		return 0
	case s.window == 0:
		return math.MaxInt
	}
	return s.window - calls
}

// flush sends full batches. It sends the rest too if its linger is over or something in it is urgent.
func (l *loop) flush(q *batchQueue, lingered bool) {
	// A delivery whose lease was lost meanwhile is not sent.
	q.pending = slices.DeleteFunc(q.pending, func(d *delivery) bool { return d.state == gone })
	for q.missing && len(q.pending) > 0 {
		d := q.pending[0]
		q.pending = q.pending[1:]
		l.loseLease(d, "the queue does not exist", nil)
	}
	rest := lingered || q.urgent || l.stopping.begun || l.opts.DeleteLinger < 0
	for len(q.pending) >= host.MaxBatch || rest && len(q.pending) > 0 {
		if q.slow.room(l.now(), q.calls) <= 0 || q.calls >= q.limit() && !l.stopping.begun {
			q.urgent = q.urgent || rest // sent when one of the calls has ended, or after the backoff
			return
		}
		n := min(host.MaxBatch, len(q.pending))
		batch := q.pending[:n:n]
		q.pending = q.pending[n:]
		q.inCalls += n
		q.send(batch)
	}
	if len(q.pending) == 0 {
		q.pending, q.urgent = nil, false
		l.schedule.cancel(q.linger)
	} else if !q.linger.pending() {
		q.linger = l.after(l.opts.DeleteLinger, func() { l.flush(q, true) })
	}
}

// retryLimit is the longest wait for a retry.
func (l *loop) retryLimit() time.Duration {
	if l.stopping.begun {
		return flushTimeout / 10
	}
	return 5 * time.Second
}

// slowDown is called when a call of the queue has failed.
func (l *loop) slowDown(q *batchQueue, start time.Time) {
	now := l.now()
	q.slow.fail(start, now, 100*time.Millisecond, l.retryLimit())
	q.urgent = true
	l.wakeAfter(q.slow.until.Sub(now))
}

// retry puts a delivery back after a failure. It waits for others that failed as often, and they go out together: one that
// always fails keeps nothing else waiting.
func (l *loop) retry(q *batchQueue, d *delivery) {
	d.failures++
	level := min(d.failures, maxRetryLevel)
	q.failed[level] = append(q.failed[level], d)
	if len(q.failed[level]) > 1 {
		return
	}
	l.after(host.Jitter(100*time.Millisecond, l.retryLimit(), level), func() {
		q.pending = append(q.pending, q.failed[level]...)
		q.failed[level] = nil
		q.urgent = true
	})
}

// results has one error for each entry of a batch call. A call that succeeds can have entries that failed. An entry that
// the answer does not name has an unknown outcome, which is an error too.
type results []error

// newResults returns the results of a call with n entries before its answer is read: each is err, or that the answer does
// not name it.
func newResults(n int, err error) results {
	if err == nil {
		err = errMissing
	}
	return slices.Repeat(results{err}, n)
}

func (r results) succeeded(id *string) {
	if i, ok := host.EntryIndex(id, len(r)); ok {
		r[i] = nil
	}
}

// failed notes entries that failed; handle returns the receipt handle of an entry.
func (r results) failed(entries []sqstypes.BatchResultErrorEntry, handle func(i int) string) {
	for _, e := range entries {
		if i, ok := host.EntryIndex(e.Id, len(r)); ok {
			r[i] = &entryError{aws.ToString(e.Code), host.WithoutHandle(aws.ToString(e.Message), handle(i)), e.SenderFault}
		}
	}
}
