package dedup_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// TestLoneSuspect: a suspect that crashed the process which ran it apart is one that was alone, until it runs again. Before the receive
// from which suspects run apart, others may have crashed the process.
func TestLoneSuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		once := must.Get(dedup.New(store, "test", func(o *dedup.Options) {
			o.Key = func(*sqsonce.Message) (string, error) { return "event", nil }
		}))(t)
		ran := false
		h := once.Handler(func(context.Context, *sqsonce.Message) error { ran = true; return nil })
		crash := func(owner string) {
			must.Get(store.Acquire(t.Context(), dedup.Claim{Key: "test#event", Owner: owner, Lease: time.Second, Retention: time.Hour}))(t)
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
				crash("next")
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
