package dynamostore

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// afterLease is how long a record is retained after its lease's end at least, so that TTL deletes no live lease.
const afterLease = time.Hour

// acquisition is an acquire with its values. All its attempts send the same.
type acquisition struct {
	claim        dedup.Claim
	until, fence int64
	taker        int64 // the taker's clock
}

// newAcquisition asks for a lease from now by the holder's clock, so that it is never shorter than asked for: by the
// taker's, a process thawed after an hour would ask for a lease that is over.
func (s *Store) newAcquisition(c dedup.Claim, above int64, m moment) acquisition {
	now := s.clock.holder(m)
	return acquisition{claim: c, until: now + c.Lease.Milliseconds(), fence: max(now, above+1), taker: s.clock.taker(m)}
}

// expiration is the end of retention.
func (a acquisition) expiration() int64 { return retainUntil(a.fence, a.claim.Retention, a.until) }

// putOf is the acquire as the conditional update that decides every case.
func (s *Store) putOf(a acquisition) *dynamodb.UpdateItemInput {
	v := values{
		":p": text(inProgress), ":d": text(completed),
		":me": text(a.claim.Owner), ":fence": number(a.fence), ":until": number(a.until),
		":exp": number(a.expiration()), ":n": number(int64(a.claim.Attempt)),
		":nows": number(a.taker / 1000),
	}
	e := acquireExpr
	if a.claim.NoTakeover {
		e = acquireReleasedExpr
		v[":zero"] = number(0)
	} else {
		v[":now"] = number(a.taker)
	}
	in := s.update(a.claim.Key, e, v)
	in.ReturnValues = ddbtypes.ReturnValueAllOld
	return in
}

// retainUntil is the end of retention in seconds of the epoch. The fence stands for the acquire: it is that instant, and
// later only where a holder's clock was ahead. So a renewal computes the same end without knowing more than its lease.
func retainUntil(fence int64, retention time.Duration, until int64) int64 {
	end := max(fence+retention.Milliseconds(), until+afterLease.Milliseconds())
	return (end + 999) / 1000
}

// update is an UpdateItem of a record that hands back the item where its condition fails.
func (s *Store) update(key string, e expression, v values) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                           aws.String(s.table),
		Key:                                 values{attrID: text(key)},
		UpdateExpression:                    e.update,
		ConditionExpression:                 e.condition,
		ExpressionAttributeNames:            e.names,
		ExpressionAttributeValues:           v,
		ReturnValuesOnConditionCheckFailure: ddbtypes.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              ddbtypes.ReturnConsumedCapacityTotal,
	}
}

// updateItem sends an update and counts what it consumed.
func (s *Store) updateItem(ctx context.Context, in *dynamodb.UpdateItemInput, single func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := s.client.UpdateItem(ctx, in, single)
	switch refusal, isRefusal := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); {
	case isRefusal:
		s.meter.refusedWrite(refusal.Item)
	case err == nil:
		s.meter.wrote(one(out.ConsumedCapacity)...)
	}
	return out, err
}

// granted makes the lease of an acquire that was accepted, from the item as it was before.
func (s *Store) granted(ctx context.Context, c dedup.Claim, req acquisition, old map[string]ddbtypes.AttributeValue) (dedup.Lease, error) {
	r, err := record{}, error(nil)
	// An item without a status meets no clause but the first, so there was none: some implementations of the API answer
	// the key then, where DynamoDB answers nothing.
	if old[attrStatus] != nil {
		r, err = decode(old)
	}
	if err != nil {
		s.abandon(ctx, c.Key, c.Owner)
		return dedup.Lease{}, s.explain("acquire", err)
	}
	l := newLease(c, record{fence: &req.fence, lastError: r.lastError})
	l.OwnRetry = r.status == inProgress && r.owner == c.Owner
	if l.OwnRetry {
		s.meter.ownRetries.Add(1)
	}
	l.Takeover = r.status == inProgress && !l.OwnRetry && (r.until == nil || *r.until > 0)
	if l.Foreign = r.status != "" && r.owner == ""; l.Foreign {
		s.meter.foreign.Add(1)
	}
	return s.start(ctx, l, req.until, c.Lease)
}

// newLease is the claim's lease on r, without its end.
func newLease(c dedup.Claim, r record) dedup.Lease {
	l := dedup.Lease{
		Key: c.Key, Owner: c.Owner, Retention: c.Retention,
		Attempts: c.Attempt, LastError: r.lastError, Validation: c.Validation,
	}
	if r.fence != nil {
		l.Fence = *r.fence
	}
	return l
}

// start gives a new lease its end, and renews it first where less than half of it is left: the answer was slow, or it
// brought the first Date, by which the host is behind and has asked for a lease that was nearly over. A holder renews at
// a third; under what is left here it would have begun too late. A renewal that is refused says that another took over
// in the meantime.
func (s *Store) start(ctx context.Context, l dedup.Lease, until int64, d time.Duration) (dedup.Lease, error) {
	end, left := s.clock.end(until, d)
	l.Until = end
	if left > d/2 {
		return l, nil
	}
	ctx, cancel := context.WithTimeout(ctx, ownTimeout)
	defer cancel()
	renewed, err := s.Renew(ctx, l, d)
	switch {
	case err == nil:
		return renewed, nil
	case errors.Is(err, sqsonce.ErrLeaseLost):
		return dedup.Lease{}, err
	case s.clock.ahead(until):
		return l, nil // shorter than asked for, but live: the holder's own renewals come next
	default:
		s.abandon(ctx, l.Key, l.Owner)
		return dedup.Lease{}, err
	}
}
