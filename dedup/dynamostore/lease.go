package dynamostore

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/failure"
)

// Renew implements [dedup.Store].
func (s *Store) Renew(ctx context.Context, l dedup.Lease, d time.Duration) (dedup.Lease, error) {
	if err := checkKey("Lease.Key", l.Key); err != nil {
		return dedup.Lease{}, err
	}
	until := s.clock.holder(s.clock.look()) + d.Milliseconds()
	refusal, err := s.write(ctx, s.update(l.Key, renewExpr, values{
		":me": text(l.Owner), ":p": text(inProgress), ":one": number(1),
		":until": number(until), ":exp": number(retainUntil(l.Fence, l.Retention, until)),
	}))
	if err != nil {
		return dedup.Lease{}, s.explain("renew", err)
	}
	if refusal != nil {
		// An item that cannot be read, or none, is not ours either.
		r, err := decode(refusal.Item)
		if err != nil || r.owner != l.Owner || r.status != inProgress || r.until == nil || *r.until <= until {
			return dedup.Lease{}, s.lostTo(refusal.Item)
		}
		until, d = *r.until, unbounded // held further than asked for: a lease is never shortened
	}
	l.Until = s.clock.early(until, d)
	s.at.enter(l.Owner, l.Until)
	return l, nil
}

// Complete implements [dedup.Store].
func (s *Store) Complete(ctx context.Context, l dedup.Lease, res dedup.Result) error {
	if err := checkKey("Lease.Key", l.Key); err != nil {
		return err
	}
	hash := cmp.Or(res.Validation, l.Validation)
	err, settled := error(nil), false
	if res.Data == nil && hash == "" {
		err, settled = s.completeTogether(ctx, l)
	}
	if !settled {
		v := values{":me": text(l.Owner), ":d": text(completed)}
		if res.Data != nil {
			v[":r"] = encodeData(res.Data)
		}
		if hash != "" {
			v[":v"] = text(hash)
		}
		var refusal *ddbtypes.ConditionalCheckFailedException
		refusal, err = s.write(ctx, s.update(l.Key, completion(isMine, v), v))
		if refusal != nil {
			err = s.lostTo(refusal.Item)
		}
	}
	if err == nil || errors.Is(err, sqsonce.ErrLeaseLost) {
		s.at.leave(l.Owner)
		return err
	}
	return s.explain("complete", err)
}

// Release implements [dedup.Store]. It keeps the first 256 bytes of the cause.
func (s *Store) Release(ctx context.Context, l dedup.Lease, cause error) error {
	if err := checkKey("Lease.Key", l.Key); err != nil {
		return err
	}
	s.at.leave(l.Owner)
	v := values{":me": text(l.Owner), ":p": text(inProgress), ":zero": number(0)}
	e := releaseNoCauseExpr
	if cause != nil {
		e, v[":e"] = releaseExpr, text(failure.Text(cause))
	}
	_, err := s.write(ctx, s.update(l.Key, e, v)) // refused: lost or completed, and left as it is
	return s.explain("release", err)
}

// write sends an update until it has an answer. A refusal by the update's condition is not an error.
func (s *Store) write(ctx context.Context, in *dynamodb.UpdateItemInput) (*ddbtypes.ConditionalCheckFailedException, error) {
	err := s.retry(ctx, func(ctx context.Context, single func(*dynamodb.Options)) error {
		_, err := s.updateItem(ctx, in, single)
		return err
	})
	if refusal, refused := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); refused {
		return refusal, nil
	}
	return nil, err
}
