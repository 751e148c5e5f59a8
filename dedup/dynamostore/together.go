package dynamostore

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// errThrottled stands for a statement's own error, of which only the code is known.
var errThrottled = errors.New("the statement was throttled, or met a transaction")

// join has an acquire sent as an INSERT in a shared call, or returns nil where it goes by itself.
//
// It is shared where there may be others to share it with, and the event is likely to be new. A message that comes for the
// second time has a record in all likelihood, which an INSERT would only find. A call without a receive count, such as
// that of [dedup.Do], counts as new: being wrong about it costs one read unit, a fifth of what a write costs.
func (s *Store) join(a acquisition, m moment) *statement {
	if a.claim.Attempt > 1 || s.group.off.Load() || !s.at.others(a.claim.Owner, m.host) {
		return nil
	}
	st := s.insertion(a)
	if !s.group.join(st) {
		return nil
	}
	return st
}

// inserted waits for what became of an acquire in a shared call.
//
// Its unknown outcome is left to the conditional update with the same values, which recognises them, and never settled
// by a read: one that finds no record proves nothing about an INSERT that is still under way.
func (s *Store) inserted(ctx context.Context, key string, st *statement) answerTo {
	switch s.group.await(ctx, st) {
	case written:
		return answerTo{sent: true, outcome: answered}
	case left:
		return answerTo{sent: true, outcome: answered, err: context.Cause(ctx)}
	case late:
		return answerTo{sent: true, outcome: answered, err: errLeaseTime}
	case transient:
		return answerTo{sent: true, outcome: unwritten, err: errThrottled}
	case inDoubt:
		return answerTo{sent: true, outcome: unknown, err: errNoAnswer}
	case refused:
		return s.existing(ctx, key)
	default:
		return answerTo{outcome: unwritten, single: true}
	}
}

var errNoAnswer = errors.New("the shared call was not answered")

// existing reads the record that refused an INSERT; it is judged as the item of a refused update is. Where it cannot be
// read, or is gone, the update decides.
func (s *Store) existing(ctx context.Context, key string) answerTo {
	var found item
	_, err := s.attempt(context.WithoutCancel(ctx), 0, func(ctx context.Context, single func(*dynamodb.Options)) (err error) {
		found, err = s.getItem(ctx, key, single)
		return err
	})
	if err != nil || len(found) == 0 {
		return answerTo{outcome: unwritten, single: true}
	}
	return answerTo{sent: true, outcome: answered, found: found, single: true}
}

// completeTogether completes a record in a shared call. settled is false where the update has to do it: there is nobody
// to share a call with, the outcome is unknown (the update repeats it), or the statement was refused by no fault of the
// record's.
func (s *Store) completeTogether(ctx context.Context, l dedup.Lease) (err error, settled bool) {
	for n := 0; n < maxAttempts && !s.group.off.Load() && s.at.others(l.Owner, s.clock.look().host); n++ {
		if n > 0 && !pause(ctx, n) || ctx.Err() != nil {
			return because(context.Cause(ctx), err), true
		}
		st := s.completionOf(l.Key, l.Owner)
		if !s.group.join(st) {
			return nil, false
		}
		switch s.group.await(ctx, st) {
		case written:
			return nil, true
		case refused:
			return sqsonce.ErrLeaseLost, true
		case left:
			return context.Cause(ctx), true
		case transient:
			err = errThrottled
		default:
			return nil, false
		}
	}
	return err, false
}
