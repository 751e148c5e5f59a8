package dynamooutbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// mostReads is how often a group is read while the event before its first visible one keeps coming to light.
const mostReads = 3

// Read implements [outbox.Store] by a consistent Query. If the relay doesn't know of the event before the first one, Read adds
// a TransactGetItems of it.
//
// A Query isn't a snapshot, and a transaction that is decided reaches its items one by one, so a Query may show 6 and not 5.
// The transaction of 6 needed the version that the one of 5 had written, so 5 is at least decided by then. If it hasn't reached
// its item, DynamoDB cancels a TransactGetItems of that item, and Read returns [outbox.ErrUnsettled]. A GetItem would answer
// that the item is missing. If 5 is absent, it was published and deleted, and so were all events before it.
//
// The events after a gap wait for a later read, with [outbox.ErrUnsettled] too.
func (o *Outbox) Read(ctx context.Context, g outbox.Group, known outbox.Known, limit int) ([]outbox.Entry, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	for range mostReads {
		r, err := o.query(ctx, g.Name, limit)
		if err != nil {
			return nil, err
		}
		if r.first <= 1 || known.Confirmed >= r.first-1 {
			return r.entries, r.end
		}
		switch present, err := o.present(ctx, g.Name, r.first-1); {
		case err != nil:
			return nil, err
		case !present:
			return r.entries, r.end
		}
	}
	return nil, fmt.Errorf("%w: dynamooutbox: an earlier event came to light in each of %d reads", outbox.ErrUnsettled, mostReads)
}

// run is a part of a group without a gap, from its lowest seq.
type run struct {
	limit           int
	entries         []outbox.Entry
	normal, skipped int
	last            int64 // seq of the last item
	first           int64 // seq of the first event that may be sent, if nothing in the run says that the one before is settled
	end             error // why the run ends before limit and before the group
}

// add takes the next item of a group, and reports whether the run goes on. The error is that of an answer which is none.
func (r *run) add(group string, it item, now time.Time) (more bool, err error) {
	e, err := decode(it, now)
	e.Group = group
	switch {
	case e.Seq > 0 && e.Seq <= r.last:
		return false, fmt.Errorf("%w: seq %d comes after %d", errAnswer, e.Seq, r.last)
	// Skipped events stay when later ones are gone. Behind one that is to be sent, a gap is what is not visible yet.
	case e.Seq > 0 && r.normal > 0 && e.Seq != r.last+1:
		r.end = fmt.Errorf("%w: dynamooutbox: %d follows %d", outbox.ErrUnsettled, e.Seq, r.last)
	case err != nil:
		r.end = &outbox.GroupError{Group: group, Seq: e.Seq, Err: fmt.Errorf("%w: %w", outbox.ErrBroken, err)}
	case e.Parked == outbox.OnRefusedSkip && r.skipped == outbox.MaxSkipped:
		r.end = outbox.ErrManySkipped
	default:
		r.append(e)
	}
	return r.end == nil && r.normal < r.limit, nil
}

func (r *run) append(e outbox.Entry) {
	if e.Parked == outbox.OnRefusedSkip {
		r.skipped++
	} else {
		// A relay parks an event when all before it is confirmed or skipped: the mark says so of what is before.
		if r.normal == 0 && e.Parked == 0 && (r.skipped == 0 || e.Seq != r.last+1) {
			r.first = e.Seq
		}
		r.normal++
	}
	r.last = e.Seq
	r.entries = append(r.entries, e)
}

// query reads the group's first run.
func (o *Outbox) query(ctx context.Context, group string, limit int) (*run, error) {
	r := &run{limit: limit}
	in := &dynamodb.QueryInput{
		TableName:                 aws.String(o.table),
		KeyConditionExpression:    aws.String(attrPK + " = :pk"),
		ExpressionAttributeValues: item{":pk": text(o.partition(group))},
		ConsistentRead:            aws.Bool(true),
		Limit:                     limitOf(limit),
	}
	for {
		out, err := call(ctx, &o.caller, o.client.Query, in)
		if err != nil {
			return nil, o.explain("Query", err)
		}
		now := time.Now()
		for _, it := range out.Items {
			if pk := stringOf(it[attrPK]); pk != o.partition(group) {
				return nil, o.explain("Query", fmt.Errorf("%w: it has the key %.128q", errAnswer, pk))
			}
			more, err := r.add(group, it, now)
			if err != nil {
				return nil, o.explain("Query", err)
			}
			if !more {
				return r, nil
			}
		}
		if len(out.LastEvaluatedKey) == 0 {
			return r, nil
		}
		// Skipped events, or DynamoDB's 1 MB, have made the page shorter than the run.
		if len(out.Items) == 0 {
			return nil, o.explain("Query", fmt.Errorf("%w: a page that is not the last has no items", errAnswer))
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		in.Limit = limitOf(limit - r.normal + outbox.MaxSkipped - r.skipped)
	}
}

func limitOf(n int) *int32 { return aws.Int32(int32(max(1, min(n, math.MaxInt32)))) }

// Probes returns how many TransactGetItems were sent since New.
func (o *Outbox) Probes() int64 { return o.probes.Load() }

// present reports whether the event is in the table, by a read that no transaction in progress can hide it from.
func (o *Outbox) present(ctx context.Context, group string, seq int64) (bool, error) {
	o.probes.Add(1)
	out, err := call(ctx, &o.caller, o.client.TransactGetItems, &dynamodb.TransactGetItemsInput{
		TransactItems: []ddbtypes.TransactGetItem{{Get: &ddbtypes.Get{
			TableName:            aws.String(o.table),
			Key:                  keyOf(o.partition(group), seq),
			ProjectionExpression: aws.String(attrPK),
		}}},
	})
	switch {
	case err != nil && (conflicts(err) || throttled(err)):
		return false, fmt.Errorf("%w: %w", outbox.ErrUnsettled, o.explain("TransactGetItems", err))
	case err != nil:
		return false, o.explain("TransactGetItems", err)
	case len(out.Responses) != 1:
		return false, o.explain("TransactGetItems", fmt.Errorf("%w: %d items, want 1", errAnswer, len(out.Responses)))
	}
	return len(out.Responses[0].Item) > 0, nil
}

// conflicts reports that a read was cancelled since a transaction is in progress on the item, or for its rate.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactGetItems.html
func conflicts(err error) bool {
	cancelled, ok := errors.AsType[*ddbtypes.TransactionCanceledException](err)
	if !ok {
		return false
	}
	for _, r := range cancelled.CancellationReasons {
		switch aws.ToString(r.Code) {
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			return true
		}
	}
	return false
}
