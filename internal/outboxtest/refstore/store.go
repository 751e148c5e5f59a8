// Package refstore is an outbox in memory: the reference that the conformance suite and the relay are tested with. A transaction
// that is decided may become visible event by event, as in DynamoDB.
package refstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// Store is an outbox.Store. With a defect it breaks one rule.
type Store struct {
	*Table
	Defect string
	owner  int64
	probes int64
}

var _ outbox.Store = (*Store)(nil)

func (s *Store) has(defect string) bool { return s.Defect == defect }

func (s *Store) begin(ctx context.Context, op string) error {
	if s.Before != nil {
		if err := s.Before(op); err != nil {
			return err
		}
	}
	if ctx.Err() != nil && !s.has("works for a cancelled caller") {
		return context.Cause(ctx)
	}
	return nil
}

func (s *Store) done(op string) error {
	if s.Before == nil {
		return nil
	}
	return s.Before(op + " done")
}

// Groups has the names' order.
func (s *Store) Groups(ctx context.Context, after string, limit int) (found []outbox.Group, next string, err error) {
	if err := s.begin(ctx, "Groups"); err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		if name < after || name == after && !s.has("begins with the cursor") {
			continue
		}
		g := outbox.Group{Name: name}
		for _, r := range s.rows(name) {
			if !r.visible {
				continue
			}
			if g.Last == 0 {
				g.Age, g.Parked = now.Sub(r.created), r.Parked
			}
			g.Last = r.Seq
		}
		switch {
		case g.Last == 0 && !s.has("names groups without events"):
			continue
		case g.Parked != 0 && s.has("does not find parked events"):
			continue
		case s.has("finds no age"):
			g.Age = 0
		case s.has("finds no mark"):
			g.Parked = 0
		case s.has("finds a Last that was never there"):
			g.Last++
		}
		if len(found) == limit && !s.has("ignores the limit of Groups") {
			next = found[limit-1].Name
			if s.has("ends after a page") {
				next = ""
			}
			break
		}
		found = append(found, g)
		if len(s.groups[name]) > 100 && s.has("finds a large group twice") && len(found) < limit {
			found = append(found, g)
		}
	}
	if s.has("finds a group that is not there") && after == "" {
		found = append(found, outbox.Group{Name: "none"})
	}
	return found, next, nil
}

// Claim marks the group's first row, as an UPDATE in SQL does: the claim goes with it.
func (s *Store) Claim(ctx context.Context, groups []string, lease time.Duration) (claimed []string, err error) {
	if err := s.begin(ctx, "Claim"); err != nil {
		return nil, err
	}
	if len(groups) == 0 && s.has("refuses a call without groups") {
		return nil, errors.New("refstore: no group")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, name := range groups {
		rows := s.rows(name)
		c, ok := s.claims[name]
		if ok && now.Before(c.until) && len(rows) > 0 && rows[0].Seq == c.first && !s.has("claims what is claimed for nobody") {
			if s.has("claims for ever") {
				c.until = c.until.Add(time.Hour)
				s.claims[name] = c
			}
			continue
		}
		if len(rows) > 0 && !s.has("claims nothing") {
			s.claims[name] = claim{owner: s.owner, first: rows[0].Seq, until: now.Add(lease)}
		}
		if s.has("returns groups that were not asked for") {
			claimed = append(claimed, name+"x")
		}
		claimed = append(claimed, name)
	}
	return claimed, nil
}

// Unclaim ends own claims.
func (s *Store) Unclaim(ctx context.Context, groups []string) error {
	if err := s.begin(ctx, "Unclaim"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range groups {
		if c := s.claims[name]; (c.owner == s.owner || s.has("ends the claims of others")) && !s.has("keeps claims") {
			delete(s.claims, name)
		}
	}
	return nil
}

// Read knows what is decided, and so needs no request for it.
func (s *Store) Read(ctx context.Context, g outbox.Group, k outbox.Known, limit int) (es []outbox.Entry, err error) {
	if err := s.begin(ctx, "Read"); err != nil {
		return nil, err
	}
	es, err = s.read(g, k, limit)
	if failed := s.done("Read"); failed != nil {
		return nil, failed
	}
	return es, err
}

func (s *Store) read(g outbox.Group, k outbox.Known, limit int) (es []outbox.Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	others, skipped := 0, 0
	rows := s.rows(g.Name)
	if len(rows) == 0 && s.has("reads another group") {
		rows = s.rows("other")
	}
	if s.has("reads backwards") {
		slices.Reverse(rows)
	}
	for i, r := range rows {
		switch {
		case i == 0 && r.Seq > 1 && k.Confirmed < r.Seq-1:
			s.probes++
		case s.has("begins behind what was confirmed") && r.Seq <= k.Confirmed:
			continue
		}
		if !r.visible {
			if s.has("reads past a gap") {
				continue
			}
			if s.has("takes a gap for the end") {
				return es, nil
			}
			return es, outbox.ErrUnsettled
		}
		if r.Parked == outbox.OnRefusedSkip && s.has("leaves out skipped events") || r.Parked == outbox.OnRefusedHalt && s.has("leaves out halted events") {
			continue
		}
		if r.broken && !s.has("leaves out broken events") {
			if s.has("returns nothing before a broken event") {
				es = nil
			}
			return es, &outbox.GroupError{Group: g.Name, Seq: r.Seq, Err: outbox.ErrBroken}
		}
		if r.broken {
			continue
		}
		e := r.Entry
		e.Age = time.Since(r.created)
		switch {
		case s.has("forgets a skipped mark") && e.Parked == outbox.OnRefusedSkip:
			e.Parked = 0
		case s.has("forgets the reason"):
			e.Reason = ""
		case s.has("forgets the source"):
			e.Source = ""
		case s.has("forgets attributes"):
			e.Attributes = nil
		case s.has("forgets the age"):
			e.Age = 0
		case s.has("cuts bodies"):
			e.Body = strings.ToValidUTF8(e.Body[:min(len(e.Body), 1<<16)], "")
		case s.has("folds groups"):
			e.Group = strings.ToLower(e.Group)
		}
		counts := e.Parked != outbox.OnRefusedSkip || s.has("counts skipped events")
		switch {
		case !counts && skipped == outbox.MaxSkipped && !s.has("returns any number of skipped events"):
			if s.has("does not say that there are many skipped events") {
				return es, nil
			}
			return es, outbox.ErrManySkipped
		case !counts:
			skipped++
		case others == limit && !s.has("ignores the limit of Read"):
			return es, nil
		default:
			others++
		}
		es = append(es, e)
	}
	return es, nil
}

// Delete looks at the event's identity.
func (s *Store) Delete(ctx context.Context, es []outbox.Entry) ([]outbox.Entry, error) {
	if err := s.begin(ctx, "Delete"); err != nil {
		return es, err
	}
	s.delete(es)
	if err := s.done("Delete"); err != nil {
		return es, err
	}
	return nil, nil
}

func (s *Store) delete(es []outbox.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(es) == 0 && s.has("deletes all for want of names") {
		clear(s.groups)
	}
	for i, e := range es {
		switch r := s.groups[e.Group][e.Seq]; {
		case s.has("deletes by range"):
			for seq := range s.groups[e.Group] {
				if seq <= e.Seq {
					delete(s.groups[e.Group], seq)
				}
			}
		case s.has("deletes the first group only") && e.Group != es[0].Group, s.has("deletes 25 at most") && i >= 25, r == nil:
		case r.ID == e.ID || s.has("deletes another event of the same Seq"):
			delete(s.groups[e.Group], e.Seq)
		}
	}
}

// Probes counts reads that a store with a database would have asked once more for.
func (s *Store) Probes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.probes
}
