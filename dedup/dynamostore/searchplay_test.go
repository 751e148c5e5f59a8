package dynamostore

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
)

// moves are what can happen next.
func (m *machine) moves(s *state) []move {
	var all []move
	call := func(kind string, who int, transits ...transit) {
		all = append(all, move{kind, who, arrives})
		for _, f := range transits {
			if s.lost > 0 {
				all = append(all, move{kind, who, f})
			}
		}
	}
	for who := range m.scope.players {
		o := &s.owners[who]
		acquirer := who == players-1 // only acquires
		switch {
		case o.phase == fresh:
			call("acquire", who, heldBack)
		case o.phase == gaveUpAcquire:
			call("release", who)
		case acquirer:
		case o.phase == holding:
			if o.renewed < m.scope.renews {
				call("renew", who, heldBack)
			}
			if m.scope.commits {
				call("commit", who, heldBack, answerLost)
			} else {
				call("complete", who, heldBack)
			}
			call("release", who, heldBack)
		case o.phase == unsure && m.scope.commits:
			call("release", who) // its handler's writes may or may not be there: the record decides
		case o.phase == unsure:
			call("complete", who)
		}
	}
	all = append(all, m.operatorMoves(s)...)
	if s.late > 0 {
		seen := map[string]bool{} // the same packet sent twice arrives once
		for i := range s.network {
			if key := s.network[i].key(); !seen[key] {
				seen[key] = true
				all = append(all, move{kind: "late", who: i})
			}
		}
	}
	if s.steps > 0 {
		all = append(all, move{kind: "time passes"})
	}
	if m.scope.remove && !s.removed && s.facts.owner >= 0 {
		all = append(all, move{kind: "the operator deletes"})
	}
	if m.scope.remove && !s.swept && s.facts.owner >= 0 {
		all = append(all, move{kind: "retention ends and TTL deletes"})
	}
	return all
}

// play makes a move, and returns an error for a rule that it breaks.
func (m *machine) play(at *state, mv move) (*state, error) {
	s := at.clone()
	s.path[len(s.path)-1] = mv.String()
	if mv.kind == "time passes" {
		s.now = s.now.Add(searchStep)
		s.steps--
		return s, nil
	}
	m.restore(at)
	if mv.transit != arrives {
		s.lost--
	}
	var err error
	switch mv.kind {
	case "late":
		s.late--
		err = m.arrive(s, at.network[mv.who])
	case "the operator deletes":
		s.removed = true
		err = m.delete(s)
	case "retention ends and TTL deletes":
		s.swept = true
		err = m.expire(s)
	case "acquire":
		err = m.acquire(s, mv)
	case "renew":
		err = m.renew(s, mv)
	case "complete":
		err = m.complete(s, mv)
	case "commit":
		err = m.commit(s, mv)
	case "release":
		err = m.release(s, mv)
	case "look":
		err = m.look(s, mv)
	case "reopen":
		err = m.reopen(s, mv)
	}
	if err == nil {
		m.save(s)
		err = s.consistent()
	}
	return s, err
}

func (m *machine) acquire(s *state, mv move) error {
	var l dedup.Lease
	err := m.act(mv, func(ctx context.Context, store *Store) (err error) {
		l, err = granted.Lease(store.Acquire(ctx, m.claim(mv.who)))
		return err
	})
	m.mistaken(err)
	o := &s.owners[mv.who]
	if errors.Is(err, dedup.ErrOutcomeUnknown) {
		c := m.claim(mv.who)
		o.phase, o.lease = gaveUpAcquire, dedup.Lease{Key: c.Key, Owner: c.Owner, Retention: c.Retention}
		return nil
	}
	if err != nil {
		o.phase = ended
		if isCompleted(err) && !s.facts.attempted {
			return errors.New("a delivery got the answer that the event was completed, and nobody tried")
		}
		return nil
	}
	o.phase, o.lease, o.until = holding, l, l.Until.Add(-m.scope.skew[mv.who])
	return s.granted(mv.who, l.Fence)
}

// granted checks a grant against what was true before it.
func (s *state) granted(who int, fence int64) error {
	for i := range s.owners {
		if o := &s.owners[i]; i != who && o.live(s.now) {
			return fmt.Errorf("%c was granted the lease, and the lease of %c is live", 'A'+who, 'A'+i)
		}
	}
	f := &s.facts
	if f.completed {
		return errors.New("a completed record was reopened")
	}
	if fence <= f.fence {
		return fmt.Errorf("fence %d of %c is not above %d", fence, 'A'+who, f.fence)
	}
	*f = facts{owner: who, fence: fence, attempted: f.attempted, effects: f.effects, before: f.before}
	return nil
}

// owns reports whether the owner has the record, and may renew and complete it.
func (f *facts) owns(who int) bool { return f.owner == who && !f.completed && !f.released }

// held checks the answer to a call for which the record must be the owner's.
func (s *state) held(what string, who int, err error) error {
	switch f := &s.facts; {
	case err == nil && f.owner != who:
		return fmt.Errorf("%c may %s, and is not the owner any more", 'A'+who, what)
	case errors.Is(err, sqsonce.ErrLeaseLost) && f.owns(who):
		return fmt.Errorf("%c may not %s, and is the owner", 'A'+who, what)
	}
	return nil
}

func (m *machine) renew(s *state, mv move) error {
	o := &s.owners[mv.who]
	var l dedup.Lease
	err := m.act(mv, func(ctx context.Context, store *Store) (err error) {
		l, err = store.Renew(ctx, o.lease, searchLease)
		return err
	})
	m.mistaken(err)
	o.renewed++
	if bad := s.held("renew", mv.who, err); bad != nil || mv.transit != arrives {
		return bad
	}
	if err != nil {
		o.phase = ended
		return nil
	}
	if !s.facts.owns(mv.who) {
		return errors.New("a record without a lease was renewed")
	}
	o.lease, o.until = l, l.Until.Add(-m.scope.skew[mv.who])
	return nil
}

func (m *machine) complete(s *state, mv move) error {
	o := &s.owners[mv.who]
	err := m.act(mv, func(ctx context.Context, store *Store) error { return store.Complete(ctx, o.lease, dedup.Result{}) })
	m.mistaken(err)
	s.facts.attempted = s.facts.attempted || s.facts.owner == mv.who
	o.phase = ended
	if mv.transit == heldBack {
		o.phase = unsure
		return nil
	}
	if err == nil && s.facts.owner == mv.who {
		s.facts.completed, s.facts.confirmed = true, true
	}
	return s.held("complete", mv.who, err)
}

func (m *machine) commit(s *state, mv move) error {
	o := &s.owners[mv.who]
	before := s.facts
	err := m.act(mv, func(ctx context.Context, store *Store) error {
		return store.commit(ctx, o.lease, dedup.Result{}, effect())
	})
	m.mistaken(err)
	s.facts.attempted = s.facts.attempted || s.facts.owner == mv.who
	o.phase = unsure
	switch {
	case mv.transit == heldBack:
		return nil
	case mv.transit == answerLost:
		return s.committed(mv.who, &before, m.sent[len(m.sent)-1].granted)
	case err == nil:
		o.phase = ended
		s.facts.confirmed = true
	}
	if bad := s.held("commit", mv.who, err); bad != nil {
		return bad
	}
	return s.committed(mv.who, &before, err == nil)
}

// committed checks a transaction, and counts its effect where it was granted.
func (s *state) committed(who int, before *facts, granted bool) error {
	if !granted {
		return nil
	}
	if !before.owns(who) {
		return fmt.Errorf("%c committed, and the record was not %c's", 'A'+who, 'A'+who)
	}
	s.facts.completed = true
	s.facts.effects++
	return nil
}

func (m *machine) release(s *state, mv move) error {
	o := &s.owners[mv.who]
	err := m.act(mv, func(ctx context.Context, store *Store) error {
		return store.Release(ctx, o.lease, errors.New("failed"))
	})
	o.phase = ended
	if mv.transit == heldBack {
		return nil
	}
	switch unknown := o.lease.Fence == 0; {
	case err != nil && !errors.Is(err, sqsonce.ErrLeaseLost):
		return fmt.Errorf("a release failed: %w", err)
	case err != nil && s.facts.owner == mv.who:
		return fmt.Errorf("%c may not release, and is the owner", 'A'+mv.who)
	case err == nil && s.facts.owner != mv.who && !unknown:
		return fmt.Errorf("%c may release, and is not the owner any more", 'A'+mv.who)
	case err == nil && s.facts.owner != mv.who:
		if err := s.granted(mv.who, m.fence()); err != nil {
			return err
		}
	}
	if s.facts.completed && m.item(testTable) != s.items[testTable] {
		return errors.New("a release changed a completed record")
	}
	if s.facts.owner == mv.who && !s.facts.completed {
		s.facts.released = true
	}
	return nil
}

// fence is that of the record.
func (m *machine) fence() int64 {
	var item struct {
		Fence struct {
			N int64 `json:",string"`
		} `json:"fence"`
	}
	mustDecode(m.item(testTable), &item)
	return item.Fence.N
}
