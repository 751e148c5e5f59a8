package dedup_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// asked is a store that keeps the context of an acquire, and may answer after its end.
type asked struct {
	dedup.Store
	ctx  context.Context
	late bool
}

func (s *asked) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	s.ctx = ctx
	if s.late {
		<-ctx.Done()
	}
	return s.Store.Acquire(context.WithoutCancel(ctx), c)
}

// The acquire and the handler have one context where they can. What ends the one does not end the other.
func TestAcquireContext(t *testing.T) {
	const patience = 6 * time.Second // CallTimeout and a second
	for name, tt := range map[string]struct {
		late     bool          // the store answers after the acquire's patience
		deadline time.Duration // of the handler, set by middleware; 0: none
	}{
		"in time": {}, "late": {late: true}, "deadline": {deadline: 2 * patience}, "late, deadline": {late: true, deadline: 2 * patience},
	} {
		must.Run(t, name, func(t *testing.T) {
			s, begun := &asked{Store: newFaults().Store, late: tt.late}, time.Now()
			hosts, settled := settle.New(t.Context())
			ctx := hosts
			if tt.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tt.deadline)
				defer cancel()
			}
			err := newOnce(t, s).Handler(func(ctx context.Context, _ *sqsonce.Message) error {
				if end, ok := s.ctx.Deadline(); !ok || !end.Equal(begun.Add(patience)) {
					t.Errorf("the acquire's context ends at %v, want %v after its start", end, patience)
				}
				if tt.late && s.ctx.Err() != context.DeadlineExceeded {
					t.Errorf("the acquire's context: %v, want an end by its deadline", s.ctx.Err())
				}
				time.Sleep(10 * patience)
				if want := tt.deadline > 0; want != (ctx.Err() == context.DeadlineExceeded) || !want && ctx.Err() != nil {
					t.Errorf("the handler's context has ended: %v, want an end by its own deadline: %t", ctx.Err(), want)
				}
				return nil
			})(ctx, message("1"))
			if err := errors.Join(err, settled(false)); err != nil {
				t.Fatal(err)
			}
			if s.ctx.Err() == nil {
				t.Error("the acquire's context goes on after the delivery")
			}
		})
	}
}

// A delivery that does not run its handler leaves nothing behind in its caller's context, which may never end.
func TestAcquireContextEnds(t *testing.T) {
	must.Run(t, "completed", func(t *testing.T) {
		f := newFaults()
		for range 2 { // the second in another process
			s := &asked{Store: f.Store}
			if err := newOnce(t, s).Handler(hang(0))(t.Context(), message("1")); err != nil {
				t.Fatal(err)
			}
			if s.ctx.Err() == nil {
				t.Error("the acquire's context goes on after the delivery")
			}
		}
	})
}

// A store that knows an acquire's end by a context of its own says that it was cancelled. That is not the host's doing.
func TestAcquireTimesOut(t *testing.T) {
	must.Run(t, "derived", func(t *testing.T) {
		f, refused := newFaults(), &sqsonce.OptionError{Field: "Key"}
		f.before = func(ctx context.Context, op string, _ int) error {
			if op != "acquire" {
				return nil
			}
			derived, cancel := context.WithCancel(ctx)
			defer cancel()
			<-derived.Done()
			return fmt.Errorf("%w: %w", refused, derived.Err())
		}
		err := newOnce(t, f).Handler(hang(0))(t.Context(), message("1"))
		if found, ok := errors.AsType[*sqsonce.OptionError](err); errors.Is(err, context.Canceled) || !errors.Is(err, context.DeadlineExceeded) || !ok || found != refused {
			t.Errorf("%v", err)
		}
	})
}
