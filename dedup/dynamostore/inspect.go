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

// Inspect implements [dedup.Inspector], by a consistent read. Retention and Takeover aren't stored, and are zero.
func (s *Store) Inspect(ctx context.Context, key string) (dedup.Record, error) {
	if err := checkKey("key", key); err != nil {
		return dedup.Record{}, err
	}
	var found item
	err := s.retry(ctx, func(ctx context.Context, options func(*dynamodb.Options)) (err error) {
		found, err = s.getItem(ctx, key, options)
		return err
	})
	if err != nil {
		return dedup.Record{}, s.explain("inspect", err)
	}
	if len(found) == 0 {
		return dedup.Record{}, dedup.ErrNotFound
	}
	r, err := decode(found)
	if err != nil {
		return dedup.Record{}, s.explain("inspect", err)
	}
	return s.public(key, r), nil
}

// public is a record as operators see it.
func (s *Store) public(key string, r record) dedup.Record {
	rec := r.kept
	rec.Key, rec.Owner, rec.Fence, rec.ReceiveCount = key, r.owner, valueOf(r.fence), int(r.receiveCount)
	rec.Completed, rec.Committed = r.status == completed, r.tx != ""
	if r.until != nil && *r.until > 0 {
		rec.Until = s.clock.early(*r.until, unbounded)
	}
	if r.expiration != nil {
		rec.ExpiresAt = time.Unix(*r.expiration, 0)
	}
	return rec
}

// getItem reads a record with a consistent read, once, and counts the units that it consumes.
func (s *Store) getItem(ctx context.Context, key string, options func(*dynamodb.Options)) (item, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:              aws.String(s.table),
		Key:                    values{attrID: text(key)},
		ConsistentRead:         aws.Bool(true),
		ReturnConsumedCapacity: ddbtypes.ReturnConsumedCapacityTotal,
	}, options)
	if err != nil {
		return nil, err
	}
	s.meter.read(one(out.ConsumedCapacity)...)
	return out.Item, nil
}

// Delete deletes the record of key. If the record's lease may be live, Delete returns a [*dedup.InProgressError] and
// doesn't delete the record, unless forced. For a key without a record it returns nil.
//
// To run an event again, use [Store.Reopen] instead. After a Delete the event's next delivery runs the handler too, even if
// the event was completed before, but DynamoDB doesn't refuse an old acquire that the network delivers late. Such a copy
// blocks the key for one lease, although it doesn't start a handler. A request's signature is valid for minutes, so after
// an incident wait that long before the Delete. After a Delete and after a Reopen, a process that saw the event completed
// acknowledges it for a minute without reading its record.
func (s *Store) Delete(ctx context.Context, key string, optFns ...func(*dedup.DeleteOptions)) error {
	if err := checkKey("key", key); err != nil {
		return err
	}
	o := dedup.DeleteOptions{}
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
		if err := s.checkTime(); err != nil {
			return err
		}
		if r.status == inProgress && !r.leaseOver(s.clock.taker(s.clock.look())) {
			return &dedup.InProgressError{Until: s.liveUntil(r)}
		}
		// The clock had no Date before this refusal, so that the time clauses were off. Now it has one.
	}
	return s.explain("delete", errContended)
}

func (s *Store) deleteOnce(ctx context.Context, key string, force bool) error {
	in := &dynamodb.DeleteItemInput{
		TableName:              aws.String(s.table),
		Key:                    values{attrID: text(key)},
		ReturnConsumedCapacity: ddbtypes.ReturnConsumedCapacityTotal,
	}
	if !force {
		now := s.clock.taker(s.clock.look())
		in.ConditionExpression = deleteExpr.condition
		in.ExpressionAttributeNames = deleteExpr.names
		in.ExpressionAttributeValues = values{":d": completedValue, ":now": number(now), ":nows": number(now / 1000)}
		in.ReturnValuesOnConditionCheckFailure = ddbtypes.ReturnValuesOnConditionCheckFailureAllOld
	}
	return s.retry(ctx, func(ctx context.Context, options func(*dynamodb.Options)) error {
		out, err := s.client.DeleteItem(ctx, in, options)
		switch refusal, isRefusal := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); {
		case isRefusal:
			s.meter.refusedWrite(refusal.Item)
		case err == nil:
			s.meter.wrote(one(out.ConsumedCapacity)...)
		}
		return err
	})
}
