package dedup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/inboxkit"
	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// observed notes what hooks are called with.
type observed struct {
	mu        sync.Mutex
	decisions []dedup.Decision
	calls     []dedup.StoreCall
	incidents []dedup.Incident
}

func (o *observed) option(opts *dedup.Options) {
	opts.Hooks = append(opts.Hooks, dedup.Hooks{
		Decided:  func(_ context.Context, d dedup.Decision) { note(o, &o.decisions, d) },
		Called:   func(_ context.Context, c dedup.StoreCall) { note(o, &o.calls, c) },
		Incident: func(_ context.Context, i dedup.Incident) { note(o, &o.incidents, i) },
	})
}

func note[T any](o *observed, to *[]T, v T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*to = append(*to, v)
}

func (o *observed) outcomes() (all []dedup.DecisionOutcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.decisions {
		all = append(all, d.Outcome)
	}
	return all
}

func (o *observed) kinds() (all []dedup.IncidentKind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, i := range o.incidents {
		all = append(all, i.Kind)
	}
	return all
}

func (o *observed) results() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.calls {
		all = append(all, c.Operation+" "+c.Result)
	}
	return all
}

// delivering is what a case of TestDecided may change before its one delivery.
type delivering struct {
	*testing.T
	store  *faults
	once   *dedup.Once
	ctx    context.Context
	cancel context.CancelFunc
	m      *sqsonce.Message
}

// complete completes the event in another process.
func (d *delivering) complete(optFns ...func(*dedup.Options)) {
	must.Do(d, newOnce(d.T, d.store, optFns...).Handler(hang(0))(d.ctx, message("1")))
}

// peer runs the event in this process for so long.
func (d *delivering) peer(runs time.Duration) {
	go func() { _ = d.once.Handler(hang(runs))(context.WithoutCancel(d.ctx), message("1")) }()
	synctest.Wait()
}

// Every delivery is decided once, before its handler runs, and the hook is told what became of it.
func TestDecided(t *testing.T) {
	t.Parallel()
	body := func(o *dedup.Options) { o.PayloadHash = func(m *sqsonce.Message) string { return m.Body } }
	changed := func(d *delivering) {
		m := *d.m
		m.Body = "another"
		d.m = &m
	}
	// slowAcquire lets the answer to an acquire come after the end of the lease.
	slowAcquire := func(d *delivering, renewal error) {
		d.store.after = slow("acquire", 2*time.Second)
		d.store.fail("renew", renewal)
	}
	short := func(o *dedup.Options) { o.LeaseDuration = time.Second }
	for _, tt := range []struct {
		name   string
		option func(*dedup.Options)
		before func(d *delivering)
		want   dedup.Decision
		left   time.Duration // of the other owner's lease when the delivery comes
	}{
		{"new", nil, nil, dedup.Decision{Outcome: dedup.DecidedFirst}, 0},
		{"released", nil, func(d *delivering) {
			_ = newOnce(d.T, d.store).Handler(func(context.Context, *sqsonce.Message) error { return errStore })(d.ctx, d.m)
		}, dedup.Decision{Outcome: dedup.DecidedFirst}, 0},
		{"slow acquire, lease renewed", short, func(d *delivering) { slowAcquire(d, nil) },
			dedup.Decision{Outcome: dedup.DecidedFirst, Elapsed: 2 * time.Second}, 0},
		{"crash", nil, func(d *delivering) { crash(d.T, d.store, "1") }, dedup.Decision{Outcome: dedup.DecidedTakeover}, 0},
		{"store down, OnStoreDownRunAnyway", func(o *dedup.Options) { o.OnStoreDown = dedup.OnStoreDownRunAnyway }, func(d *delivering) { d.store.fail("acquire", errStore) },
			dedup.Decision{Outcome: dedup.DecidedUnguarded, Err: errStore}, 0},
		{"completed", nil, func(d *delivering) { d.complete() }, dedup.Decision{Outcome: dedup.DecidedDuplicate}, 0},
		{"completed here", nil, func(d *delivering) { d.peer(0) }, dedup.Decision{Outcome: dedup.DecidedDuplicate, Memory: true}, 0},
		{"completed here while it waits", nil, func(d *delivering) { d.peer(time.Second / 2) },
			dedup.Decision{Outcome: dedup.DecidedDuplicate, Memory: true, Elapsed: time.Second / 2}, 0},
		{"other process", nil, func(d *delivering) { _, _ = other(d.T, d.store.Store, recordKey("1")) },
			dedup.Decision{Outcome: dedup.DecidedInProgress}, time.Minute},
		{"peer", nil, func(d *delivering) { d.peer(time.Minute) },
			dedup.Decision{Outcome: dedup.DecidedInProgress, Memory: true, Elapsed: time.Second}, 30 * time.Second},
		{"peer, host that holds", nil, func(d *delivering) {
			d.peer(time.Minute)
			d.ctx = settle.WithHolding(d.ctx)
		}, dedup.Decision{Outcome: dedup.DecidedInProgress, Memory: true}, 30 * time.Second},
		{"crash, Block", func(o *dedup.Options) { o.OnCrash = dedup.OnCrashBlock }, func(d *delivering) { crash(d.T, d.store, "1") },
			dedup.Decision{Outcome: dedup.DecidedCrashed}, 0},
		{"crash, DeadLetter", func(o *dedup.Options) { o.OnCrash = dedup.OnCrashDeadLetter }, func(d *delivering) { crash(d.T, d.store, "1") },
			dedup.Decision{Outcome: dedup.DecidedCrashed}, 0},
		{"other payload", body, func(d *delivering) { d.complete(body); changed(d) }, dedup.Decision{Outcome: dedup.DecidedMismatch}, 0},
		{"other payload than here", body, func(d *delivering) { d.peer(0); changed(d) },
			dedup.Decision{Outcome: dedup.DecidedMismatch, Memory: true}, 0},
		{"no ID", nil, func(d *delivering) { d.m = &sqsonce.Message{} },
			dedup.Decision{Outcome: dedup.DecidedNoKey, KeySource: sqsonce.KeyFromMessageID, Err: sqsonce.ErrNoEventID}, 0},
		{"key function failed", func(o *dedup.Options) { o.Key = func(*sqsonce.Message) (string, error) { return "", errStore } }, nil,
			dedup.Decision{Outcome: dedup.DecidedNoKey, KeySource: sqsonce.KeyFromFunction, Err: errStore}, 0},
		{"acquire refused", nil, func(d *delivering) { d.store.lose() },
			dedup.Decision{Outcome: dedup.DecidedLost, Err: sqsonce.ErrLeaseLost}, 0},
		{"slow acquire, taken over", short, func(d *delivering) { slowAcquire(d, sqsonce.ErrLeaseLost) },
			dedup.Decision{Outcome: dedup.DecidedLost, Err: sqsonce.ErrLeaseLost, Elapsed: 2 * time.Second}, 0},
		{"store down", nil, func(d *delivering) { d.store.fail("acquire", errStore) }, dedup.Decision{Outcome: dedup.DecidedStoreError, Err: errStore}, 0},
		{"slow acquire, store down", short, func(d *delivering) { slowAcquire(d, errStore) },
			dedup.Decision{Outcome: dedup.DecidedStoreError, Err: errStore, Elapsed: 2 * time.Second}, 0},
		{"cancelled during the acquire", nil, func(d *delivering) {
			d.store.before = func(context.Context, string, int) error { d.cancel(); return d.ctx.Err() }
		}, dedup.Decision{Outcome: dedup.DecidedCancelled, Err: context.Canceled}, 0},
		{"refused before it is cancelled", nil, func(d *delivering) {
			d.store.before = func(context.Context, string, int) error { d.cancel(); return errStore }
		}, dedup.Decision{Outcome: dedup.DecidedStoreError, Err: errStore}, 0},
		{"cancelled before the answer", nil, func(d *delivering) {
			d.store.before = func(context.Context, string, int) error {
				d.cancel()
				return fmt.Errorf("%w: %w", dedup.ErrOutcomeUnknown, errStore)
			}
		}, dedup.Decision{Outcome: dedup.DecidedCancelled, Err: errStore}, 0},
		{"cancelled before the start", nil, func(d *delivering) {
			d.store.after = func(context.Context, string, int) error { d.cancel(); return nil }
		}, dedup.Decision{Outcome: dedup.DecidedCancelled, Err: context.Canceled}, 0},
		{"cancelled during a renewal before the start", short, func(d *delivering) {
			slowAcquire(d, nil)
			d.store.before = func(_ context.Context, op string, _ int) error {
				if op == "renew" {
					d.cancel()
				}
				return d.ctx.Err()
			}
		}, dedup.Decision{Outcome: dedup.DecidedCancelled, Err: context.Canceled, Elapsed: 2 * time.Second}, 0},
		{"cancelled while a peer acquires", nil, func(d *delivering) {
			d.store.before = func(context.Context, string, int) error { time.Sleep(5 * time.Second); return nil }
			d.peer(0)
			time.AfterFunc(time.Second, d.cancel)
		}, dedup.Decision{Outcome: dedup.DecidedCancelled, Err: context.Canceled, Elapsed: time.Second}, 0},
	} {
		must.Run(t, tt.name, func(t *testing.T) {
			var seen observed
			d := &delivering{T: t, store: newFaults(), m: message("1")}
			d.once = newOnce(t, d.store, append(slices.DeleteFunc([]func(*dedup.Options){tt.option}, isNil), seen.option)...)
			d.ctx, d.cancel = context.WithCancel(context.Background())
			defer func() {
				d.cancel()
				time.Sleep(2 * time.Minute) // until the peers have ended
			}()
			if tt.before != nil {
				tt.before(d)
			}
			seen.mu.Lock()
			seen.decisions = nil
			seen.mu.Unlock()
			came := time.Now()
			fence := int64(0)
			err := d.once.Handler(func(ctx context.Context, _ *sqsonce.Message) error {
				fence, _ = dedup.FenceFrom(ctx)
				if len(seen.outcomes()) != 1 {
					t.Error("the handler runs before it is decided")
				}
				return nil
			})(d.ctx, d.m)
			seen.mu.Lock()
			decided := slices.Clone(seen.decisions)
			seen.mu.Unlock()
			if len(decided) != 1 {
				t.Fatalf("decided %v, want once", decided)
			}
			got, want := decided[0], tt.want
			if named := err == nil || want.Err == context.Canceled || want.KeySource != 0 || strings.Contains(err.Error(), recordKey("1")); !named {
				t.Errorf("error %v does not name the record", err)
			}
			if !errors.Is(got.Err, want.Err) {
				t.Errorf("error %v, want %v", got.Err, want.Err)
			}
			got.Err, want.Err, want.Consumer, want.Fence = nil, nil, "billing", fence
			if tt.left > 0 {
				want.Until = came.Add(tt.left)
			}
			if want.KeySource == 0 {
				want.Key, want.KeySource = recordKey("1"), sqsonce.KeyFromAttribute
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func isNil(f func(*dedup.Options)) bool { return f == nil }

// A call of Do is a delivery without a key source, and one of Guard is as one of Handler.
func TestDecidedOfDoAndGuard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen observed
		var called, guarded int64 // the fences
		o := newOnce(t, newFaults(), seen.option)
		call := func(ctx context.Context) (int, error) {
			called, _ = dedup.FenceFrom(ctx)
			return 1, nil
		}
		commits := func(_ context.Context, l dedup.Lease) (bool, error) {
			guarded = l.Fence
			return false, nil
		}
		for range 2 {
			must.Get(dedup.Do(t.Context(), o, "orders|1", call))(t)
			must.Do(t, guard(o, t.Context(), message("2"), commits))
		}
		want := []dedup.Decision{
			{Consumer: "billing", Key: recordKey("1"), Outcome: dedup.DecidedFirst, Fence: called},
			{Consumer: "billing", Key: recordKey("2"), KeySource: sqsonce.KeyFromAttribute, Outcome: dedup.DecidedFirst, Fence: guarded},
			{Consumer: "billing", Key: recordKey("1"), Outcome: dedup.DecidedDuplicate},
			{Consumer: "billing", Key: recordKey("2"), KeySource: sqsonce.KeyFromAttribute, Outcome: dedup.DecidedDuplicate, Memory: true},
		}
		if diff := cmp.Diff(want, seen.decisions); diff != "" {
			t.Errorf("decisions (-want +got):\n%s", diff)
		}
	})
}

// Each call of the store is reported with what it did and how it ended.
func TestCalled(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, tt := range []struct {
		name    string
		before  func(t *testing.T, f *faults)
		runs    time.Duration
		returns error
		want    []string
	}{
		{"done", nil, 0, nil, []string{"acquire ok", "complete ok"}},
		{"failed", nil, 0, broken, []string{"acquire ok", "release ok"}},
		{"renewed", nil, 15 * time.Second, nil, []string{"acquire ok", "renew ok", "complete ok"}},
		{"duplicate", func(t *testing.T, f *faults) {
			_ = newOnce(t, f).Handler(hang(0))(t.Context(), message("1"))
		}, 0, nil, []string{"acquire completed"}},
		{"in progress", func(t *testing.T, f *faults) { _, _ = other(t, f, recordKey("1")) }, 0, nil, []string{"acquire in_progress"}},
		{"crashed", func(t *testing.T, f *faults) { crash(t, f, "1") }, 0, nil, []string{"acquire crashed"}},
		{"acquire refused", func(_ *testing.T, f *faults) { f.lose() }, 0, nil, []string{"acquire lease_lost"}},
		{"lease lost", func(_ *testing.T, f *faults) { f.fail("complete", sqsonce.ErrLeaseLost) }, 0, nil, []string{"acquire ok", "complete lease_lost"}},
		{"acquire failed", func(_ *testing.T, f *faults) { f.fail("acquire", broken) }, 0, nil, []string{"acquire error"}},
		{"acquire's answer lost", func(_ *testing.T, f *faults) {
			f.after = func(context.Context, string, int) error { return broken }
		}, 0, nil, []string{"acquire error"}},
		{"acquire panicked", func(_ *testing.T, f *faults) {
			f.before = func(context.Context, string, int) error { panic(broken) }
		}, 0, nil, []string{"acquire error"}},
		{"unknown outcome", func(_ *testing.T, f *faults) { f.fail("acquire", dedup.ErrOutcomeUnknown) }, 0, nil, []string{"acquire error", "release lease_lost"}},
		{"renewal and release failed", func(_ *testing.T, f *faults) {
			f.before = func(_ context.Context, op string, n int) error {
				if op == "renew" || op == "release" && n == 1 {
					return broken
				}
				return nil
			}
		}, 11 * time.Second, broken, []string{"acquire ok", "renew error", "release error", "release ok"}},
		{"renewal abandoned", func(_ *testing.T, f *faults) {
			f.before = hanging("renew")
		}, 11 * time.Second, nil, []string{"acquire ok", "renew error", "complete ok"}},
	} {
		must.Run(t, tt.name, func(t *testing.T) {
			f := newFaults()
			if tt.before != nil {
				tt.before(t, f)
			}
			var seen observed
			h := newOnce(t, f, seen.option, func(o *dedup.Options) { o.OnCrash = dedup.OnCrashBlock }).Handler(func(context.Context, *sqsonce.Message) error {
				time.Sleep(tt.runs)
				return tt.returns
			})
			_ = h(t.Context(), message("1"))
			synctest.Wait()
			if diff := cmp.Diff(tt.want, seen.results()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			for _, c := range seen.calls {
				granted := c.Result == "ok" && (c.Operation == "acquire" || c.Operation == "renew")
				if c.Consumer != "billing" || c.Key != recordKey("1") || (c.Err != nil) != (c.Result == "error") || c.Until.IsZero() == granted {
					t.Errorf("got %+v, want the record's key, a lease's end where one was granted and an error where it failed", c)
				}
			}
		})
	}
}

// A call takes as long as the store does.
func TestCalledElapsed(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.after = func(_ context.Context, op string, _ int) error {
			time.Sleep(map[string]time.Duration{"acquire": 1, "renew": 2, "complete": 3, "release": 4}[op])
			return nil
		}
		var seen observed
		o := newOnce(t, f, seen.option)
		_ = o.Handler(hang(15*time.Second))(t.Context(), message("1"))
		_ = o.Handler(func(context.Context, *sqsonce.Message) error { return errStore })(t.Context(), message("2"))
		var got []time.Duration
		for _, c := range seen.calls {
			got = append(got, c.Elapsed)
		}
		if want := []time.Duration{1, 2, 3, 1, 4}; !slices.Equal(got, want) {
			t.Errorf("calls took %v, want %v", got, want)
		}
	})
}

// Each kind of incident, and that it comes before the end of the handler's context where the lease is lost.
func TestIncidents(t *testing.T) {
	t.Parallel()
	foreign := fmt.Errorf("%w: %w", sqsonce.ErrLeaseLost, dedup.ErrForeignWriter)
	untilCancelled := func(ctx context.Context, _ *sqsonce.Message) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	fails := func(op string, err error) func(*faults) { return func(f *faults) { f.fail(op, err) } }
	reject := func(context.Context, *sqsonce.Message) error { return sqsonce.Reject(errStore) }
	for _, tt := range []struct {
		name    string
		store   func(f *faults)
		handler sqsonce.Handler
		want    dedup.Incident
	}{
		{"renewal refused", fails("renew", sqsonce.ErrLeaseLost), untilCancelled, dedup.Incident{Kind: dedup.IncidentTakenOver, Err: sqsonce.ErrLeaseLost}},
		{"complete refused", fails("complete", sqsonce.ErrLeaseLost), hang(0), dedup.Incident{Kind: dedup.IncidentTakenOver, Err: sqsonce.ErrLeaseLost}},
		{"release after a reject refused", fails("release", sqsonce.ErrLeaseLost), reject, dedup.Incident{Kind: dedup.IncidentTakenOver, Err: sqsonce.ErrLeaseLost}},
		{"renewals not answered", fails("renew", errStore), untilCancelled, dedup.Incident{Kind: dedup.IncidentExpired}},
		{"renewals not answered, then refused", func(f *faults) {
			f.before = func(_ context.Context, op string, n int) error {
				if op != "renew" {
					return nil
				}
				return []error{errStore, sqsonce.ErrLeaseLost}[n/15] // the second at 45 s, after the end of the lease at 30 s
			}
		}, hang(time.Minute), dedup.Incident{Kind: dedup.IncidentExpired}},
		{"foreign writer, renewal refused", fails("renew", foreign), untilCancelled, dedup.Incident{Kind: dedup.IncidentForeignWriter, Err: foreign}},
		{"foreign writer's record", func(f *faults) { f.Store = told{f.Store, false, true} }, hang(0), dedup.Incident{Kind: dedup.IncidentForeignWriter}},
		{"not completed", fails("complete", &sqsonce.OptionError{}), hang(0), dedup.Incident{Kind: dedup.IncidentNotCompleted, Err: &sqsonce.OptionError{}}},
		{"not released", fails("release", &sqsonce.OptionError{}), func(context.Context, *sqsonce.Message) error { return errStore },
			dedup.Incident{Kind: dedup.IncidentNotReleased, Err: &sqsonce.OptionError{}}},
		{"crashed record not released", func(f *faults) {
			if _, err := granted.Lease(f.Acquire(context.Background(), dedup.Claim{Key: recordKey("1"), Owner: "crashed", Lease: time.Second, Retention: time.Hour})); err != nil {
				panic(err)
			}
			time.Sleep(time.Minute)
			f.before = failing("acquire", errStore, 3)
		}, hang(0), dedup.Incident{Kind: dedup.IncidentNotReleased, Err: errStore}},
		{"own retry", func(f *faults) { f.Store = told{f.Store, true, false} }, hang(0), dedup.Incident{Kind: dedup.IncidentOwnRetry}},
	} {
		must.Run(t, tt.name, func(t *testing.T) {
			f := newFaults()
			tt.store(f)
			var seen observed
			fence := int64(0)
			late := func(o *dedup.Options) {
				o.OnCrash = dedup.OnCrashDeadLetter
				o.Hooks = append(o.Hooks, dedup.Hooks{Incident: func(ctx context.Context, i dedup.Incident) {
					if ctx.Err() != nil {
						t.Errorf("incident %s came after the end of the handler's context", i.Kind)
					}
				}})
			}
			o := newOnce(t, f, seen.option, late)
			h := o.Handler(func(ctx context.Context, m *sqsonce.Message) error {
				fence, _ = dedup.FenceFrom(ctx)
				return tt.handler(ctx, m)
			})
			ctx, settled := settle.New(context.Background())
			err := h(ctx, message("1"))
			if k := tt.want.Kind; k == dedup.IncidentNotCompleted || k != dedup.IncidentExpired && errors.Is(err, sqsonce.ErrLeaseLost) {
				if err == nil || !strings.Contains(err.Error(), recordKey("1")) || errors.Is(err, sqsonce.ErrUnavailable) {
					t.Errorf("error %v does not name the record", err)
				}
			}
			_ = settled(true)
			synctest.Wait()
			if len(seen.incidents) != 1 {
				t.Fatalf("got %+v, want one incident", seen.incidents)
			}
			told := map[dedup.IncidentKind]int64{dedup.IncidentOwnRetry: o.Stats().OwnRetries, dedup.IncidentForeignWriter: o.Stats().ForeignWriters}
			for kind, n := range told {
				if (n == 1) != (kind == tt.want.Kind) {
					t.Errorf("%s: counted %d times", kind, n)
				}
			}
			got, want := seen.incidents[0], tt.want
			if want.Err != nil && (got.Err == nil || !strings.Contains(got.Err.Error(), want.Err.Error())) || want.Err == nil && got.Err != nil {
				t.Errorf("error %v, want %v", got.Err, want.Err)
			}
			got.Err, want.Err, want.Consumer, want.Key, want.Fence = nil, nil, "billing", recordKey("1"), fence
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// No hook is called under a lock: all may ask for the lease, and leave work to the host.
func TestHooksMayAskForTheLease(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.fail("renew", sqsonce.ErrLeaseLost)
		var fences []int64
		ask := func(ctx context.Context) {
			fence, _ := dedup.FenceFrom(ctx)
			l, _ := inboxkit.LeaseFrom(ctx)
			if l.Fence != fence {
				t.Errorf("LeaseFrom has fence %d, FenceFrom %d", l.Fence, fence)
			}
			fences = append(fences, fence)
			sqsonce.OnSettled(ctx, func(bool) {})
		}
		o := newOnce(t, f, func(o *dedup.Options) {
			o.Hooks = []dedup.Hooks{{
				Decided:  func(ctx context.Context, _ dedup.Decision) { ask(ctx) },
				Called:   func(ctx context.Context, _ dedup.StoreCall) { ask(ctx) },
				Incident: func(ctx context.Context, _ dedup.Incident) { ask(ctx) },
			}}
		})
		ctx, settled := settle.New(context.Background())
		var own int64
		if err := o.Handler(func(ctx context.Context, _ *sqsonce.Message) error {
			own, _ = dedup.FenceFrom(ctx)
			<-ctx.Done()
			return nil
		})(ctx, message("1")); err != nil {
			t.Error(err)
		}
		_ = settled(false)
		// The acquire, the decision, the refused renewal, the incident, the complete.
		if want := []int64{0, own, 0, own, 0}; !slices.Equal(fences, want) {
			t.Errorf("fences in the hooks: %v, want %v", fences, want)
		}
	})
}

// A hook that panics changes nothing, is logged once, and is not called again.
func TestHookThatPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		calls := map[string]int{}
		bad := func(name string) {
			calls[name]++
			panic(name)
		}
		var seen observed
		f := newFaults()
		o := newOnce(t, f, func(o *dedup.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&lines, nil))
			o.CacheSize = -1
			o.Hooks = []dedup.Hooks{{
				Decided:  func(context.Context, dedup.Decision) { bad("Decided") },
				Called:   func(context.Context, dedup.StoreCall) { bad("Called") },
				Incident: func(context.Context, dedup.Incident) { bad("Incident") },
			}}
		}, seen.option)
		var e effects
		for range 3 {
			must.Do(t, o.Handler(e.handler)(t.Context(), message("1")))
		}
		f.fail("renew", errStore)
		for _, id := range []string{"2", "3"} {
			cancelled := false
			_ = o.Handler(func(ctx context.Context, _ *sqsonce.Message) error {
				<-ctx.Done()
				cancelled = errors.Is(context.Cause(ctx), sqsonce.ErrLeaseLost)
				return nil
			})(t.Context(), message(id))
			if !cancelled {
				t.Error("the handler was not cancelled at the end of its lease")
			}
		}
		if s := o.Stats(); e.got() != 1 || s.First != 3 || s.Completed != 2 || s.LeasesLost != 2 {
			t.Errorf("%d effects, %+v, want 1, 3 first, 2 completed, 2 leases lost", e.got(), s)
		}
		synctest.Wait() // for the log
		for _, name := range []string{"Decided", "Called", "Incident"} {
			if calls[name] != 1 || strings.Count(lines.String(), `hook="dedup: Hooks.`+name+`"`) != 1 {
				t.Errorf("%s was called %d times, want once; log:\n%s", name, calls[name], lines.String())
			}
		}
		if len(seen.outcomes()) != 5 || len(seen.kinds()) != 2 {
			t.Errorf("hooks beside it saw %v and %v, want all", seen.outcomes(), seen.kinds())
		}
	})
}

// A slow hook is covered by the lease's renewals.
func TestSlowDecidedHook(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		o := newOnce(t, f, func(o *dedup.Options) {
			o.Hooks = []dedup.Hooks{{Decided: func(context.Context, dedup.Decision) { time.Sleep(65 * time.Second) }}}
		})
		err := o.Handler(func(ctx context.Context, _ *sqsonce.Message) error {
			if l, _ := inboxkit.LeaseFrom(ctx); !l.Until.After(time.Now()) {
				t.Errorf("the handler starts %s after the end of its lease", time.Since(l.Until))
			}
			return nil
		})(t.Context(), message("1"))
		if err != nil || f.seen("renew") != 6 {
			t.Errorf("got error %v and %d renewals, want nil and 6", err, f.seen("renew"))
		}
	})
}
