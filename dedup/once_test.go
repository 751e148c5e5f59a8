package dedup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// A retention that is shorter than a message can take to come back is logged where the host knows that: once.
func TestShortRetentionIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		for _, tt := range []struct {
			longest time.Duration
			lines   int
		}{{0, 0}, {29 * day, 0}, {29*day + 1, 1}} {
			var lines bytes.Buffer
			o := newOnce(t, memstore.New(), func(o *dedup.Options) { o.Logger = slog.New(slog.NewTextHandler(&lines, nil)) })
			h := o.Handler(hang(0))
			for _, id := range []string{"1", "2"} {
				must.Do(t, h(settle.WithLongestReturn(t.Context(), tt.longest), message(id)))
			}
			synctest.Wait() // for the log
			if got := lines.String(); strings.Count(got, "level=WARN") != tt.lines || strings.Count(got, "consumer=billing retention=696h0m0s longest_return=") != tt.lines {
				t.Errorf("messages that can come back for %s: log %q, want %d warnings with both times", tt.longest, got, tt.lines)
			}
		}
	})
}

// Two handlers of one Once are one consumer. The second one says so; those after it, and a handler that is used twice, do not.
func TestHandlersOfOneOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		o := newOnce(t, memstore.New(), func(o *dedup.Options) { o.Logger = slog.New(slog.NewTextHandler(&lines, nil)) })
		var e effects
		if o.Handler(nil) != nil {
			t.Error("a nil handler is one")
		}
		h := o.Handler(e.handler)
		for _, id := range []string{"1", "2"} {
			must.Do(t, h(t.Context(), message(id)))
		}
		synctest.Wait() // for the log
		if lines.Len() > 0 {
			t.Errorf("one handler: log has %q, want nothing", lines.String())
		}
		for range 2 {
			must.Do(t, guard(o, t.Context(), message("1"), func(context.Context, dedup.Lease) (bool, error) { return false, e.handler(t.Context(), nil) }))
			synctest.Wait()
			got := lines.String()
			if strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "share their events") || !strings.Contains(got, "consumer=billing") || e.got() != 2 {
				t.Errorf("another handler, of an inbox: %d runs, log %q, want 2 runs and one warning with the consumer", e.got(), got)
			}
		}
	})
}

// The process dies after the effect and before the complete. Only then does a handler run twice, and not before the lease
// is over.
func TestCrashBetweenEffectAndRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		var e effects
		dies := newFaults()
		dies.Store = store
		dies.before = func(_ context.Context, op string, _ int) error {
			if op != "acquire" {
				return errStore // no request of the dead process arrives
			}
			return nil
		}
		crashed := newOnce(t, dies)
		if err := crashed.Handler(e.handler)(t.Context(), message("1")); !errors.Is(err, errStore) {
			t.Fatalf("got error %v, want the store's", err)
		}

		survivor := newOnce(t, store)
		start := time.Now()
		for {
			err := survivor.Handler(e.handler)(t.Context(), message("1"))
			if err == nil {
				break
			}
			o := sqsonce.OutcomeOf(err)
			if !o.Retry || !inProgress(err) {
				t.Fatalf("got error %v, want in progress", err)
			}
			time.Sleep(o.After)
		}
		if e.got() != 2 {
			t.Errorf("handler ran %d times, want 2: its effect and its complete are two steps", e.got())
		}
		if waited := time.Since(start); waited > 31*time.Second {
			t.Errorf("taken over after %s, want at most the lease and a second", waited)
		}
		if s := survivor.Stats(); s.Takeovers != 1 || s.First != 0 {
			t.Errorf("stats: got %+v, want one takeover", s)
		}
		if err := survivor.Handler(e.handler)(t.Context(), message("1")); err != nil || e.got() != 2 {
			t.Errorf("after the takeover: error %v and %d runs, want nil and 2", err, e.got())
		}
	})
}

// A handler that changes its message does not complete another event's record.
func TestKeyIsFrozenBeforeTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		h := newOnce(t, store, func(o *dedup.Options) {
			o.PayloadHash = func(m *sqsonce.Message) string { return m.Body }
		}).Handler(func(_ context.Context, m *sqsonce.Message) error {
			m.Attributes[sqsonce.AttrEventID] = sqsonce.Attribute{Type: "String", String: "2"}
			m.Body, m.ID = "changed", "changed"
			return nil
		})
		must.Do(t, h(t.Context(), message("1")))
		r, err := store.Inspect(t.Context(), recordKey("1"))
		if err != nil || !r.Completed || r.Result.Validation != "{}" {
			t.Errorf("record of event 1: got %+v, %v, want it completed with its own hash", r, err)
		}
		if _, err := store.Inspect(t.Context(), recordKey("2")); !errors.Is(err, dedup.ErrNotFound) {
			t.Errorf("record of event 2: got error %v, want ErrNotFound", err)
		}
	})
}

// A handler of one Once inside a handler of another: each has its own record.
func TestNestedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		var fences []int64
		note := func(ctx context.Context) {
			f, ok := dedup.FenceFrom(ctx)
			if !ok {
				t.Error("FenceFrom: got none inside a handler")
			}
			fences = append(fences, f)
		}
		inner := must.Get(dedup.New(store, "email"))(t)
		h := newOnce(t, store).Handler(func(ctx context.Context, m *sqsonce.Message) error {
			note(ctx)
			time.Sleep(time.Second)
			return inner.Handler(func(ctx context.Context, _ *sqsonce.Message) error { note(ctx); return nil })(ctx, m)
		})
		must.Do(t, h(t.Context(), message("1")))
		for _, key := range []string{recordKey("1"), "email#orders|1"} {
			if r, err := store.Inspect(t.Context(), key); err != nil || !r.Completed {
				t.Errorf("record %s: got %+v, %v, want it completed", key, r, err)
			}
		}
		if len(fences) != 2 || fences[0] == fences[1] {
			t.Errorf("fences: got %v, want each lease's own", fences)
		}
		if _, ok := dedup.FenceFrom(t.Context()); ok {
			t.Error("FenceFrom outside a handler: got one")
		}
	})
}

// A copy of a message whose delivery still sends its complete, under a lease that is over, does not run the event again.
func TestCopyOfASuccessThatIsNotRecorded(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.down(sqsonce.Unavailable(errStore), "complete", "renew")
		var e effects
		h := newOnce(t, f).Handler(e.handler)
		ctx, _ := hosted(time.Hour)
		first := make(chan error, 1)
		go func() { first <- h(ctx, message("1")) }()
		time.Sleep(45*time.Second - time.Millisecond) // the lease is over
		f.up()
		copied, _ := hosted(time.Hour)
		if err := h(copied, message("1")); err != nil {
			t.Errorf("copy: got error %v, want nil", err)
		}
		if err := <-first; err != nil {
			t.Errorf("first delivery: got error %v, want nil", err)
		}
		if e.got() != 1 || !completed(t, f.Store, "1") {
			t.Errorf("%d runs, completed %v, want 1 and true", e.got(), completed(t, f.Store, "1"))
		}
	})
}
