package dynamooutbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

const (
	// maxDeletes is DynamoDB's limit for a BatchWriteItem.
	// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
	maxDeletes = 25
	// deleteLinger is how long a request that is not full waits for others. Groups whose events shared requests to SQS get
	// their last confirmations in the same instant.
	deleteLinger = 2 * time.Millisecond
)

// errUnprocessed says that DynamoDB did not make a write of a batch, for its rate as a rule.
var errUnprocessed = errors.New("left unprocessed by DynamoDB")

// Delete implements [outbox.Store] by BatchWriteItem, 25 events a request. Calls that come within 2 ms of each other, for any
// groups, share requests. There is no condition: the key is the event's identity, since a seq is never used again, see
// [Outbox.Put]. So the entry's ID is not looked at, and a delete that comes late finds its event or nothing.
func (o *Outbox) Delete(ctx context.Context, es []outbox.Entry) (left []outbox.Entry, err error) {
	if ctx.Err() != nil {
		return es, o.explain("BatchWriteItem", context.Cause(ctx))
	}
	batches := o.deletes.add(ctx, o, es)
	var errs []error
	for i, b := range batches {
		first := i == 0 || b != batches[i-1]
		if first {
			o.deletes.wait(ctx, b)
		}
		if err := b.result(o.eventKey(es[i])); err != nil {
			left = append(left, es[i])
			if n := len(errs); n == 0 || errs[n-1] != err {
				errs = append(errs, err)
			}
		}
	}
	return left, o.explain("BatchWriteItem", errors.Join(errs...))
}

type eventKey struct {
	pk  string
	seq int64
}

func (o *Outbox) eventKey(e outbox.Entry) eventKey { return eventKey{o.partition(e.Group), e.Seq} }

// deletes gathers the deletes of concurrent callers in requests.
type deletes struct {
	mu   sync.Mutex
	open *deleteBatch // takes more; nil: none waits
}

// deleteBatch is one request.
type deleteBatch struct {
	ctx    context.Context // of the request: it ends when no caller waits any longer
	end    context.CancelCauseFunc
	timer  *time.Timer
	done   chan struct{}
	keys   []eventKey
	errs   map[eventKey]error // those that may still be there; written before done is closed
	failed error              // all of them may be

	waiting int // callers; it belongs to the mutex of deletes
}

// add puts the entries into batches, and returns the batch of each. A full one is sent at once.
func (d *deletes) add(ctx context.Context, o *Outbox, es []outbox.Entry) []*deleteBatch {
	d.mu.Lock()
	defer d.mu.Unlock()
	batches := make([]*deleteBatch, len(es))
	for i, e := range es {
		if d.open == nil {
			d.open = d.begin(ctx, o)
		}
		b := d.open
		if batches[i] = b; i == 0 || batches[i-1] != b {
			b.waiting++
		}
		key := o.eventKey(e)
		if slices.Contains(b.keys, key) { // DynamoDB refuses a batch with two writes of an item
			continue
		}
		if b.keys = append(b.keys, key); len(b.keys) == maxDeletes {
			d.open = nil
			b.timer.Stop()
			go b.send(o)
		}
	}
	return batches
}

func (d *deletes) begin(ctx context.Context, o *Outbox) *deleteBatch {
	b := &deleteBatch{done: make(chan struct{})}
	b.ctx, b.end = context.WithCancelCause(context.WithoutCancel(ctx))
	b.timer = time.AfterFunc(deleteLinger, func() {
		if d.close(b) {
			b.send(o)
		}
	})
	return b
}

// close makes the next entry begin another batch. It reports false where the batch was closed before.
func (d *deletes) close(b *deleteBatch) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open != b {
		return false
	}
	d.open = nil
	return true
}

// wait waits for the batch's result. A caller whose context ends does not wait for a request that others wait for: its
// entries are left. If it is the last one, the request ends, and nothing of it is left behind.
func (d *deletes) wait(ctx context.Context, b *deleteBatch) {
	select {
	case <-b.done:
		return
	case <-ctx.Done():
	}
	d.mu.Lock()
	b.waiting--
	last, unsent := b.waiting == 0, d.open == b
	if last && unsent {
		d.open = nil
	}
	d.mu.Unlock()
	switch {
	case last && unsent:
		b.timer.Stop()
		b.fail(context.Cause(ctx))
	case last:
		b.end(context.Cause(ctx))
		<-b.done
	}
}

// fail ends a batch whose events may all be there.
func (b *deleteBatch) fail(err error) {
	b.failed = err
	b.end(nil)
	close(b.done)
}

// send sends the request, once.
func (b *deleteBatch) send(o *Outbox) {
	writes := make([]ddbtypes.WriteRequest, len(b.keys))
	for i, k := range b.keys {
		writes[i].DeleteRequest = &ddbtypes.DeleteRequest{Key: keyOf(k.pk, k.seq)}
	}
	out, err := call(b.ctx, &o.caller, o.client.BatchWriteItem, &dynamodb.BatchWriteItemInput{
		RequestItems: map[string][]ddbtypes.WriteRequest{o.table: writes},
	})
	if err != nil {
		b.fail(err)
		return
	}
	b.errs = map[eventKey]error{}
	for _, unprocessed := range out.UnprocessedItems {
		for _, w := range unprocessed {
			var k eventKey
			if w.DeleteRequest != nil {
				k = eventKey{stringOf(w.DeleteRequest.Key[attrPK]), seqOf(w.DeleteRequest.Key)}
			}
			if !slices.Contains(b.keys, k) { // it is not known which one it stands for
				b.fail(fmt.Errorf("%w: it leaves %q %d, which was not asked for", errAnswer, k.pk, k.seq))
				return
			}
			b.errs[k] = errUnprocessed
		}
	}
	b.end(nil)
	close(b.done)
}

// errNotAwaited is the result of an entry whose caller did not wait for it.
var errNotAwaited = errors.New("not waited for: the context has ended")

// result is nil for an event that is gone.
func (b *deleteBatch) result(k eventKey) error {
	select {
	case <-b.done:
	default:
		return errNotAwaited
	}
	if b.failed != nil {
		return b.failed
	}
	return b.errs[k]
}
