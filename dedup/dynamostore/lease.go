package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/cut"
)

// Renew implements [dedup.Store].
func (s *Store) Renew(ctx context.Context, l dedup.Lease, d time.Duration) (dedup.Lease, error) {
	if err := checkKey("Lease.Key", l.Key); err != nil {
		return dedup.Lease{}, err
	}
	until := s.clock.holder(s.clock.look()) + d.Milliseconds()
	_, refusal, err := s.write(ctx, s.updateInput(l.Key, renewExpr, values{
		":me": text(l.Owner), ":p": inProgressValue, ":one": number(1),
		":until": number(until), ":exp": number(retainUntil(l.Fence, l.Retention, until)),
	}))
	if err != nil {
		return dedup.Lease{}, s.explain("renew", err)
	}
	if refusal != nil {
		// A record that cannot be read, or none, is not this owner's either.
		r, err := decode(refusal.Item)
		if err != nil || r.owner != l.Owner || r.status != inProgress || r.until == nil || *r.until <= until {
			return dedup.Lease{}, s.leaseLost(l, refusal.Item)
		}
		until, d = *r.until, unbounded // the lease is longer than asked for: it is never shortened
	}
	l.Until = s.clock.early(until, d)
	s.peers.enter(l.Owner, l.Until)
	return l, nil
}

// Complete implements [dedup.Store].
func (s *Store) Complete(ctx context.Context, l dedup.Lease, res dedup.Result) error {
	if err := checkKey("Lease.Key", l.Key); err != nil {
		return err
	}
	o := outcome{lease: l, result: res}
	decided, err := false, error(nil)
	if res.Data == nil { // which may be long
		decided, err = s.completeInBatch(ctx, o)
	}
	if !decided {
		err = s.completeSingly(ctx, o)
	}
	if err == nil || errors.Is(err, sqsonce.ErrLeaseLost) {
		s.peers.leave(l.Owner)
		return err
	}
	return s.explain("complete", err)
}

// completeSingly completes a record by an update. A record that a program without ownership checks has completed under this
// owner gets the end of its retention back: such a program sets its own, of an hour by default.
func (s *Store) completeSingly(ctx context.Context, o outcome) error {
	l, v := o.lease, values{}
	in := s.updateInput(l.Key, o.completion(isMine, v), v)
	in.ReturnValues = ddbtypes.ReturnValueAllOld
	before, refusal, err := s.write(ctx, in)
	switch {
	case err != nil:
		return err
	case refusal != nil:
		return s.leaseLost(l, refusal.Item)
	}
	r, err := decode(before)
	if err != nil || !r.completedByOthers(l) {
		return nil // it was this owner's, whatever else it holds
	}
	_, _, err = s.write(ctx, s.updateInput(l.Key, retainExpr, values{":me": text(l.Owner), ":d": completedValue, ":exp": number(r.retention(l))}))
	if err != nil {
		return err
	}
	return s.leaseLost(l, before)
}

// completeInBatch completes a record in a batch. decided is false if the update has to do it: there are no peers,
// the outcome is unknown and the update repeats the write, or the statement was refused: the update says why.
func (s *Store) completeInBatch(ctx context.Context, o outcome) (decided bool, err error) {
	for n := range maxAttempts {
		if s.batcher.off() || !s.peers.others(o.lease.Owner, s.clock.look().host) {
			break
		}
		if n > 0 && !pause(ctx, n) || ctx.Err() != nil {
			return true, because(context.Cause(ctx), err)
		}
		st := completeOf(o)
		if !s.batcher.add(st) {
			return false, nil
		}
		switch s.batcher.await(ctx, st) {
		case written:
			return true, nil
		case withdrawn:
			return true, context.Cause(ctx)
		case transient:
			err = st.why
		default:
			return false, nil
		}
	}
	return false, err
}

// Release implements [dedup.Store]. It stores the first 256 bytes of the cause's text.
//
// A lease without a fence belongs to an acquire with an unknown outcome, which DynamoDB may carry out later. If the record
// doesn't exist or is free, Release leaves a released record of this owner, which refuses that acquire.
func (s *Store) Release(ctx context.Context, l dedup.Lease, cause error) error {
	if err := checkKey("Lease.Key", l.Key); err != nil {
		return err
	}
	s.peers.leave(l.Owner)
	v := values{":me": text(l.Owner), ":p": inProgressValue, ":zero": number(0)}
	e := releaseNoCauseExpr
	if cause != nil {
		e, v[":e"] = releaseExpr, text(cut.Cause(cause))
	}
	var last item
	for range maxAttempts {
		_, refusal, err := s.write(ctx, s.updateInput(l.Key, e, v))
		if err != nil || refusal == nil {
			return s.explain("release", err)
		}
		r, err := decode(refusal.Item)
		if err == nil && r.owner == l.Owner && !r.completedByOthers(l) {
			return nil // it has completed the record
		}
		taken := r.owner == l.Owner || len(refusal.Item) > 0 && (err != nil || r.read(l.Owner, s.clock.taker(s.clock.look()), true) != free)
		last = refusal.Item
		if l.Fence > 0 || taken {
			break
		}
		_, refusal, err = s.write(ctx, s.acquireInput(s.releasedFromTheStart(l, valueOf(r.fence))))
		if err != nil || refusal == nil {
			return s.explain("release", err)
		}
		// In the meantime the acquire was carried out, or another owner came.
	}
	return s.leaseLost(l, last)
}

// releasedFromTheStart is an acquire that grants no lease.
func (s *Store) releasedFromTheStart(l dedup.Lease, above int64) acquisition {
	a := s.newAcquisition(dedup.Claim{
		Key: l.Key, Owner: l.Owner, Retention: max(l.Retention, retentionAfterLease), ReceiveCount: l.ReceiveCount, NoTakeover: true,
	}, above, s.clock.look())
	a.until = 0
	return a
}

// leaseLost is the error of a holder's write that the record refused. A record without an owner was written by a program
// that does not check ownership. A record that is gone may have been deleted by an operator.
func (s *Store) leaseLost(l dedup.Lease, found item) error {
	if r, err := decode(found); err == nil && (r.owner == "" || r.completedByOthers(l)) {
		s.meter.foreign.Add(1)
		return fmt.Errorf("%w: %w", sqsonce.ErrLeaseLost, dedup.ErrForeignWriter)
	}
	return sqsonce.ErrLeaseLost
}
