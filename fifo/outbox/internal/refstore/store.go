// Package refstore is an outbox in memory: the reference that the conformance suite and the relay are tested with. A transaction
// that is decided may become visible event by event, as in DynamoDB.
package refstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// Source is the namespace of the events.
const Source = "orders"

// Table is what several stores, as those of several processes, work on.
type Table struct {
	mu       sync.Mutex
	groups   map[string]map[int64]*row
	versions map[string]int64
	claims   map[string]claim
	serial   int64 // of claims' owners, and of calls

	// Before is called before each call of a store, without a lock, and its error is the call's; after Read and Delete it is
	// called with "Read done" and "Delete done", and its error takes the place of the answer. nil: nothing.
	Before func(op string) error
}

type row struct {
	outbox.Entry
	created time.Time
	visible bool // a decided transaction has reached it
	broken  bool
}

type claim struct {
	owner int64
	first int64 // the row that carries it
	until time.Time
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{groups: make(map[string]map[int64]*row), versions: make(map[string]int64), claims: make(map[string]claim)}
}

// Store is an outbox.Store. With a defect it breaks one rule.
type Store struct {
	*Table
	Defect string
	owner  int64
	probes int64
}

var _ outbox.Store = (*Store)(nil)

// Open returns a store of the table.
func (t *Table) Open() *Store {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.serial++
	return &Store{Table: t, owner: t.serial}
}

func (s *Store) has(defect string) bool { return s.Defect == defect }

// Source is that of the events.
func (s *Store) Source() string { return Source }

// Commit commits a transaction with the events.
func (t *Table) Commit(es ...fifo.Event) { t.Half(es...)() }

// Half decides a transaction that has reached its last event alone; finish lets it reach the others.
func (t *Table) Half(es ...fifo.Event) (finish func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rows []*row
	for _, e := range es {
		if t.groups[e.Group] == nil {
			t.groups[e.Group] = make(map[int64]*row)
		}
		t.versions[e.Group]++
		r := &row{Entry: outbox.Entry{Event: e, Source: Source, Seq: t.versions[e.Group]}, created: time.Now()}
		t.groups[e.Group][r.Seq] = r
		rows = append(rows, r)
	}
	if len(rows) > 0 {
		rows[len(rows)-1].visible = true
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, r := range rows {
			r.visible = true
		}
	}
}

// Change changes an event that is there: as a writer of another version, or with another namespace, would have left it.
func (t *Table) Change(group string, seq int64, f func(e *outbox.Entry) (broken bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.groups[group][seq]
	r.broken = f(&r.Entry)
}

// Events returns the events of a group that are there, in their order.
func (t *Table) Events(group string) (es []outbox.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.rows(group) {
		es = append(es, r.Entry)
	}
	return es
}

// rows returns all rows of a group in their order, those that are not visible too. The caller holds the lock.
func (t *Table) rows(group string) []*row {
	return slices.SortedFunc(maps.Values(t.groups[group]), func(a, b *row) int { return cmp.Compare(a.Seq, b.Seq) })
}

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
	}
	return found, next, nil
}

// Claim marks the group's first row, as an UPDATE in SQL does: the claim goes with it.
func (s *Store) Claim(ctx context.Context, groups []string, lease time.Duration) (claimed []string, err error) {
	if err := s.begin(ctx, "Claim"); err != nil {
		return nil, err
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
		if r.Parked == outbox.Skip && s.has("leaves out skipped events") || r.Parked == outbox.Halt && s.has("leaves out halted events") {
			continue
		}
		if r.broken && !s.has("leaves out broken events") {
			if s.has("returns nothing before a broken event") {
				es = nil
			}
			return es, &outbox.BrokenError{Group: g.Name, Seq: r.Seq, Err: errors.New("cannot be decoded")}
		}
		if r.broken {
			continue
		}
		e := r.Entry
		e.Age = time.Since(r.created)
		switch {
		case s.has("forgets a skipped mark") && e.Parked == outbox.Skip:
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
		counts := e.Parked != outbox.Skip || s.has("counts skipped events")
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

// find returns the row of an event, or nil. The caller holds the lock.
func (s *Store) find(e outbox.Entry) *row {
	r := s.groups[e.Group][e.Seq]
	if r == nil || !r.visible || r.ID != e.ID && !s.has("operates on another event of the same Seq") {
		return nil
	}
	return r
}

// Park cuts the reason.
func (s *Store) Park(ctx context.Context, e outbox.Entry, p outbox.Policy, reason string) error {
	if err := s.begin(ctx, "Park"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.find(e)
	if r == nil {
		if s.has("parks blindly") {
			if s.groups[e.Group] == nil {
				s.groups[e.Group] = make(map[int64]*row)
			}
			e.Parked = p
			s.groups[e.Group][e.Seq] = &row{Entry: e, created: time.Now(), visible: true}
		}
		if s.has("reports that a parked event is gone") {
			return outbox.ErrNotFound
		}
		return nil
	}
	if r.Parked != 0 && !s.has("parks again") {
		return nil
	}
	if s.has("has one mark") {
		p = outbox.Halt
	}
	if !s.has("keeps reasons of any length") {
		reason = reason[:min(len(reason), 256)]
	}
	if !s.has("cuts reasons inside characters") {
		reason = strings.ToValidUTF8(reason, "")
	}
	r.Parked, r.Reason = p, reason
	return nil
}

// Unpark keeps the event in its place.
func (s *Store) Unpark(ctx context.Context, e outbox.Entry) error {
	return s.operate(ctx, "Unpark", e, func(r *row) {
		if !s.has("unparks nothing") {
			r.Parked, r.Reason = 0, ""
		}
	})
}

// Discard removes it.
func (s *Store) Discard(ctx context.Context, e outbox.Entry) error {
	return s.operate(ctx, "Discard", e, func(r *row) {
		if !s.has("discards nothing") {
			delete(s.groups[r.Group], r.Seq)
		}
	})
}

func (s *Store) operate(ctx context.Context, op string, e outbox.Entry, f func(*row)) error {
	if err := s.begin(ctx, op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.find(e)
	switch {
	case r == nil && s.has("says nothing of what is gone"), r != nil && r.Parked == 0 && s.has("says nothing of what is not parked"):
		return nil
	case r == nil:
		return fmt.Errorf("refstore: %s: %w", strconv.Quote(e.ID), outbox.ErrNotFound)
	case r.Parked == 0 && !s.has("operates on what is not parked"):
		return fmt.Errorf("refstore: %s: %w", strconv.Quote(e.ID), outbox.ErrNotParked)
	}
	f(r)
	return nil
}

// Parked sorts by the time of the commit.
func (s *Store) Parked(ctx context.Context, limit int) (es []outbox.Entry, err error) {
	if err := s.begin(ctx, "Parked"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.groups {
		for _, r := range s.rows(name) {
			if r.Parked != 0 || s.has("lists what is not parked") {
				e := r.Entry
				e.Age = time.Since(r.created)
				es = append(es, e)
			}
		}
	}
	slices.SortFunc(es, func(a, b outbox.Entry) int {
		return cmp.Or(cmp.Compare(b.Age, a.Age), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Seq, b.Seq))
	})
	if s.has("lists the newest first") {
		slices.Reverse(es)
	}
	if !s.has("ignores the limit of Parked") {
		es = es[:min(len(es), limit)]
	}
	return es, nil
}

// Probes counts reads that a store with a database would have asked once more for.
func (s *Store) Probes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.probes
}
