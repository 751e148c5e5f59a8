package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
)

// requestGrace is how long a request of an acquire goes on after its caller's context has ended. Most are answered in that
// time, and leave a connection for the release. With the time that dedup waits for that release it is less than the 250 ms
// at least in which the handlers of a Lambda function have to return.
const requestGrace = 40 * time.Millisecond

// For a batch that is under way when its caller leaves: how long Acquire waits for the answer and the release, and the limit
// of that release.
const (
	drainTime      = 200 * time.Millisecond
	releaseTimeout = 5 * time.Second
)

// Reasons for which an acquire ends without an answer from the record.
var (
	errExpired    = errors.New("the lease ended before the request was sent")
	errContended  = errors.New("the record was free, and every request was refused")
	errUnanswered = errors.New("the batch was not answered")
)

// Acquire implements [dedup.Store].
//
// If ctx ends while a request is under way, Acquire returns within 40 ms, with [dedup.ErrOutcomeUnknown]. If the request
// carries several claims, Acquire returns within 200 ms. The store still waits for the answer, and releases the lease that
// it grants.
func (s *Store) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	if ctx.Err() != nil {
		return dedup.Grant{}, fmt.Errorf("dynamostore: acquire: %w", context.Cause(ctx))
	}
	if err := checkClaim(c); err != nil {
		return dedup.Grant{}, err
	}
	m := s.clock.look()
	s.peers.enter(c.Owner, m.host.Add(c.Lease))
	a := s.newAcquisition(c, 0, m)
	insert := s.batchInsert(a, m)
	if insert != nil {
		select {
		case <-insert.batch.done:
			// Most acquires end here, on their caller's goroutine.
			if insert.result == written && s.clock.known() {
				if g, enough := s.granted(a, record{}); enough {
					return g, nil
				}
			}
		case <-ctx.Done():
		}
	}
	g, err := s.acquire(ctx, a, insert)
	if g.Verdict == dedup.VerdictGranted && ctx.Err() != nil {
		// The caller does not use the lease. What is unknown it releases without a long wait.
		g, err = dedup.Grant{}, gaveUp(true, cancelled(ctx, nil))
	}
	if g.Verdict != dedup.VerdictGranted {
		s.peers.leave(c.Owner)
	}
	return g, err
}

// mostReceived is the receive count above which an acquire is not batched.
const mostReceived = 1

// batchInsert adds the acquire to a batch as an INSERT. It returns nil if the acquire is sent singly.
//
// An acquire is batched if there are peers, and if the event is probably new. A message that was received before
// probably has a record, and an INSERT only finds that it exists. A claim without a receive count, such as one of
// [dedup.Do], counts as new: if that is wrong it costs one read unit, a fifth of what a write unit costs.
func (s *Store) batchInsert(a acquisition, m moment) *statement {
	if n := a.claim.ReceiveCount; n < 0 || n > mostReceived || s.batcher.off() || !s.peers.others(a.claim.Owner, m.host) {
		return nil
	}
	st := insertOf(a)
	if !s.batcher.add(st) {
		return nil
	}
	return st
}

// reply is the result of one request of an acquire, or of its statement in a batch.
type reply struct {
	kind replyKind
	item item  // granted: the item before, nil: there was none; refused: the record
	err  error // of the others
}

type replyKind int

const (
	replyGranted   replyKind = iota // written
	replyRefused                    // by the record, which says why
	replyUnwritten                  // nothing was written: again, with new values
	replyThrottled                  // the same, and the next one may be part of a batch
	replyUnknown                    // it may have been written, or may be later: again, with the same values
	replyNone                       // the acquire ends with the error
)

// acquire sends the acquire until an answer decides it. insert is the first attempt, if that is part of a batch.
//
// While an earlier request may have been written the values stay: the condition recognises that request by them. After an answer
// that nothing was written they are new.
func (s *Store) acquire(ctx context.Context, a acquisition, insert *statement) (dedup.Grant, error) {
	c := a.claim
	requests, cancel := outlasting(ctx, requestGrace)
	defer cancel()
	unknown := false  // an earlier request with a's values has no answer
	above := int64(0) // the fence of the record that refused the last values
	atOnce := true    // the next request does not wait
	last := reply{}
	for n := range maxAttempts {
		if n > 0 && (!atOnce && !pause(ctx, n) || ctx.Err() != nil) || n == 0 && insert == nil && ctx.Err() != nil {
			return dedup.Grant{}, gaveUp(unknown, cancelled(ctx, last.err))
		}
		if n > 0 && !unknown {
			m := s.clock.look()
			a = s.newAcquisition(c, above, m)
			if last.kind == replyThrottled {
				insert = s.batchInsert(a, m)
			}
		}
		atOnce, last, insert = false, s.ask(ctx, requests, n, a, insert, last.err), nil

		switch last.kind {
		case replyGranted:
			return s.grant(requests, a, last.item)
		case replyNone:
			return dedup.Grant{}, gaveUp(unknown, last.err)
		case replyUnknown:
			unknown = true
		case replyUnwritten, replyThrottled:
		case replyRefused:
			unknown = false
			g, free, err := s.refused(c, last.item)
			if !free {
				return g, err
			}
			above, atOnce, last.err = fenceOf(last.item), n == 0, errContended
		}
	}
	if last.kind != replyRefused {
		s.away.Store(true)
	}
	return dedup.Grant{}, gaveUp(unknown, s.explain("acquire", last.err))
}

// ask makes one attempt: by the statement, if there is one that decides, else by an update with the same values.
func (s *Store) ask(ctx, requests context.Context, n int, a acquisition, insert *statement, last error) reply {
	if insert != nil {
		if got, decided := s.askBatch(ctx, requests, a, insert, last); decided {
			return got
		}
	}
	// Before every send: an acquire that is sent after its lease's end would write a lease that has ended, and others would
	// see a crash.
	if !s.clock.ahead(a.until) {
		return reply{kind: replyNone, err: s.explain("acquire", because(errExpired, last))}
	}
	var out *dynamodb.UpdateItemOutput
	result, err := s.attempt(requests, n, func(ctx context.Context, options func(*dynamodb.Options)) (err error) {
		out, err = s.updateItem(ctx, s.acquireInput(a), options)
		return err
	})
	refusal, isRefusal := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err)
	switch {
	case result == unknown:
		return reply{kind: replyUnknown, err: err}
	case result == unwritten:
		return reply{kind: replyUnwritten, err: err}
	case err == nil:
		return reply{kind: replyGranted, item: out.Attributes}
	case isRefusal:
		return reply{kind: replyRefused, item: refusal.Item}
	}
	return reply{kind: replyNone, err: s.explain("acquire", err)}
}

// askBatch waits for the statement's result. decided is false if the update has to ask.
func (s *Store) askBatch(ctx, requests context.Context, a acquisition, insert *statement, last error) (_ reply, decided bool) {
	switch result := s.batcher.await(ctx, insert); result {
	case written:
		return reply{kind: replyGranted}, true
	case withdrawn:
		return reply{kind: replyNone, err: cancelled(ctx, last)}, true
	case underWay:
		s.releaseLater(ctx, a.claim, insert)
		return reply{kind: replyNone, err: cancelled(ctx, last)}, true
	case expired:
		return reply{kind: replyNone, err: s.explain("acquire", errExpired)}, true
	case transient:
		return reply{kind: replyThrottled, err: insert.why}, true
	case unanswered:
		// The update with the same values follows, which recognises them. A read would prove nothing: an INSERT that is
		// still under way has not made its record yet.
		return reply{kind: replyUnknown, err: errUnanswered}, true
	case refused:
		if found := s.existing(requests, a.claim.Key); found != nil {
			return reply{kind: replyRefused, item: found}, true
		}
	case sentSingly:
	}
	return reply{}, false
}

// outlasting returns a context that ends d after ctx.
func outlasting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// cancelled is the error of an acquire whose caller's context has ended.
func cancelled(ctx context.Context, last error) error {
	return fmt.Errorf("dynamostore: acquire: %w", because(context.Cause(ctx), last))
}

// gaveUp is the error of an acquire that ends without a lease. With an unknown outcome its caller releases the claim.
func gaveUp(unknownOutcome bool, err error) error {
	if unknownOutcome {
		return fmt.Errorf("%w: %w", dedup.ErrOutcomeUnknown, err)
	}
	return err
}

// releaseLater releases a claim whose batch is under way, when the batch is answered. The batch is not cut off, since others
// share it: only the store learns of its answer.
//
// It waits for the release for a short time. A Lambda function returns when its handlers have returned, and is frozen with
// the requests that are under way: a lease that is not released then looks like a crash.
func (s *Store) releaseLater(ctx context.Context, c dedup.Claim, st *statement) {
	released, end := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer end()
		<-st.batch.done
		if st.result != written && st.result != unanswered {
			return
		}
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		// The caller has its error. Where the release fails the key waits for the lease's end.
		_ = s.Release(own, dedup.Lease{Key: c.Key, Owner: c.Owner, Retention: c.Retention}, cancelled(ctx, nil))
	}()
	host.Wait(released, drainTime)
}

type item = map[string]ddbtypes.AttributeValue

// existing reads the record that refused an INSERT. It returns nil if the record is gone or cannot be read: then the
// update decides.
func (s *Store) existing(ctx context.Context, key string) item {
	var found item
	_, err := s.attempt(ctx, 0, func(ctx context.Context, options func(*dynamodb.Options)) (err error) {
		found, err = s.getItem(ctx, key, options)
		return err
	})
	if err != nil || len(found) == 0 {
		return nil
	}
	return found
}
