package outbox_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/outboxtest/refstore"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestNewRelayReportsAllBadArguments(t *testing.T) {
	bubble(t, func(x *fixture) {
		var nilStore *nothing
		_, err := outbox.NewRelay(nilStore, nil, func(o *outbox.Options) {
			*o = outbox.Options{Groups: -1, Page: 1001, Poll: time.Microsecond, LeaseDuration: time.Second, MaxAge: time.Hour, OnRefused: 7}
		})
		want := []string{"store", "publisher", "Options.Groups", "Options.Page", "Options.Poll", "Options.LeaseDuration", "Options.MaxAge", "Options.OnRefused"}
		if diff := cmp.Diff(want, testaws.Fields(err)); diff != "" {
			t.Errorf("fields (-want +got):\n%s", diff)
		}
		p := must.Get(fifo.NewPublisher(x.sqs, x.url, "payments"))(t)
		if _, err := outbox.NewRelay(x.table.Open(), p); !cmp.Equal(testaws.Fields(err), []string{"publisher"}) {
			t.Errorf("another namespace: %v, want a OptionError of publisher", err)
		}
		r := x.relay()
		if err := r.Drain(x.Context(), "a", ""); !cmp.Equal(testaws.Fields(err), []string{"groups[1]"}) || x.ops.of("Claim") != 0 {
			t.Errorf("Drain of an empty name: %v, want a OptionError before any call", err)
		}
		must.Do(t, r.Drain(x.Context()))
		if _, err := r.Parked(x.Context(), 0); !cmp.Equal(testaws.Fields(err), []string{"limit"}) {
			t.Errorf("Parked of limit 0: %v, want a OptionError", err)
		}
	})
}

type nothing struct{ outbox.Store }

// An idle Run looks for groups once a Poll, and does nothing else; nothing is left of it.
func TestIdleRun(t *testing.T) {
	bubble(t, func(x *fixture) {
		stop := x.run(x.relay())
		time.Sleep(1000 * time.Second)
		if took, err := stop(); err != nil || took != 0 {
			t.Errorf("Run: %v after %v, want nil at once", err, took)
		}
		if n := x.ops.of("Groups"); n < 950 || n > 1050 {
			t.Errorf("%d calls of Groups in 1000 s, want about 1000", n)
		}
		for _, op := range []string{"Claim", "Read", "Delete", "Parked"} {
			if n := x.ops.of(op); n != 0 {
				t.Errorf("%d calls of %s", n, op)
			}
		}
		if n := x.requests(); n != 0 {
			t.Errorf("%d requests", n)
		}
		synctest.Wait()
	})
}

// Run finds what was committed, whoever rings.
func TestRun(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay()
		x.commit(25, "a", "b")
		stop := x.run(r)
		time.Sleep(3 * time.Second)
		x.wantQueued("a", 25)
		x.wantQueued("b", 25)
		x.commit(3, "c")
		start := time.Now()
		r.Ring("c")
		synctest.Wait()
		time.Sleep(50 * time.Millisecond)
		x.wantQueued("c", 3)
		if time.Since(start) > 100*time.Millisecond {
			t.Errorf("took %v after the bell", time.Since(start))
		}
		must.Get(stop())(t)
		if n := x.log.lines("outbox: swept"); n != 1 {
			t.Errorf("%d lines with the backlog, want one a minute:\n%s", n, x.log)
		}
	})
}

// Six groups of 3,000 events, more than are published at once, delay 194 others by a page at a time.
func TestHotGroupsDelayNoOther(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(x *fixture, r *outbox.Relay){
		"Run": func(x *fixture, r *outbox.Relay) {
			stop := x.run(r)
			time.Sleep(20 * time.Second)
			if _, err := stop(); err != nil {
				x.Error(err)
			}
		},
		"Sweep": func(x *fixture, r *outbox.Relay) {
			ctx, cancel := context.WithTimeout(x.Context(), 30*time.Second)
			defer cancel()
			if _, err := r.Sweep(ctx); err == nil {
				x.Error("Sweep: nil, though the hot group was not drained")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(x *fixture) {
				x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: send, Do: fault.Delay, Delay: 20 * time.Millisecond}}})
				r := x.relay(func(o *outbox.Options) { o.Groups, o.Settle = 4, -1 })
				names := groupNames(200)
				x.commit(3000, names[:6]...)
				x.commit(2, names[6:]...)
				call(x, r)
				for _, g := range names[6:] {
					x.wantQueued(g, 2)
				}
				for _, g := range names[:6] {
					if n := len(x.queued(g)); n < 50 || n == 3000 {
						x.Errorf("%d events of hot group %s, want that it goes on beside the others and is not finished", n, g)
					}
				}
			})
		})
	}
}

func TestContextOfDrainEnds(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay()
		x.commit(5, "g")
		ctx, cancel := context.WithTimeoutCause(x.Context(), 90*time.Second, errEnough)
		defer cancel()
		start := time.Now()
		err := r.Drain(ctx, "g")
		if took := time.Since(start); took > 95*time.Second || err == nil {
			t.Errorf("Drain: %v after %v, want an error when its context ends", err, took)
		}
		synctest.Wait()
		if got := len(x.table.Events("g")); got != 5 {
			t.Errorf("%d events are left, want 5", got)
		}
	}, fault.Rule{Op: "SendMessageBatch", Do: fault.Reset})
}

var errEnough = fmt.Errorf("enough")

// What a relay has learnt of a group goes with each read: no request is made to learn it again.
func TestKnown(t *testing.T) {
	bubble(t, func(x *fixture) {
		s := &recorder{Store: x.table.Open()}
		r := x.relayOf(s, func(o *outbox.Options) { o.Settle = -1 })
		x.commit(25, "g")
		must.Do(t, r.Drain(x.Context(), "g"))
		x.commit(1, "g")
		x.commit(12, "h")
		must.Get(r.Sweep(x.Context()))(t)
		want := map[string][]outbox.Known{
			"g": {{}, {Confirmed: 10, Seen: 10}, {Confirmed: 20, Seen: 20}, {Confirmed: 25, Seen: 26}},
			"h": {{Seen: 12}, {Confirmed: 10, Seen: 12}},
		}
		if diff := cmp.Diff(want, s.known); diff != "" {
			t.Errorf("what Read was told (-want +got):\n%s", diff)
		}
		if n := s.Store.Probes(); n != 0 {
			t.Errorf("%d probes, want none of groups of which the relay knows the predecessor", n)
		}
	})
}

// recorder keeps what Read was told.
type recorder struct {
	*refstore.Store
	mu    sync.Mutex
	known map[string][]outbox.Known
}

func (s *recorder) Read(ctx context.Context, g outbox.Group, k outbox.Known, limit int) ([]outbox.Entry, error) {
	s.mu.Lock()
	if s.known == nil {
		s.known = make(map[string][]outbox.Known)
	}
	s.known[g.Name] = append(s.known[g.Name], k)
	s.mu.Unlock()
	return s.Store.Read(ctx, g, k, limit)
}

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
