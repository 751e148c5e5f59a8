package dedup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/question"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// A host starts suspects one by one, and those before may still run. When the process crashes, only the suspect that started last is
// accused, but its own record does not tell that it was the last. Therefore each Once keeps one more record, with the owner of the suspect
// that it started last. No event has the record's key, and no list shows it. Protocol, 17.7h.

// apartStarts are the suspects that a Once starts apart from other messages.
type apartStarts struct {
	turn  chan struct{}   // who writes the record
	name  string          // of the record
	store recoveringStore // of the record. An inbox's Acquire would write it in a handler's transaction

	unread sync.Once // logs that the store has no Inspect
}

// recordStore is a store of an inbox whose Acquire writes in a handler's transaction.
type recordStore interface {
	// Records returns the store that writes the same records by themselves.
	Records() Store
}

func (a *apartStarts) init(s Store) {
	if i, ok := s.(recordStore); ok {
		s = i.Records()
	}
	a.turn, a.name, a.store = make(chan struct{}, 1), rand.Text()[:16], recoveringStore{s}
}

func (o *Once) startsKey(name string) string { return o.consumer + question.KeyPrefix + "last/" + name }

// errNoteHeld is no failure of the store, so the suspect does not run without a record either.
var errNoteHeld = errors.New("another note is under way, or not released yet")

// noteStart notes that the delivery starts now, if its host runs it as a suspect apart from others. Without the note the suspect that
// started before could be accused in its place, so the delivery must not start then.
func (o *Once) noteStart(ctx context.Context, rl *recordLease) error {
	if rl.nested || !settle.RunsSuspect(ctx) { // nested: the suspect is the delivery whose handler calls
		return nil
	}
	s := &o.apart
	acquire, cancel := context.WithTimeout(ctx, o.o.CallTimeout+acquireGrace)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-acquire.Done():
		return sqsonce.Unavailable(fmt.Errorf("start of a suspect not noted: %w: %w", errNoteHeld, context.Cause(acquire)))
	}
	// As a second delivery the acquire is sent alone: in a batch of others' writes it could wait for them.
	g, err := s.store.Acquire(acquire, Claim{
		Key: o.startsKey(s.name), Owner: rl.owner, Lease: o.o.LeaseDuration, Retention: o.o.Retention, ReceiveCount: 2,
	})
	if err == nil && g.Verdict != VerdictGranted {
		err = sqsonce.Unavailable(fmt.Errorf("%w: %s", errNoteHeld, g.Verdict))
	}
	if err != nil {
		return fmt.Errorf("start of a suspect not noted: %w", err)
	}
	release, end := context.WithTimeout(context.WithoutCancel(ctx), o.o.CallTimeout)
	defer end()
	o.logRelease(ctx, g.Lease, s.store.Release(release, g.Lease, nil)) // if it fails, the next start waits for the lease's end
	return nil
}

// startedLast says that no suspect started after that owner's, in the Once whose note that name is from. It is false where that is not
// known.
func (o *Once) startedLast(ctx context.Context, name, owner string) bool {
	if name == "" {
		return false // a note of an earlier version, or a damaged one
	}
	if _, ok := o.apart.store.Store.(Inspector); !ok {
		o.apart.unread.Do(func() {
			o.o.Logger.WarnContext(ctx, "dedup: the store is no dedup.Inspector: after a crash no suspect is sent to the dead-letter queue", "consumer", o.consumer)
		})
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.o.CallTimeout)
	defer cancel()
	r, err := o.apart.store.Inspect(ctx, o.startsKey(name))
	if err != nil && !errors.Is(err, ErrNotFound) {
		o.o.Logger.WarnContext(ctx, "dedup: the store does not tell which suspect started last before a crash: none is sent to the dead-letter queue", "consumer", o.consumer, "error", err)
	}
	return err == nil && r.Owner != "" && strings.HasSuffix(owner, r.Owner) // an inbox's note of a start has a prefix
}
