package refstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

func (s *Store) find(e outbox.Entry) *row {
	r := s.groups[e.Group][e.Seq]
	if r == nil || !r.visible || r.ID != e.ID && !s.has("operates on another event of the same Seq") {
		return nil
	}
	return r
}

func (s *Store) Park(ctx context.Context, e outbox.Entry, p outbox.RefusedPolicy, reason string) error {
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
		p = outbox.OnRefusedHalt
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

func (s *Store) Unpark(ctx context.Context, e outbox.Entry) error {
	return s.operate(ctx, "Unpark", e, func(r *row) {
		if !s.has("unparks nothing") {
			r.Parked, r.Reason = 0, ""
		}
	})
}

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
