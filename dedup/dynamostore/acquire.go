package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/dedup"
)

// ownTimeout bounds what the store does after its caller has left.
const ownTimeout = 5 * time.Second

// drainTime is less than a Lambda function's handlers have to return in, 250 ms at least.
const drainTime = 200 * time.Millisecond

// Acquire implements [dedup.Store].
//
// A caller whose context ends while the request is out leaves within 200 ms. What becomes of the request is the store's
// business: it waits for the answer and releases what was granted, so that the key is not blocked for a lease that
// nobody knows of. Where that is done sooner, the caller leaves then.
func (s *Store) Acquire(ctx context.Context, c dedup.Claim) (dedup.Lease, error) {
	if ctx.Err() != nil {
		return dedup.Lease{}, fmt.Errorf("dynamostore: acquire: %w", context.Cause(ctx))
	}
	if err := checkClaim(c); err != nil {
		return dedup.Lease{}, err
	}
	m := s.clock.look()
	s.at.enter(c.Owner, m.host.Add(c.Lease))
	req := s.newAcquisition(c, 0, m)
	st := s.join(req, m)
	if st != nil {
		select {
		case v := <-st.answers:
			// Most acquires end here, on their caller's goroutine. A lease of which less is left has to be renewed: see start.
			if end, left := s.clock.end(req.until, c.Lease); v == written && left > c.Lease/2 {
				l := newLease(c, record{fence: &req.fence})
				l.Until = end
				return l, nil
			}
			st.answers <- v // for acquire
		case <-ctx.Done():
		}
	}
	return s.acquireApart(ctx, c, req, st)
}

// acquireApart acquires on a goroutine that outlives a caller who leaves.
func (s *Store) acquireApart(ctx context.Context, c dedup.Claim, req acquisition, st *statement) (dedup.Lease, error) {
	type answer struct {
		lease dedup.Lease
		err   error
	}
	// Not buffered: either the caller takes the answer or, having left, never will. There is no third case in which both
	// believe that the other has the lease.
	answers, ended := make(chan answer), make(chan struct{})
	go func() {
		defer close(ended)
		l, err := s.acquire(ctx, c, req, st)
		if err != nil {
			s.at.leave(c.Owner)
		}
		select {
		case answers <- answer{l, err}:
		case <-ctx.Done():
			if err == nil {
				s.abandon(ctx, l.Key, l.Owner)
			}
		}
	}()
	select {
	case a := <-answers:
		return a.lease, a.err
	case <-ctx.Done():
	}
	drain(ended)
	return dedup.Lease{}, fmt.Errorf("dynamostore: acquire: %w", context.Cause(ctx))
}

// drain waits a moment for what a caller leaves behind. A Lambda function that ends its handlers answers when they have
// returned, and is frozen with what is still under way: a lease that was granted in that moment would not be released
// before its end, and would look like a crash.
func drain(ended <-chan struct{}) {
	t := time.NewTimer(drainTime)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C:
	}
}

func checkClaim(c dedup.Claim) error {
	var errs []error
	if err := checkKey("Claim.Key", c.Key); err != nil {
		errs = append(errs, err)
	}
	if c.Owner == "" {
		errs = append(errs, fieldError("Claim.Owner", "is empty"))
	}
	if c.Lease <= 0 {
		errs = append(errs, fieldError("Claim.Lease", "is not positive"))
	}
	return errors.Join(errs...)
}

var (
	errLeaseTime = errors.New("the lease asked for was over before an answer came")
	errContended = errors.New("the record was free and could not be acquired")
)

// acquire sends until there is an answer, or goes on with st, which is in a shared call. The requests themselves do not
// end with ctx: one that was cut off would have an unknown outcome for no reason, and a release sent after it could
// overtake it.
func (s *Store) acquire(ctx context.Context, c dedup.Claim, req acquisition, st *statement) (dedup.Lease, error) {
	own := context.WithoutCancel(ctx)
	var (
		outstanding bool // an attempt with req's values may have been written, or may yet be
		fence       int64
		wait        bool
		err         error
	)
	together := st != nil
	for n := range maxAttempts {
		// Whoever has left without an answer still gets one, since a release alone might be overtaken: by an attempt that
		// was given up and is still under way. The lease that is granted here and then released leaves its owner in the
		// record, and refuses that attempt.
		pausing := ctx
		if outstanding {
			pausing = own
		}
		if st == nil && (wait && !pause(pausing, n) || pausing.Err() != nil) {
			err = because(context.Cause(ctx), err)
			break
		}
		wait = true
		// The values stay while an earlier attempt may have written them: the condition recognises that attempt by them.
		// After an answer that nothing was written, new ones.
		if n > 0 && !outstanding {
			m := s.clock.look()
			req = s.newAcquisition(c, fence, m)
			if together {
				st = s.join(req, m)
				together = st != nil
			}
		}
		var a answerTo
		if st != nil {
			a = s.inserted(ctx, c.Key, st)
			st, together = nil, a.outcome == unwritten && !a.single
		}
		if !a.sent {
			// An acquire that goes out late would take the key for a lease that is over, and others would call it a crash.
			if !s.clock.ahead(req.until) {
				err = because(errLeaseTime, err)
				break
			}
			a = s.put(own, n, req)
		}
		err = a.err
		switch a.outcome {
		case unknown:
			outstanding = true
			continue
		case unwritten:
			continue
		}
		if err == nil && a.found == nil {
			return s.granted(own, c, req, a.old)
		}
		if a.found == nil {
			break
		}
		outstanding = false
		r, decodeErr := decode(a.found)
		if decodeErr != nil {
			return dedup.Lease{}, s.explain("acquire", decodeErr)
		}
		l, above, again, refusedErr := s.refused(c, r)
		if !again {
			return l, refusedErr
		}
		fence, wait, err = above, n > 0, errContended
	}
	if outstanding {
		s.abandon(ctx, c.Key, c.Owner)
	}
	return dedup.Lease{}, s.explain("acquire", err)
}

type item = map[string]ddbtypes.AttributeValue

// answerTo is what one attempt at an acquire brought.
type answerTo struct {
	outcome outcome
	err     error
	old     item // accepted: the record as it was, nil for none
	found   item // refused: the record as it is
	sent    bool // false: there was no attempt
	single  bool // the next attempt goes by itself
}

// put sends the acquire as the conditional update that decides every case.
func (s *Store) put(ctx context.Context, n int, req acquisition) answerTo {
	a := answerTo{sent: true}
	var out *dynamodb.UpdateItemOutput
	a.outcome, a.err = s.attempt(ctx, n, func(ctx context.Context, single func(*dynamodb.Options)) (err error) {
		out, err = s.updateItem(ctx, s.putOf(req), single)
		return err
	})
	if a.err == nil {
		a.old = out.Attributes
	}
	if refusal, isRefusal := errors.AsType[*ddbtypes.ConditionalCheckFailedException](a.err); isRefusal {
		// Not nil: an implementation that hands out no item has its refusal called unreadable.
		a.found, a.err = item{}, nil
		if refusal.Item != nil {
			a.found = refusal.Item
		}
	}
	return a
}

// abandon releases a lease that nobody will use, on a context of its own. Where this fails too, the key waits for the
// lease's end.
func (s *Store) abandon(ctx context.Context, key, owner string) {
	s.at.leave(owner)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownTimeout)
	defer cancel()
	// Nobody is left to tell: the acquire's own error has been returned, or its caller has left.
	_, _ = s.write(ctx, s.update(key, abandonExpr, values{":me": text(owner), ":p": text(inProgress), ":zero": number(0)}))
}
