package outbox_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
)

// A transaction that is not settled is waited for, and its group alone.
func TestUnsettled(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay()
		finish := x.table.Half(event("g", 1), event("g", 2))
		x.commit(3, "h", "i")
		alsoI := x.table.Half(event("i", 4), event("i", 5)) // behind what is settled
		time.AfterFunc(5*time.Second, alsoI)
		time.AfterFunc(5*time.Second, finish)
		start := time.Now()
		must.Do(t, r.Drain(x.Context(), "g", "h", "i"))
		if took := time.Since(start); took < 5*time.Second || took > 7*time.Second {
			t.Errorf("took %v, want that of the transaction", took)
		}
		x.wantQueued("g", 2)
		x.wantQueued("h", 3)
		x.wantQueued("i", 5)
		if s := r.Stats(); s.Unsettled < 4 || s.Unsettled > 60 {
			t.Errorf("%d unsettled reads in 5 s", s.Unsettled)
		}
	})
}

// What the store may not do is contained.
func TestBrokenStores(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(s outbox.Store) outbox.Store{
		"panics": func(s outbox.Store) outbox.Store { return &wild{Store: s, read: func() { panic("at the disco") }} },
		"blocks": func(s outbox.Store) outbox.Store {
			return &wild{Store: s, read: func() { time.Sleep(5 * time.Minute) }}
		},
		"wrong order":     func(s outbox.Store) outbox.Store { return &wild{Store: s, reverse: true} },
		"another group":   func(s outbox.Store) outbox.Store { return &wild{Store: s, other: "h"} },
		"more than asked": func(s outbox.Store) outbox.Store { return &wild{Store: s, more: true} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(x *fixture) {
				x.commit(30, "g", "h")
				ctx, cancel := context.WithTimeout(x.Context(), 2*time.Minute)
				defer cancel()
				start := time.Now()
				err := x.relayOf(broken(x.table.Open())).Drain(ctx, "g")
				if took := time.Since(start); err == nil || took > 2*time.Minute+5*time.Second {
					t.Errorf("Drain: %v after %v, want an error by the end of its context", err, took)
				}
				if n := x.requests(); n != 0 {
					t.Errorf("%d requests, want none", n)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
			})
		})
	}
}

// wild is a store whose Read does not keep the contract.
type wild struct {
	outbox.Store
	read          func()
	reverse, more bool
	other         string
}

func (w *wild) Read(ctx context.Context, g outbox.Group, k outbox.Known, limit int) ([]outbox.Entry, error) {
	if w.read != nil {
		w.read()
	}
	if w.more {
		limit = 1000
	}
	es, err := w.Store.Read(ctx, g, k, limit)
	if w.reverse && len(es) > 1 {
		es[0], es[1] = es[1], es[0]
	}
	if w.other != "" && len(es) > 0 {
		es[len(es)-1].Group = w.other
	}
	return es, err
}

// A store whose pages do not end, and one that finds nothing because it fails: an error, and no line that looks like an empty outbox.
func TestSweepOfABrokenStore(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]string{"the same page again": "g", "an error": ""} {
		inBubble(t, func(x *fixture) {
			r := x.relayOf(&circle{Store: x.table.Open(), next: next})
			if b, err := r.Sweep(x.Context()); err == nil || b != (outbox.Backlog{}) {
				t.Errorf("%s: Sweep: %+v, %v, want an error", name, b, err)
			}
			if n := x.log.lines("outbox: swept"); n != 0 {
				t.Errorf("%s: %d lines with a backlog that nobody has seen", name, n)
			}
		})
	}
}

// circle is a store whose Groups comes to no end, or fails.
type circle struct {
	outbox.Store
	next string
}

func (c *circle) Groups(context.Context, string, int) ([]outbox.Group, string, error) {
	if c.next == "" {
		return nil, "", errLost
	}
	return nil, c.next, nil
}
