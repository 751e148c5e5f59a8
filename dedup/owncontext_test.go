package dedup

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

type valueKey struct{}

// TestOwnContext: whoever looks at it, and however late, sees what context.WithTimeout would show.
func TestOwnContext(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second
	looks := map[string]func(ctx context.Context) error{
		"at its error": func(ctx context.Context) error { return ctx.Err() },
		"at its cause": func(ctx context.Context) error { return context.Cause(ctx) },
		"at its channel": func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			default:
				return nil
			}
		},
		"through a context made of it": func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return ctx.Err()
		},
	}
	for name, look := range looks {
		for _, early := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				delivery, end := context.WithCancelCause(context.WithValue(t.Context(), valueKey{}, "the delivery's"))
				end(context.Canceled)
				ctx, cancel := (&Once{o: Options{CallTimeout: timeout}}).own(delivery)
				defer cancel()
				want, cancelWant := context.WithTimeout(context.WithoutCancel(delivery), timeout)
				defer cancelWant()
				got, _ := ctx.Deadline()
				if wanted, _ := want.Deadline(); !got.Equal(wanted) {
					t.Errorf("deadline %s, want %s", got, wanted)
				}
				check := func(when string) {
					t.Helper()
					if got, want := look(ctx), look(want); got != want {
						t.Errorf("looked %s %s: %v, want %v", name, when, got, want)
					}
					if ctx.Value(valueKey{}) != "the delivery's" {
						t.Errorf("%s: the delivery's values are gone", when)
					}
				}
				if early {
					check("at the start")
				}
				time.Sleep(timeout + 1)
				synctest.Wait()
				check("after its end")
				cancel()
				check("when it was cancelled later")
			})
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := (&Once{o: Options{CallTimeout: timeout}}).own(t.Context())
				if early && look(ctx) != nil {
					t.Errorf("looked %s at the start: %v", name, look(ctx))
				}
				cancel()
				if look(ctx) != context.Canceled {
					t.Errorf("looked %s when it was cancelled: %v, want %v", name, look(ctx), context.Canceled)
				}
			})
		}
	}
}

// TestOwnContextWakes whoever waits.
func TestOwnContextWakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := (&Once{o: Options{CallTimeout: 5 * time.Second}}).own(t.Context())
		defer cancel()
		child, cancelChild := context.WithCancel(ctx)
		defer cancelChild()
		start := time.Now()
		<-child.Done()
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("woken after %s, want 5s", took)
		}
	})
}

// TestOwnContextCostsLittle: no timer and no channel where nobody waits, and no goroutine for a context made of it.
func TestOwnContextCostsLittle(t *testing.T) {
	o := &Once{o: Options{CallTimeout: time.Minute}}
	delivery, end := context.WithCancel(t.Context())
	defer end()
	if n := testing.AllocsPerRun(100, func() {
		ctx, cancel := o.own(delivery)
		defer cancel()
		if ctx.Err() != nil {
			t.Error(ctx.Err())
		}
	}); n > 3 {
		t.Errorf("%v allocations where nobody waits, want 3", n)
	}
	ctx, cancel := o.own(delivery)
	defer cancel()
	before := runtime.NumGoroutine()
	_, cancelChild := context.WithCancel(ctx)
	defer cancelChild()
	if n := runtime.NumGoroutine() - before; n != 0 {
		t.Errorf("%d goroutines for a context made of it", n)
	}
}
