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
