package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	// callTime is the most for one call of a store: the next one may meet a server that answers.
	callTime = 20 * time.Second
	// callGrace is how long a call is waited for after its context has ended.
	callGrace = time.Second
)

var errStuck = errors.New("the store's call did not return when its context ended")

// safeStore makes a failed call of one that panics, ends its goroutine, takes longer than callTime or ignores the end of its
// context. A call that is left behind may still have its effect. A claim, a delete of confirmed events, a move of due ones and a
// conditional mark are right at any time, and the result of a read is dropped.
type safeStore struct{ Store }

func call[T any](ctx context.Context, what string, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	ctx, cancel := context.WithTimeoutCause(ctx, callTime, fmt.Errorf("no answer within %v", callTime))
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		var v T
		host.Run(func() (err error) {
			v, err = f(ctx)
			return err
		}, func(err error) { answers <- answer{v, err} })
	}()
	var a answer
	select {
	case a = <-answers:
	case <-ctx.Done():
		grace := time.NewTimer(callGrace)
		defer grace.Stop()
		select {
		case a = <-answers:
		case <-grace.C:
			a.err = errStuck
		}
	}
	if a.err != nil && ctx.Err() != nil && !errors.Is(a.err, context.Cause(ctx)) {
		a.err = fmt.Errorf("%w (%w)", a.err, context.Cause(ctx))
	}
	if a.err != nil {
		a.err = fmt.Errorf("outbox: %s: %w", what, a.err)
	}
	return a.v, a.err
}

type groupsPage struct {
	found []Group
	next  string
}

func (s safeStore) groups(ctx context.Context, after string, limit int) (groupsPage, error) {
	return call(ctx, "find groups", func(ctx context.Context) (p groupsPage, err error) {
		p.found, p.next, err = s.Groups(ctx, after, limit)
		return p, err
	})
}

// moved is the answer of Move.
type moved struct {
	events  int
	overdue time.Duration
}

func (s safeStore) move(ctx context.Context) (moved, error) {
	return call(ctx, "move due events", func(ctx context.Context) (m moved, err error) {
		m.events, m.overdue, err = s.Store.(mover).Move(ctx)
		return m, err
	})
}

// claim reports whether the group was free.
func (s safeStore) claim(ctx context.Context, group string, lease time.Duration) (bool, error) {
	claimed, err := call(ctx, "claim", func(ctx context.Context) ([]string, error) { return s.Claim(ctx, []string{group}, lease) })
	return len(claimed) == 1 && claimed[0] == group, err
}

func (s safeStore) unclaim(ctx context.Context, group string) error {
	_, err := call(ctx, "unclaim", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Unclaim(ctx, []string{group})
	})
	return err
}

func (s safeStore) read(ctx context.Context, g Group, k Known, limit int) ([]Entry, error) {
	es, err := call(ctx, "read", func(ctx context.Context) ([]Entry, error) { return s.Read(ctx, g, k, limit) })
	if problem := disorder(es, g.Name, limit); problem != "" {
		return nil, fmt.Errorf("outbox: read: the store's answer is wrong: %s", problem)
	}
	return es, err
}

// disorder says what is wrong with an answer of Read: sending it could lose the order of the group.
func disorder(es []Entry, group string, limit int) string {
	last, others := int64(0), 0
	for i, e := range es {
		if e.Group != group {
			return fmt.Sprintf("an event of group %.128q among those of %.128q", e.Group, group)
		}
		if i > 0 && e.Seq <= last {
			return fmt.Sprintf("event %d comes after %d", e.Seq, last)
		}
		last = e.Seq
		if e.Parked != OnRefusedSkip {
			others++
		}
	}
	if others > limit {
		return fmt.Sprintf("%d events, more than %d", others, limit)
	}
	return ""
}

// delete returns the events that may still be there: all of them after an error that does not say which.
func (s safeStore) delete(ctx context.Context, es []Entry) ([]Entry, error) {
	left, err := call(ctx, "delete", func(ctx context.Context) ([]Entry, error) { return s.Delete(ctx, es) })
	switch {
	case err == nil && len(left) > 0:
		err = fmt.Errorf("outbox: delete: %d events may still be there", len(left))
	case err != nil && len(left) == 0:
		left = es
	}
	return left, err
}

func (s safeStore) park(ctx context.Context, e Entry, p RefusedPolicy, reason string) error {
	return s.operate(ctx, "park", func(ctx context.Context) error { return s.Park(ctx, e, p, reason) })
}

func (s safeStore) operate(ctx context.Context, what string, f func(context.Context) error) error {
	_, err := call(ctx, what, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}
