package outbox

import (
	"context"

	"github.com/sqsonce/sqsonce/internal/cut"
)

// parkRefused marks an event that SQS refuses for good. The group is read again after it: another relay may have published the
// event and deleted it, or an earlier mark may be there.
func (j *job) parkRefused(g *group, v visited, e Entry, refused error) visited {
	r := j.r
	policy := r.opts.OnRefused
	r.count(func(s *Stats) { s.Refused++ })
	v.stays = true
	if err := r.store.park(j.late, e, policy, cut.Cause(refused)); err != nil {
		v.trouble, v.err = common, err
		return v
	}
	if policy == OnRefusedSkip {
		r.opts.Logger.ErrorContext(j.ctx, "outbox: SQS refuses an event for good, its group goes on without it",
			keyEvent, e.ID, keyGroup, e.Group, keySequence, e.Seq, keyError, refused)
	} else {
		r.opts.Logger.ErrorContext(j.ctx, "outbox: SQS refuses an event, and its group waits until you unpark or discard the event",
			keyEvent, e.ID, keyGroup, e.Group, keySequence, e.Seq, keyError, refused)
	}
	if g.refused == e.ID { // the mark did not last
		v.trouble, v.err = passes, refused
		return v
	}
	g.refused = e.ID
	v.more = true
	return v
}

// Parked returns parked events, the oldest first, at most limit. Parked, Unpark and Discard are for operators.
func (r *Relay) Parked(ctx context.Context, limit int) ([]Entry, error) {
	if limit < 1 {
		return nil, badField("limit", "is %d, must be positive", limit)
	}
	return call(ctx, "list parked events", func(ctx context.Context) ([]Entry, error) { return r.store.Parked(ctx, limit) })
}

// Unpark lets the relay send a halted event again in its place, and a skipped one out of its order. It returns [ErrNotParked]
// or [ErrNotFound] if the event isn't parked, or is gone.
func (r *Relay) Unpark(ctx context.Context, e Entry) error {
	return r.decide(ctx, "unpark", e, r.store.Unpark)
}

// Discard deletes a parked event unsent. SQS may have accepted the event all the same, from a relay that died before it deleted
// the event. Call Discard if the event isn't needed, because the decision is the operator's. It returns [ErrNotParked] or
// [ErrNotFound] if the event isn't parked, or is gone.
func (r *Relay) Discard(ctx context.Context, e Entry) error {
	return r.decide(ctx, "discard", e, r.store.Discard)
}

func (r *Relay) decide(ctx context.Context, what string, e Entry, f func(context.Context, Entry) error) error {
	err := r.store.operate(ctx, what, func(ctx context.Context) error { return f(ctx, e) })
	if g, _ := r.enter(e.Group); g != nil {
		r.rest(g, false, nil)
		r.leave(g)
	}
	return err
}
