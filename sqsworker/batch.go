package sqsworker

import (
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
	urgent   bool   // send without a linger
	linger   *timer // runs while something waits to be sent with others
	inCalls  int    // deliveries in calls under way
	calls    int    // calls under way
	maxCalls int    // ignored in a stop; 0: no limit
	missing  bool   // the queue does not exist any more: nothing is sent
}

func (q *batchQueue) add(d *delivery) { q.pending = append(q.pending, d) }

// unanswered is how many deliveries wait to be sent, or for an answer: what they use of capacity will be free soon. Those
// that wait for a retry are not among them.
func (q *batchQueue) unanswered() int { return len(q.pending) + q.inCalls }

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
		if q.maxCalls > 0 && q.calls >= q.maxCalls && !l.stopping.begun {
			q.urgent = q.urgent || rest // sent when one of the calls has ended
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

// retry puts a delivery back after a failure, and waits before. Nothing is sent if the delivery has ended by then, or has
// another state.
func (l *loop) retry(q *batchQueue, d *delivery) {
	d.failures++
	limit := 5 * time.Second
	if l.stopping.begun {
		limit = flushTimeout / 10
	}
	state := d.state
	l.after(host.Jitter(100*time.Millisecond, limit, d.failures), func() {
		if d.state == state {
			q.add(d)
			q.urgent = true
		}
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

func (r results) succeeded(id *string) { r.set(id, nil) }

func (r results) failed(entries []sqstypes.BatchResultErrorEntry) {
	for _, e := range entries {
		r.set(e.Id, &entryError{code: aws.ToString(e.Code), message: aws.ToString(e.Message)})
	}
}

func (r results) set(id *string, err error) {
	if i, ok := host.EntryIndex(id, len(r)); ok {
		r[i] = err
	}
}
