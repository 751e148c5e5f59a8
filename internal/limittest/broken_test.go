package limittest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/counting"
)

// table is what the processes of a fleet share. It counts in the instants of package time.
type table struct {
	mu     sync.Mutex
	defect string
	tats   map[string]time.Time // of the next token without a burst
	lines  map[string]time.Time
	slots  map[string]held
	events map[string]bool
	takes  int
}

type held struct {
	owner string
	until time.Time
}

func newTable(defect string) *table {
	return &table{defect: defect, tats: map[string]time.Time{}, lines: map[string]time.Time{}, slots: map[string]held{}, events: map[string]bool{}}
}

func (t *table) has(defect string) bool { return t.defect == defect }

// broken is a counter in memory. It shares no arithmetic with the counters that the suite is for.
type broken struct {
	*table
	down   error
	writes float64
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// answer counts a call, and returns the error of one that can't be carried out.
func (b *broken) answer(ctx context.Context, good bool) error {
	b.writes++
	if b.has("asks twice") {
		b.writes++
	}
	switch {
	case ctx.Err() != nil && !b.has("works for a cancelled caller"):
		return ctx.Err()
	case b.down == sqsonce.ErrMisconfigured && b.has("takes a missing table for an outage"):
		return sqsonce.Unavailable(errors.New("no table"))
	case b.down == errReadOnly && b.has("writes what is read-only"):
	case b.down != nil && b.has("says nothing of a server that is down"):
		return errors.New("no answer")
	case b.down != nil:
		return b.down
	case !good && !b.has("accepts anything"):
		return &sqsonce.OptionError{Package: "broken", Field: "Take", Problem: "is bad"}
	}
	return nil
}

func (b *broken) Take(ctx context.Context, t counting.Take) (counting.Grant, error) {
	const year = 365 * 24 * time.Hour
	good := t.Key != "" && t.N > 0 && t.Step > 0 && t.Burst > 0 && t.Ahead >= 0 && t.Reach >= 0 && t.NotBefore >= 0 && t.Burst < int(year/max(t.Step, 1))
	if err := b.answer(ctx, good); err != nil || !good {
		return counting.Grant{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takes++
	now, record := time.Now(), "limit/"+t.Key
	if b.has("has one schedule for all keys") {
		record = "limit/" + key
	}
	if b.has("has a schedule for each plan") {
		record += t.Step.String()
	}
	if !b.has("cuts steps to microseconds") {
		t.Step += time.Microsecond - 1
	}
	t.Step = t.Step.Truncate(time.Microsecond)
	if b.events[record] && !b.has("takes tokens of an event") {
		return counting.Grant{}, dedup.ErrRecord
	}
	if t.Step == 0 {
		return counting.Grant{N: t.N}, nil
	}
	if b.has("does not know a burst") {
		t.Burst = 1
	}
	tolerance := time.Duration(t.Burst-1) * t.Step
	base := later(b.tats[record], now)
	if b.has("saves more than a burst") && !b.tats[record].IsZero() && now.Sub(b.tats[record]) > 2*t.Step {
		base = now.Add(-t.Step)
	}
	if b.has("forgets a part of a step") && !b.tats[record].IsZero() {
		base = later(now, now.Add(base.Sub(now).Truncate(t.Step)+t.Step))
	}
	if b.has("gives a burst with each take") {
		base = now
	}
	if t.NotBefore > 0 {
		switch floor := now.Add(t.NotBefore + tolerance); {
		case b.has("ignores a pause"):
		case b.has("lets a burst through after a pause"):
			base = later(base, now.Add(t.NotBefore))
		case b.has("lets a later pause end an earlier one"):
			base = floor
		case b.has("adds a pause to the tokens that are taken"):
			base = base.Add(t.NotBefore)
		case b.has("forgets a pause behind a line") && b.lines[record].After(now):
		default:
			base = later(base, floor)
		}
		if !b.has("counts a refusal as a token") {
			b.tats[record] = base
		}
	}
	first := base.Add(-tolerance).Sub(now)
	within := max(t.Ahead, t.Reach)
	if b.has("ignores Reach") {
		within = t.Ahead
	}
	if b.has("grants all within Reach") {
		t.Ahead = within
	}
	if b.has("ignores Ahead") {
		t.Ahead = min(t.Ahead, t.Step)
	}
	short := time.Second
	if b.has("lets others wait for a short line") {
		short = 0
	}
	line := later(b.lines[record], now).Sub(now)
	behind := line > short && (!t.Waited || b.has("lets all wait for a line")) && !b.has("lets nobody wait for a line")
	n := 0
	switch {
	case behind || first > within || t.NotBefore > 0 && b.has("grants nothing with a pause"):
		after := max(first-within, 1)
		if behind {
			after = max(after, line-time.Second)
		}
		if b.has("says to ask again too late") {
			after += t.Step
		}
		if b.has("counts a refusal as a token") {
			b.tats[record] = base.Add(t.Step)
		}
		if b.has("does not say when to ask again") {
			after = 0
		}
		return counting.Grant{After: after}, nil
	case first > t.Ahead:
		n = 1
	default:
		n = min(t.N, int((t.Ahead-first)/t.Step)+1)
	}
	if b.has("grants one token only") {
		n = 1
	}
	if b.has("grants more than N") {
		n++
	}
	g := counting.Grant{N: n, From: first, Step: t.Step}
	next := base.Add(time.Duration(n) * t.Step)
	switch {
	case b.has("grants a token in the next process again") && b.takes%2 == 1, b.has("gives out tokens twice") && b.takes%3 == 0:
		next = next.Add(-t.Step)
	case b.has("skips tokens"):
		next = next.Add(t.Step)
	case b.has("gives tokens back that nobody used") && b.takes%2 == 1:
		next = b.tats[record]
	}
	b.tats[record] = next
	if b.has("takes tokens of all keys") {
		for other := range b.tats {
			b.tats[other] = next
		}
	}
	if b.has("ends a line with a take") {
		delete(b.lines, record)
	}
	return g, nil
}

func (b *broken) Line(ctx context.Context, key string, n int, step time.Duration) (time.Duration, error) {
	const year = 365 * 24 * time.Hour
	good := key != "" && n > 0 && step > 0 && n < int(year/max(step, 1))
	if err := b.answer(ctx, good); err != nil || !good {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takes++
	now, record := time.Now(), "limit/"+key
	if b.events[record] {
		return 0, dedup.ErrRecord
	}
	first := later(b.lines[record], now)
	if !b.has("puts the line before the tokens") {
		first = later(first, b.tats[record])
	}
	if b.has("never ends a line") && !b.lines[record].IsZero() {
		first = later(b.lines[record], now.Add(step))
	}
	end := first.Add(time.Duration(n) * step)
	if b.has("gives all the same place") || b.has("gives two processes one place") && b.takes%2 == 1 {
		end = first
	}
	if b.has("takes a token with a place") {
		b.tats[record] = later(b.tats[record], now).Add(step)
	}
	if b.has("forgets the tokens with a place") {
		delete(b.tats, record)
	}
	b.lines[record] = end
	return first.Sub(now), nil
}

func (b *broken) Acquire(ctx context.Context, slot, owner string, lease time.Duration) error {
	if err := b.answer(ctx, slot != "" && owner != "" && lease > 0); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s, found := b.slots["limit/"+slot]
	if found && s.owner != owner && (time.Now().Before(s.until) || b.has("never frees a slot")) && !b.has("has no owners") {
		return counting.ErrTaken
	}
	if b.has("checks before it locks") {
		b.mu.Unlock()
		time.Sleep(time.Millisecond)
		b.mu.Lock()
	}
	b.slots["limit/"+slot] = held{owner, time.Now().Add(lease)}
	return nil
}

func (b *broken) Renew(ctx context.Context, slot, owner string, lease time.Duration) error {
	if err := b.answer(ctx, owner != ""); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch s, found := b.slots["limit/"+slot]; {
	case (!found || s.owner != owner) && !b.has("renews for any owner"):
		return counting.ErrLeaseLost
	case !b.has("renews nothing"):
		b.slots["limit/"+slot] = held{owner, time.Now().Add(lease)}
	}
	return nil
}

func (b *broken) Release(ctx context.Context, slot, owner string) error {
	if err := b.answer(ctx, owner != ""); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.slots["limit/"+slot]
	if (s.owner == owner || b.has("lets any owner release")) && !b.has("does not release") {
		delete(b.slots, "limit/"+slot)
	}
	return nil
}
