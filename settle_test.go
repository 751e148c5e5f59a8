package sqsonce

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnSettled(t *testing.T) {
	t.Parallel()
	for _, dead := range []bool{true, false} {
		ctx, settle := WithSettlement(t.Context(), nil)
		var got []any
		for _, name := range []string{"outer", "inner"} {
			if !OnSettled(ctx, func(deadLettered bool) { got = append(got, name, deadLettered) }) {
				t.Fatalf("OnSettled(%s): got false before the host has settled", name)
			}
		}
		if got != nil {
			t.Fatalf("ran %v before the host has settled", got)
		}
		settle(dead)
		settle(!dead)
		if diff := cmp.Diff([]any{"inner", dead, "outer", dead}, got); diff != "" {
			t.Errorf("settle(%t) (-want +got):\n%s", dead, diff)
		}
		if OnSettled(ctx, func(bool) { t.Error("ran after the host has settled") }) {
			t.Error("OnSettled: got true after the host has settled")
		}
	}
}

func TestOnSettledWithoutAHost(t *testing.T) {
	t.Parallel()
	if OnSettled(context.Background(), func(bool) { t.Error("ran without a host") }) {
		t.Error("OnSettled: got true without a host")
	}
}

func TestSettleMayCallBack(t *testing.T) {
	t.Parallel()
	ctx, settle := WithSettlement(t.Context(), nil)
	late := true
	OnSettled(ctx, func(bool) { late = OnSettled(ctx, func(bool) {}) })
	settle(true)
	if late {
		t.Error("OnSettled inside settle: got true, want the caller to act at once")
	}
}

func TestHandlerCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	ctx, _ = WithSettlement(ctx, cancel)
	derived, stop := context.WithCancel(ctx)
	defer stop()
	end := HandlerCancel(derived)
	if end == nil {
		t.Fatal("the host's cancel was not found")
	}
	end(ErrLeaseLost)
	if got := context.Cause(ctx); got != ErrLeaseLost {
		t.Errorf("cause of the handler's context: got %v, want the middleware's", got)
	}
	shared, _ := WithSettlement(t.Context(), nil)
	for name, ctx := range map[string]context.Context{"no host": t.Context(), "a host whose handlers share a context": shared} {
		if HandlerCancel(ctx) != nil {
			t.Errorf("%s: got a cancel", name)
		}
	}
}
