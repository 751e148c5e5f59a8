package publishing

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// Outbox is where orders are placed together with their events.
type Outbox struct {
	Store outbox.Store
	// Commit places orders of one account and writes their events, in one transaction. Orders that are placed already are left
	// out: so it can be called again after an error, and after an answer that was lost.
	Commit func(ctx context.Context, account string, events []orders.Event) error
}

const (
	committers = 16 // transactions at once, each of another account
	inOne      = 20 // orders of one transaction
	// patience is how long a transaction is tried again: longer than the store is away in the demo.
	patience   = time.Minute
	leastPause = 20 * time.Millisecond
	mostPause  = time.Second
)

// throughOutbox commits, and leaves the rest to the relays.
type throughOutbox struct{ Outbox }

func (t throughOutbox) send(ctx context.Context, events []orders.Event) error {
	byAccount := map[string][]orders.Event{}
	for _, e := range events {
		byAccount[e.Account] = append(byAccount[e.Account], e)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(committers)
	for account, es := range byAccount {
		g.Go(func() error {
			for some := range slices.Chunk(es, inOne) {
				if err := patiently(ctx, func() error { return t.Commit(ctx, account, some) }); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// confirmed waits until the events have left the outbox.
func (t throughOutbox) confirmed(ctx context.Context, events []orders.Event) error {
	for _, e := range events {
		err := patiently(ctx, func() error {
			const most = 1000
			left, err := t.Store.Read(ctx, outbox.Group{Name: e.Account}, outbox.Known{}, most)
			if err == nil && (len(left) >= most || slices.ContainsFunc(left, func(o outbox.Entry) bool { return o.ID == e.ID })) {
				err = errWaiting
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var errWaiting = errors.New("orders: an event is not published yet")

func (t throughOutbox) close(context.Context) error { return nil }

// patiently calls f until it succeeds.
func patiently(ctx context.Context, f func() error) error {
	pause, until := leastPause, time.Now().Add(patience)
	for {
		err := f()
		if err == nil || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, mostPause)
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}
