package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// arrive delivers a packet late. A packet that had its effect must not have another one.
func (m *machine) arrive(s *state, p sent) error {
	before := s.facts
	if p.kind() == "commit" {
		m.forget()
		m.restore(s)
	}
	granted := p.send(m.srv) == "granted"
	after := &state{items: map[string]string{}}
	m.save(after)
	changed := after.items[testTable] != s.items[testTable]
	if changed && p.granted && p.kind() != "acquire" {
		return fmt.Errorf("a second copy of %c's %s changed the record", 'A'+p.who, p.kind())
	}
	if !granted {
		return nil
	}
	switch f := &s.facts; p.kind() {
	case "acquire":
		if !changed {
			return nil // its own lease, as it is
		}
		if p.granted && before.owner >= 0 {
			return fmt.Errorf("a second copy of %c's acquire changed the record", 'A'+p.who)
		}
		if before.owner == p.who && before.released {
			return fmt.Errorf("%c's acquire is carried out after its release", 'A'+p.who)
		}
		// A ghost lease: no handler runs, and the key is blocked for one lease.
		return s.granted(p.who, p.number(":fence"))
	case "renew":
		if changed && !before.owns(p.who) {
			return fmt.Errorf("%c's late renewal changed a record that is not %c's", 'A'+p.who, 'A'+p.who)
		}
	case "complete":
		if before.owner != p.who {
			return fmt.Errorf("%c's late completion changed a record that is not %c's", 'A'+p.who, 'A'+p.who)
		}
		f.completed = true
	case "release":
		// Its own released record may get the error of the release.
		if changed && (before.owner != p.who || before.completed) {
			return fmt.Errorf("%c's late release changed a record that is not %c's", 'A'+p.who, 'A'+p.who)
		}
		f.released = f.released || changed
	case "reopen":
		return s.reopened(p, m.scope.force)
	case "commit":
		if p.granted {
			return errors.New("a second copy of a transaction was committed")
		}
		return s.committed(p.who, &before, true)
	}
	return nil
}

// delete is an operator's, which does not delete live leases.
func (m *machine) delete(s *state) error {
	m.who, m.transit = players-1, arrives
	err := m.probe.Delete(context.Background(), testKey)
	m.mistaken(err)
	if len(m.srv.Items(testTable)) > 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the operator's delete failed and deleted: %w", err)
	}
	return s.gone()
}

// expire lets the retention end, and TTL delete. No packet is that late: signatures are valid for minutes.
func (m *machine) expire(s *state) error {
	m.sweep()
	s.now, s.network = m.now, nil
	if len(m.srv.Items(testTable)) > 0 {
		return errors.New("a record was not deleted after its retention")
	}
	return s.gone()
}

func (s *state) gone() error {
	for i := range s.owners {
		if o := &s.owners[i]; o.live(s.now) {
			if !s.facts.completed {
				return fmt.Errorf("the record was deleted under %c, whose lease is live", 'A'+i)
			}
			o.phase = ended // the event is completed, also where the owner got no answer
		}
	}
	// A new record does not know the acquires of the old one.
	for i := range s.network {
		s.network[i].granted = s.network[i].granted && s.network[i].kind() != "acquire"
	}
	s.facts = facts{owner: -1, before: s.facts.before + s.facts.effects}
	return nil
}

// consistent compares the stored effects with the expected ones.
func (s *state) consistent() error {
	if n := effects(s.items[effectsTable]) - s.facts.before; n != s.facts.effects || n > 1 {
		return fmt.Errorf("%d effects, want %d, and never more than one", n, s.facts.effects)
	}
	return nil
}

// operator looks at the record and reopens it as it was seen, perhaps much later.
type operator struct {
	phase operatorPhase
	looks int
	seen  dedup.Record
}

type operatorPhase int

const (
	away   operatorPhase = iota // has not looked, or does not know whether it has reopened the record
	looked                      // is about to reopen the record
	content
)

// someOperator is an operator's owner, whose random part is the same for the search.
var someOperator = regexp.MustCompile(`operator/(\d)/[A-Z0-9]+`)

func withoutRandom(body string) string { return someOperator.ReplaceAllString(body, "operator/$1/X") }

func (o *operator) key() string {
	return fmt.Sprintf("|%d %d %s %d %t %d", o.phase, o.looks, o.seen.Owner, o.seen.Fence, o.seen.Completed, o.seen.ExpiresAt.Unix())
}

// operatorMoves are what operators can do next. They are numbered after the owners.
func (m *machine) operatorMoves(s *state) (all []move) {
	for i := range m.scope.operators {
		who := players + i
		switch o := &s.operators[i]; {
		case o.phase == away && o.looks <= m.scope.lost && s.facts.owner >= 0:
			all = append(all, move{"look", who, arrives})
		case o.phase == looked:
			all = append(all, move{"reopen", who, arrives})
			if s.lost > 0 {
				all = append(all, move{"reopen", who, heldBack}, move{"reopen", who, answerLost})
			}
		}
	}
	return all
}

func (m *machine) look(s *state, mv move) error {
	o := &s.operators[mv.who-players]
	o.looks++
	o.phase = looked
	return m.act(mv, func(ctx context.Context, store *Store) (err error) {
		o.seen, err = store.Inspect(ctx, testKey)
		o.seen.Until = time.Time{} // of no use to Reopen
		return err
	})
}

func (m *machine) reopen(s *state, mv move) error {
	o := &s.operators[mv.who-players]
	err := m.act(mv, func(ctx context.Context, store *Store) error {
		return store.Reopen(ctx, o.seen, "note", func(ro *dedup.ReopenOptions) {
			ro.Name, ro.Retention, ro.Force = fmt.Sprint(mv.who-players), searchRetention, m.scope.force
		})
	})
	m.mistaken(err)
	o.phase = away
	if mv.transit == heldBack {
		return nil
	}
	packet := m.sent[len(m.sent)-1]
	if mv.transit == answerLost && !packet.granted {
		return nil
	}
	asSeen := s.facts.asSeen(packet)
	switch {
	case err == nil, mv.transit == answerLost:
		if mv.transit == arrives {
			o.phase = content
		}
		return s.reopened(packet, m.scope.force)
	case errors.Is(err, dedup.ErrChanged) && asSeen:
		return fmt.Errorf("%c may not reopen the record, and it is as it was seen", 'A'+mv.who)
	case errors.Is(err, dedup.ErrChanged):
		return nil
	case errors.Is(err, sqsonce.ErrInProgress) && asSeen && !s.facts.completed && !s.facts.released && !m.scope.force:
		return nil
	}
	return fmt.Errorf("a reopen failed: %w", err)
}

// asSeen reports whether the record is the one that was seen. A fence is of one owner only.
func (f *facts) asSeen(p sent) bool {
	status, _ := p.values[":seenstatus"]["S"].(string)
	return f.owner >= 0 && f.fence == p.number(":seenfence") && f.completed == (status == completed)
}

// reopened checks a reopen that was carried out against what was true before it. What an owner completed before counts no
// more: the event may have its effect again.
func (s *state) reopened(p sent, forced bool) error {
	f := &s.facts
	if !f.asSeen(p) {
		return fmt.Errorf("%c reopened a record that is not as it was seen", 'A'+p.who)
	}
	for i := range s.owners {
		o := &s.owners[i]
		if o.live(s.now) && !f.completed && !forced {
			return fmt.Errorf("%c reopened the record under %c, whose lease is live", 'A'+p.who, 'A'+i)
		}
		o.until = s.now // it learns that with its next write
	}
	fence := p.number(":fence")
	if fence <= f.fence {
		return fmt.Errorf("fence %d of %c is not above %d", fence, 'A'+p.who, f.fence)
	}
	*f = facts{owner: p.who, fence: fence, released: true, before: f.before + f.effects}
	return nil
}
