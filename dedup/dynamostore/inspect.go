package dynamostore

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/dedup"
)

// Inspect returns the record of key, or [dedup.ErrNotFound]. A released record has a zero Until, and its LastError is
// why. Retention and Takeover are not stored and stay zero. The record's key is the consumer's name, '#' and the event's
// key.
func (s *Store) Inspect(ctx context.Context, key string) (dedup.Record, error) {
	if err := checkKey("key", key); err != nil {
		return dedup.Record{}, err
	}
	var item map[string]ddbtypes.AttributeValue
	err := s.retry(ctx, func(ctx context.Context, single func(*dynamodb.Options)) (err error) {
		item, err = s.getItem(ctx, key, single)
		return err
	})
	if err != nil {
		return dedup.Record{}, s.explain("inspect", err)
	}
	if len(item) == 0 {
		return dedup.Record{}, dedup.ErrNotFound
	}
	r, err := decode(item)
	if err != nil {
		return dedup.Record{}, s.explain("inspect", err)
	}
	rec := dedup.Record{
		Lease: dedup.Lease{
			Key: key, Owner: r.owner, Attempts: int(r.attempts), LastError: r.lastError,
			Validation: r.result.Validation,
		},
		Completed: r.status == completed,
		Result:    r.result,
	}
	if r.fence != nil {
		rec.Fence = *r.fence
	}
	if r.until != nil && *r.until > 0 {
		rec.Until = s.clock.early(*r.until, unbounded)
	}
	if r.expiration != nil {
		rec.ExpiresAt = time.Unix(*r.expiration, 0)
	}
	return rec, nil
}

// getItem reads a record as it is now, and counts what that consumed.
func (s *Store) getItem(ctx context.Context, key string, single func(*dynamodb.Options)) (map[string]ddbtypes.AttributeValue, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:              aws.String(s.table),
		Key:                    values{attrID: text(key)},
		ConsistentRead:         aws.Bool(true),
		ReturnConsumedCapacity: ddbtypes.ReturnConsumedCapacityTotal,
	}, single)
	if err != nil {
		return nil, err
	}
	s.meter.read(one(out.ConsumedCapacity)...)
	return out.Item, nil
}

// DeleteOptions configure [Store.Delete].
type DeleteOptions struct {
	// Force also deletes a record whose lease is live: its holder is told that it lost the lease and another delivery may
	// run beside it. Default: false.
	Force bool
}

// Delete forgets the record of key, so that the event's next delivery runs the handler, also where it was completed
// before. A record whose lease may be live is a [*dedup.InProgressError] and stays, unless forced; a key without a
// record is nil.
//
// A copy of an old acquire that the network held back, which no record refuses now, can take the key for one lease
// although nobody runs. Requests are signed for minutes only: wait that long after an incident, or wait out the lease.
func (s *Store) Delete(ctx context.Context, key string, optFns ...func(*DeleteOptions)) error {
	if err := checkKey("key", key); err != nil {
		return err
	}
	o := DeleteOptions{}
	for _, fn := range optFns {
		fn(&o)
	}
	for range maxAttempts {
		err := s.deleteOnce(ctx, key, o.Force)
		refusal, refused := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err)
		if !refused {
			return s.explain("delete", err)
		}
		r, err := decode(refusal.Item)
		if err != nil {
			return s.explain("delete", err)
		}
		if r.status == inProgress && !r.over(s.clock.taker(s.clock.look())) {
			return &dedup.InProgressError{Until: s.heldUntil(r)}
		}
		// Refused by a clock that had no answer to go by yet: this one has brought it.
	}
	return s.explain("delete", errContended)
}

func (s *Store) deleteOnce(ctx context.Context, key string, force bool) error {
	in := &dynamodb.DeleteItemInput{
		TableName: aws.String(s.table),
		Key:       values{attrID: text(key)},

		ReturnConsumedCapacity: ddbtypes.ReturnConsumedCapacityTotal,
	}
	if !force {
		now := s.clock.taker(s.clock.look())
		in.ConditionExpression = deleteExpr.condition
		in.ExpressionAttributeNames = deleteExpr.names
		in.ExpressionAttributeValues = values{":d": text(completed), ":now": number(now), ":nows": number(now / 1000)}
		in.ReturnValuesOnConditionCheckFailure = ddbtypes.ReturnValuesOnConditionCheckFailureAllOld
	}
	return s.retry(ctx, func(ctx context.Context, single func(*dynamodb.Options)) error {
		out, err := s.client.DeleteItem(ctx, in, single)
		switch refusal, isRefusal := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); {
		case isRefusal:
			s.meter.refusedWrite(refusal.Item)
		case err == nil:
			s.meter.wrote(one(out.ConsumedCapacity)...)
		}
		return err
	})
}
