package sqsonce

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnSettled(t *testing.T) {
	t.Parallel()
	for _, dead := range []bool{true, false} {
		ctx, settle := WithSettlement(t.Context())
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
	ctx, settle := WithSettlement(t.Context())
	late := true
	OnSettled(ctx, func(bool) { late = OnSettled(ctx, func(bool) {}) })
	settle(true)
	if late {
		t.Error("OnSettled inside settle: got true, want the caller to act at once")
	}
}
