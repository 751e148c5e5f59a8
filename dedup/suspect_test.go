package dedup_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/question"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// mortal is the store of a process that dies: no write of it has an effect then.
type mortal struct {
	*memstore.Store
	dead      atomic.Bool
	noStart   bool // it takes no note of a start
	keepsNote bool // it does not release it
	noName    bool // its notes do not name the record of the last start
}

var errDead = errors.New("the process is dead")

func (s *mortal) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	if s.dead.Load() || s.noStart && question.IsKey(c.Key) {
		return dedup.Grant{}, errDead
	}
	return s.Store.Acquire(ctx, c)
}

func (s *mortal) Renew(ctx context.Context, l dedup.Lease, d time.Duration) (dedup.Lease, error) {
	if s.dead.Load() {
		return dedup.Lease{}, errDead
	}
	return s.Store.Renew(ctx, l, d)
}

func (s *mortal) Release(ctx context.Context, l dedup.Lease, cause error) error {
	if s.dead.Load() || s.keepsNote && question.IsKey(l.Key) {
		return errDead
	}
	if s.noName && cause != nil {
		text, _, _ := strings.Cut(cause.Error(), " (starts ")
		cause = errors.New(text)
	}
	return s.Store.Release(ctx, l, cause)
}

// TestLoneSuspect: a suspect that crashed the process which ran it apart is one that was alone, until it runs again. Before the receive
// from which suspects run apart, others may have crashed the process.
func TestLoneSuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mortal{Store: memstore.New()}
		once := must.Get(dedup.New(store, "test", func(o *dedup.Options) {
			o.Key = func(*sqsonce.Message) (string, error) { return "event", nil }
		}))(t)
		ran, dies := false, false
		h := once.Handler(func(context.Context, *sqsonce.Message) error {
			if dies {
				store.dead.Store(true)
				return errDead
			}
			ran = true
			return nil
		})
		crash := func(owner string) {
			if owner == "apart" {
				dies = true
				_ = h(settle.RunningSuspect(t.Context()), &sqsonce.Message{ID: "1", ReceiveCount: 3})
				dies = false
				store.dead.Store(false)
			} else {
				must.Get(store.Acquire(t.Context(), dedup.Claim{Key: "test#event", Owner: owner, Lease: time.Second, Retention: time.Hour}))(t)
			}
			time.Sleep(time.Minute)
		}
		crash("first")
		crashes := func(want int) {
			t.Helper()
			r := must.Get(store.Inspect(t.Context(), "test#event"))(t)
			if got := r.Crashes(time.Now()); got != want {
				t.Errorf("%d crashes of %+v, want %d", got, r, want)
			}
		}
		crashes(1)
		for i, alone := range []bool{false, false, true, true} {
			if i == 1 || i == 2 {
				crash([]string{1: "next", 2: "apart"}[i])
				crashes(i + 1)
			}
			ctx, settled := settle.New(settle.WithSuspects(t.Context(), 3))
			s, ok := settle.SuspectOf(h(ctx, &sqsonce.Message{ID: "1", ReceiveCount: i + 2}))
			if !ok || s.Alone != alone || ran {
				t.Errorf("delivery %d: suspect %v, want alone %t; ran %t", i+1, s, alone, ran)
			}
			_ = settled(false)
			crashes(min(i+1, 3)) // no crash before the fourth delivery
		}
		if err := h(settle.RunningSuspect(t.Context()), &sqsonce.Message{ID: "1", ReceiveCount: 3}); err != nil || !ran {
			t.Errorf("error %v, ran %t", err, ran)
		}
		crashes(0)
	})
}

// Of the suspects that run in a crash only the one that started last is accused: those before it had their time alone. None is where the
// store does not tell which one that was, and none starts where the store does not take the note.
func TestAccusedStartedLast(t *testing.T) {
	for name, c := range map[string]struct{ noStart, noInspect, noName bool }{
		"told": {}, "no note": {noStart: true}, "no Inspect": {noInspect: true}, "no name": {noName: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &mortal{Store: memstore.New(), noStart: c.noStart, noName: c.noName}
				var given dedup.Store = store
				if c.noInspect {
					given = struct{ dedup.Store }{store}
				}
				once := must.Get(dedup.New(given, "test", func(o *dedup.Options) {
					o.Key = func(m *sqsonce.Message) (string, error) { return m.ID, nil }
				}))(t)
				dies := make(chan struct{})
				var started atomic.Int64
				h := once.Handler(func(context.Context, *sqsonce.Message) error {
					started.Add(1)
					<-dies
					return errDead
				})
				deliver := func(ctx context.Context, id string) error {
					return h(ctx, &sqsonce.Message{ID: id, ReceiveCount: 3})
				}
				events := []string{"first", "last", "between"}
				for _, id := range events {
					must.Get(store.Acquire(t.Context(), dedup.Claim{Key: "test#" + id, Owner: id, Lease: time.Second, Retention: time.Hour}))(t)
				}
				time.Sleep(time.Minute)
				for _, id := range events {
					if s, ok := settle.SuspectOf(deliver(settle.WithSuspects(t.Context(), 3), id)); !ok || s.Alone {
						t.Fatalf("%s is no suspect, or accused: %+v", id, s)
					}
				}
				if c.noStart {
					if err := deliver(settle.RunningSuspect(t.Context()), "first"); !errors.Is(err, sqsonce.ErrUnavailable) || started.Load() > 0 {
						t.Errorf("error %v, started %d, want none without the note", err, started.Load())
					}
					return
				}
				for _, id := range []string{"first", "between", "last"} {
					go deliver(settle.RunningSuspect(t.Context()), id)
					time.Sleep(time.Minute)
				}
				store.dead.Store(true)
				close(dies)
				time.Sleep(5 * time.Minute)
				store.dead.Store(false)
				for range 2 { // the second time by the note
					for _, id := range events {
						if s, ok := settle.SuspectOf(deliver(settle.WithSuspects(t.Context(), 3), id)); !ok || s.Alone != (id == "last" && !c.noInspect && !c.noName) {
							t.Errorf("%s: %+v", id, s)
						}
					}
				}
			})
		})
	}
}

// What a suspect's handler calls under records of the same Once does not start after the suspect: it is the suspect that runs.
func TestAccusedInsideDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mortal{Store: memstore.New()}
		once := must.Get(dedup.New(store, "test", func(o *dedup.Options) {
			o.Key = func(m *sqsonce.Message) (string, error) { return m.ID, nil }
		}))(t)
		h := once.Handler(func(ctx context.Context, _ *sqsonce.Message) error {
			_, err := dedup.Do(ctx, once, "charge", func(context.Context) (int, error) {
				store.dead.Store(true)
				return 0, errDead
			})
			return err
		})
		must.Get(store.Acquire(t.Context(), dedup.Claim{Key: "test#1", Owner: "first", Lease: time.Second, Retention: time.Hour}))(t)
		for _, alone := range []bool{false, true} {
			time.Sleep(5 * time.Minute)
			store.dead.Store(false)
			s, ok := settle.SuspectOf(h(settle.WithSuspects(t.Context(), 3), &sqsonce.Message{ID: "1", ReceiveCount: 3}))
			if !ok || s.Alone != alone {
				t.Errorf("suspect %+v, want accused %t", s, alone)
			}
			_ = h(settle.RunningSuspect(t.Context()), &sqsonce.Message{ID: "1", ReceiveCount: 3})
		}
	})
}

// A note that was not released is no failure of the store: under OnStoreDownRunAnyway too the next suspect does not run without its record.
func TestNoteHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mortal{Store: memstore.New()}
		once := must.Get(dedup.New(store, "test", func(o *dedup.Options) {
			o.Key = func(m *sqsonce.Message) (string, error) { return m.ID, nil }
			o.OnStoreDown = dedup.OnStoreDownRunAnyway
		}))(t)
		ran := ""
		deliver := func(id string) error {
			return once.Handler(func(_ context.Context, m *sqsonce.Message) error { ran += m.ID; return nil })(
				settle.RunningSuspect(t.Context()), &sqsonce.Message{ID: id, ReceiveCount: 3})
		}
		store.keepsNote = true
		if err := deliver("a"); err != nil {
			t.Error(err)
		}
		store.keepsNote = false
		if err := deliver("b"); !errors.Is(err, sqsonce.ErrUnavailable) {
			t.Errorf("while the note of a is held: got %v, want unavailable", err)
		}
		time.Sleep(time.Minute)
		store.noStart = true // as a store that is down
		if err := deliver("c"); err != nil || ran != "ac" {
			t.Errorf("got %v, %q ran", err, ran)
		}
	})
}
