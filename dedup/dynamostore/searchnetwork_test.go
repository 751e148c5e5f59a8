package dynamostore

import (
	"context"
	"errors"
	"fmt"
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
