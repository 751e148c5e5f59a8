package dynamooutbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/host"
)

// maxDeletes is DynamoDB's limit for a BatchWriteItem.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
const maxDeletes = 25

// mostRequests is how many requests of one call are in flight.
const mostRequests = 16

// errUnprocessed says that DynamoDB did not make a write of a batch, for its rate as a rule.
var errUnprocessed = errors.New("left unprocessed by DynamoDB")

// Delete implements [outbox.Store] by BatchWriteItem, 25 events of any groups a request, at most 16 requests at once. The
// deletes have no condition, because the key is the event's identity and a seq is never used again, see [Outbox.Put]. So Delete
// doesn't look at the entry's ID, and a delete that comes late finds its own event or a missing item. That doesn't hold after a
// restore of the table, so stop the relays before you restore it.
func (o *Outbox) Delete(ctx context.Context, es []outbox.Entry) (left []outbox.Entry, err error) {
	var keys []eventKey
	position := make(map[eventKey]int, len(es))
	for _, e := range es {
		k := o.eventKey(e)
		if _, twice := position[k]; !twice { // DynamoDB refuses a batch with two writes of an item
			position[k] = len(keys)
			keys = append(keys, k)
		}
	}
	results := make([]error, len(keys)) // by position
	host.InParallel((len(keys)+maxDeletes-1)/maxDeletes, mostRequests, func(i int) {
		n, end := i*maxDeletes, min((i+1)*maxDeletes, len(keys))
		o.deleteBatch(ctx, keys[n:end], results[n:end])
	})
	for _, e := range es {
		if results[position[o.eventKey(e)]] != nil {
			left = append(left, e)
		}
	}
	return left, o.explain("BatchWriteItem", joinDistinct(results))
}

type eventKey struct {
	pk  string
	seq int64
}

func (o *Outbox) eventKey(e outbox.Entry) eventKey { return eventKey{o.partition(e.Group), e.Seq} }

// deleteBatch sends one request, and says of each key why its item may still be there.
func (o *Outbox) deleteBatch(ctx context.Context, keys []eventKey, results []error) {
	writes := make([]ddbtypes.WriteRequest, len(keys))
	for i, k := range keys {
		writes[i].DeleteRequest = &ddbtypes.DeleteRequest{Key: keyOf(k.pk, k.seq)}
	}
	fail := func(err error) {
		for i := range results {
			results[i] = err
		}
	}
	out, err := call(ctx, &o.caller, o.client.BatchWriteItem, &dynamodb.BatchWriteItemInput{
		RequestItems: map[string][]ddbtypes.WriteRequest{o.table: writes},
	})
	if err != nil {
		fail(err)
		return
	}
	for _, unprocessed := range out.UnprocessedItems {
		for _, w := range unprocessed {
			var k eventKey
			if w.DeleteRequest != nil {
				k = eventKey{stringOf(w.DeleteRequest.Key[attrPK]), seqOf(w.DeleteRequest.Key)}
			}
			i := slices.Index(keys, k)
			if i < 0 { // it is not known which one it stands for
				fail(fmt.Errorf("%w: it leaves event %d of %.128q, which was not in the request", errAnswer, k.seq, k.pk))
				return
			}
			results[i] = errUnprocessed
		}
	}
}

// joinDistinct joins errors, those that follow an equal one once.
func joinDistinct(all []error) error {
	var distinct []error
	for _, err := range all {
		if err != nil && (len(distinct) == 0 || distinct[len(distinct)-1] != err) {
			distinct = append(distinct, err)
		}
	}
	return errors.Join(distinct...)
}
