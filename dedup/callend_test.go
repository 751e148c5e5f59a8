package dedup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A call's context has the caller's values, and ends by its own timeout alone, or up to a fiftieth of it earlier; so do contexts that a
// store derives from it.
func TestCallEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var ends callEnds
		caller, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
		start := time.Now()
		for after, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 99 * time.Millisecond: 5 * time.Second, 110 * time.Millisecond: 5110 * time.Millisecond} {
			go func() {
				time.Sleep(after)
				ctx := ends.of(caller, 5*time.Second)
				derived, end := context.WithTimeout(ctx, time.Minute)
				defer end()
				<-derived.Done()
				if got := time.Since(start); got != want || !errors.Is(context.Cause(derived), context.DeadlineExceeded) || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Errorf("of one that begins after %s: ended after %s with %v and %v, want %s", after, got, context.Cause(derived), ctx.Err(), want)
				}
				if d, ok := ctx.Deadline(); ctx.Value(key{}) != "value" || !ok || !d.Equal(start.Add(after+5*time.Second)) {
					t.Errorf("value %v, deadline %s", ctx.Value(key{}), d)
				}
			}()
		}
		time.Sleep(time.Second)
		cancel(errors.New("the caller's own"))
		time.Sleep(10 * time.Second)
	})
}
