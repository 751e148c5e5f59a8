package dynamostore

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/operate"
)

// Keep implements [dedup.Keeper]. It needs the permission dynamodb:UpdateItem.
func (s *Store) Keep(ctx context.Context, seen dedup.Record, operator string, data []byte, d time.Duration) (dedup.Record, error) {
	owner, err := operate.NewKept("dynamostore", seen, operator, data, d)
	if err != nil {
		return dedup.Record{}, err
	}
	if err := checkKey("seen.Key", seen.Key); err != nil {
		return dedup.Record{}, err
	}
	if err := s.learnTime(ctx, seen.Key); err != nil {
		return dedup.Record{}, err
	}
	m := s.clock.look()
	now := s.clock.holder(m)
	r := record{status: completed, owner: owner, until: new(int64), fence: new(int64), expiration: new(int64), kept: dedup.Record{Result: dedup.Result{Data: data}}}
	*r.fence, *r.expiration = max(now, seen.Fence+1), (now+d.Milliseconds()+999)/1000
	v := values{
		":d": text(completed), ":op": text(owner), ":fence": number(*r.fence), ":zero": number(0), ":exp": number(*r.expiration), ":data": encodeData(data),
	}
	e := keepExpr
	if seen.Owner == "" {
		e, v[":nows"] = keepNewExpr, number(s.clock.taker(m)/1000)
	} else {
		v[":seen"], v[":seenfence"] = text(seen.Owner), number(seen.Fence)
	}
	_, refusal, err := s.write(ctx, s.updateInput(seen.Key, e, v))
	if err != nil {
		return dedup.Record{}, s.explain("keep", err)
	}
	if refusal != nil && len(refusal.Item) > 0 {
		switch found, err := decode(refusal.Item); {
		case err != nil:
			return dedup.Record{}, s.explain("keep", err)
		case found.owner == owner:
			refusal = nil // the answer to an earlier attempt was lost
		}
	}
	if refusal != nil {
		return dedup.Record{}, dedup.ErrChanged
	}
	return s.public(seen.Key, r), nil
}

// learnTime reads a record if no answer has brought DynamoDB's time yet.
func (s *Store) learnTime(ctx context.Context, key string) error {
	if s.clock.known() {
		return nil
	}
	if _, err := s.Inspect(ctx, key); err != nil && !errors.Is(err, dedup.ErrNotFound) {
		return err
	}
	return s.checkTime()
}
