package dedup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/question"
)

// An error of the store accuses no message by itself: the store may be down for all. So every delivery that fails because of
// the store carries a question, which the host asks: an acquire and a release of a key that no event has, by the same code,
// connections and credentials, with the same patience. It writes, since a read passes where only writes are refused.

const (
	// askHolds is how long an answer holds for those who ask, a pass only for those who had asked when its question began. So a Once
	// asks once a second at most.
	askHolds = time.Second
	// askRetention is how long the record of a question stays in the store after the last one.
	askRetention = time.Hour
)

// asker is a store of an inbox: its records are written in a handler's transaction, and a question needs one of its own.
type asker interface {
	// Ask writes and completes the claim's record in one transaction. All claims of a process have one key and one owner.
	Ask(ctx context.Context, c Claim) error
}

// asking shares the questions of a Once.
type asking struct {
	mu       sync.Mutex
	name     string        // of the record, and its owner in an inbox; made by the first question
	under    chan struct{} // closed when the question that is under way has its answer; nil: none is
	begun    time.Time     // the question that was answered last
	answered time.Time
	answer   error
	left     *Lease // what an earlier question could not release; only the question that is under way uses it
}

// withQuestion returns err with the question that tells whether the store works. Its calls are two releases and an acquire at most. A
// second more, and the host hears their answer.
func (o *Once) withQuestion(err error) error {
	return question.With(err, question.Question{ID: o, Ask: o.ask, Patience: 3*o.o.CallTimeout + acquireGrace + time.Second})
}

// unavailable is the error of a delivery that the store keeps from an outcome.
func (o *Once) unavailable(err error) error { return o.withQuestion(sqsonce.Unavailable(err)) }

// questioned gives the error of an inbox's store, after a handler's run and the release, its question. If the store refused the
// transaction with an answer, the question decides whose fault that is.
func (o *Once) questioned(ctx context.Context, err error) error {
	switch {
	case !question.IsFromStore(err), errors.Is(err, sqsonce.ErrLeaseLost), errors.Is(err, sqsonce.ErrInProgress):
		return err
	case errors.Is(err, sqsonce.ErrUnavailable):
		return o.withQuestion(err)
	}
	if down := o.ask(context.WithoutCancel(ctx)); down != nil {
		return o.unavailable(fmt.Errorf("%w: other writes are refused too: %w", err, down))
	}
	return err
}

// ask returns nil where the store takes a record. Callers at one time share one question. One that began before the call, and passed, says
// nothing of the failure that the caller asks about: the store may have gone down since. The caller waits for the next one.
func (o *Once) ask(ctx context.Context) error {
	failure := time.Now()
	a := &o.asking
	for {
		a.mu.Lock()
		switch under := a.under; {
		case under != nil:
			a.mu.Unlock()
			select {
			case <-under:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			continue
		case !a.answered.IsZero() && time.Since(a.answered) < askHolds:
			answer, old, held := a.answer, a.begun.Before(failure), askHolds-time.Since(a.answered)
			a.mu.Unlock()
			switch {
			case !old || answer != nil:
				return answer
			case !host.Wait(ctx, held):
				return context.Cause(ctx)
			}
			continue
		}
		begun := time.Now()
		a.under = make(chan struct{})
		if a.name == "" {
			a.name = rand.Text()
		}
		a.mu.Unlock()

		err := o.callAsk(ctx, a.name)
		a.mu.Lock()
		if errors.Is(err, errQuestionTaken) {
			a.name = "" // by an acquire of an earlier question, which arrived late
		}
		if ctx.Err() == nil { // else the question was abandoned, and says nothing
			a.answer, a.begun, a.answered = err, begun, time.Now()
		}
		close(a.under)
		a.under = nil
		a.mu.Unlock()
		return err
	}
}

var errQuestionTaken = errors.New("dedup: the question's record has another owner")

func (o *Once) callAsk(ctx context.Context, name string) error {
	// As a second delivery the acquire is sent alone: in a batch of others' writes it could wait for them.
	c := Claim{Key: o.consumer + question.KeyPrefix + name, Owner: name, Lease: o.o.LeaseDuration, Retention: askRetention, ReceiveCount: 2}
	if o.asker != nil {
		ctx, cancel := context.WithTimeout(ctx, 2*o.o.CallTimeout+acquireGrace) // of an acquire and a commit
		defer cancel()
		var err error
		p := host.Recover(func() { err = o.asker.Ask(ctx, c) })
		return orPanic(err, p)
	}
	// What an earlier question left is released first: else the next one would be refused as in progress, which proves no write.
	if err := o.releaseQuestion(ctx, o.asking.left); err != nil {
		return err
	}
	c.Owner = rand.Text() // an owner is never used for a second acquire
	o.asking.left = &Lease{Key: c.Key, Owner: c.Owner, Retention: c.Retention}
	acquire, cancel := context.WithTimeout(ctx, o.o.CallTimeout+acquireGrace)
	defer cancel()
	g, err := o.store.Acquire(acquire, c)
	switch {
	case err != nil:
		return err
	case g.Verdict != VerdictGranted:
		return fmt.Errorf("%w: %s", errQuestionTaken, g.Verdict)
	}
	return o.releaseQuestion(ctx, &g.Lease)
}

func (o *Once) releaseQuestion(ctx context.Context, l *Lease) error {
	o.asking.left = l
	if l == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.o.CallTimeout)
	defer cancel()
	if err := o.store.Release(ctx, *l, nil); err != nil && !errors.Is(err, sqsonce.ErrLeaseLost) {
		return err
	}
	o.asking.left = nil
	return nil
}
