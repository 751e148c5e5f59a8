package sqsworker

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

// results has one error for each entry of a batch call. SQS answers with success where single entries have failed; an
// entry that the answer does not name has an unknown outcome, which is an error too.
type results []error

// newResults returns the results of a batch of n before its answer is read: err, or that no result is named.
func newResults(n int, err error) results {
	if err == nil {
		err = errMissing
	}
	return slices.Repeat(results{err}, n)
}

func (r results) succeeded(id *string) { r.set(id, nil) }

func (r results) failed(entries []sqstypes.BatchResultErrorEntry) {
	for _, f := range entries {
		r.set(f.Id, &entryError{code: aws.ToString(f.Code), message: aws.ToString(f.Message)})
	}
}

func (r results) set(id *string, err error) {
	if i, ok := host.EntryIndex(id, len(r)); ok {
		r[i] = err
	}
}

// batchQueue gathers deliveries for one kind of batch call.
type batchQueue struct {
	send    func(batch []*delivery)
	pending []*delivery
	rush    bool   // send without lingering
	linger  *alarm // set while something waits for company
	calls   int    // deliveries in calls under way
	open    int    // calls under way
	limit   int    // of those, outside a stop; 0: none
}

func (o *batchQueue) put(d *delivery) {
	if o.pending == nil {
		o.pending = make([]*delivery, 0, maxBatch)
	}
	o.pending = append(o.pending, d)
}

// fresh is how many deliveries will soon make room. Those that wait to be tried again are not among them.
func (o *batchQueue) fresh() int { return len(o.pending) + o.calls }

// flush sends full batches, and the rest when its linger is over or something in it must not wait.
func (l *loop) flush(o *batchQueue, lingered bool) {
	// What has left meanwhile, because its lease was lost, is not sent.
	o.pending = slices.DeleteFunc(o.pending, func(d *delivery) bool { return d.state == gone })
	rest := lingered || o.rush || l.stopping.begun || l.opts.DeleteLinger < 0
	for len(o.pending) >= maxBatch || rest && len(o.pending) > 0 {
		if o.limit > 0 && o.open >= o.limit && !l.stopping.begun {
			o.rush = o.rush || rest // sent when one of the calls has ended
			return
		}
		n := min(maxBatch, len(o.pending))
		batch := o.pending[:n:n]
		o.pending = o.pending[n:]
		o.calls += n
		o.send(batch)
	}
	if len(o.pending) == 0 {
		o.pending, o.rush = nil, false
		l.schedule.cancel(o.linger)
		o.linger = nil
	} else if o.linger == nil {
		o.linger = l.later(l.opts.DeleteLinger, func() {
			o.linger = nil
			l.flush(o, true)
		})
	}
}

// again puts a delivery back after a failed try, unless it ends or changes its way meanwhile.
func (l *loop) again(o *batchQueue, d *delivery, s state) {
	d.tries++
	limit := 5 * time.Second
	if l.stopping.begun {
		limit = flushTime / 10
	}
	l.later(host.Jitter(100*time.Millisecond, limit, d.tries), func() {
		if d.state == s {
			o.put(d)
			o.rush = true
		}
	})
}
