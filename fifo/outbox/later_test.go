package outbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
)

// laterStore is a store with events that are due.
type laterStore struct {
	outbox.Store
	x *fixture

	mu   sync.Mutex
	due  []fifo.Event
	left time.Duration // how long one has been due that is not moved
	page int
	move func(context.Context) error // nil: it does not fail
}

func (s *laterStore) Move(ctx context.Context) (int, time.Duration, error) {
	s.mu.Lock()
	move := s.move
	s.mu.Unlock()
	if move != nil {
		if err := move(ctx); err != nil {
			return 0, 0, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(s.page, len(s.due))
	for _, e := range s.due[:n] {
		s.x.table.Commit(e)
	}
	s.due = s.due[n:]
	return n, s.left, nil
}

func (s *laterStore) set(move func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.move = move
}

func (x *fixture) later(n int) *laterStore {
	s := &laterStore{Store: x.table.Open(), x: x, page: 3}
	for i := range n {
		s.due = append(s.due, event("g", i+1))
	}
	return s
}

// A sweep publishes what is due when it begins, and says what it could not move.
func TestSweepMoves(t *testing.T) {
	bubble(t, func(x *fixture) {
		s := x.later(8)
		s.left = 7 * time.Minute
		r := x.relayOf(s, func(o *outbox.Options) { o.Settle = -1 })
		b, err := r.Sweep(x.Context())
		if err != nil || b.Overdue != 7*time.Minute || b != r.Backlog() || r.Stats().Moved != 8 {
			x.Errorf("%+v, %v, %d moved", b, err, r.Stats().Moved)
		}
		x.wantQueued("g", 8)
		if x.log.lines("overdue_seconds=420") != 1 {
			x.Errorf("the line says\n%s", x.log.String())
		}
	})
}

// Events that can't be moved keep no other from being published, however Move fails. For how long they are due is not known, so
// that grows.
func TestMoveFails(t *testing.T) {
	for name, fail := range map[string]func(context.Context) error{
		"an error": func(context.Context) error { return errors.New("no table") },
		"denied":   func(context.Context) error { return outbox.ErrDenied },
		"hangs":    func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"panics":   func(context.Context) error { panic("move") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(x *fixture) {
				s := x.later(4)
				s.set(fail)
				r := x.relayOf(s)
				stop := x.run(r)
				time.Sleep(time.Minute)
				for n := 1; n <= 3; n++ {
					x.table.Commit(event("other", n))
					time.Sleep(20 * time.Second)
					x.wantQueued("other", n)
				}
				time.Sleep(2 * time.Minute)
				if late := r.Backlog().Overdue; late < 3*time.Minute || late > 5*time.Minute {
					x.Errorf("overdue %v after 4 min", late)
				}
				if n := x.log.lines("due events can't be added"); n < 2 || n > 5 {
					x.Errorf("%d lines in 4 min\n%s", n, x.log.String())
				}
				s.set(nil)
				time.Sleep(time.Minute)
				x.wantQueued("g", 4)
				if late := r.Backlog().Overdue; late != 0 {
					x.Errorf("overdue %v when all are moved", late)
				}
				must.Get(stop())(x)

				s.set(fail)
				x.table.Commit(event("other", 4))
				if _, err := r.Sweep(x.Context()); err == nil {
					x.Error("Sweep does not say that Move fails")
				}
				time.Sleep(time.Minute)
				must.Do(x, r.Drain(x.Context(), "other"))
				x.wantQueued("other", 4)
			})
		})
	}
}

// A ring is heard while Move hangs.
func TestRingWhileMoveHangs(t *testing.T) {
	bubble(t, func(x *fixture) {
		s := x.later(1)
		s.set(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		r := x.relayOf(s)
		stop := x.run(r)
		time.Sleep(time.Second)
		x.commit(1, "other")
		r.Ring("other")
		time.Sleep(time.Second)
		x.wantQueued("other", 1)
		must.Get(stop())(x)
	})
}

// A million due events keep those that are in the outbox waiting for two seconds at most.
func TestMovingEnds(t *testing.T) {
	bubble(t, func(x *fixture) {
		s := x.later(1000)
		s.page = 1
		s.set(func(context.Context) error { time.Sleep(100 * time.Millisecond); return nil })
		x.commit(1, "other")
		r := x.relayOf(s)
		stop := x.run(r)
		time.Sleep(4 * time.Second)
		x.wantQueued("other", 1)
		if n := r.Stats().Moved; n < 20 || n > 40 {
			x.Errorf("%d moved in 4 s", n)
		}
		must.Get(stop())(x)
	})
}
