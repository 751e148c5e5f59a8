package settle

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLater(t *testing.T) {
	t.Parallel()
	for _, dead := range []bool{true, false} {
		ctx, settle := New(t.Context())
		var got []any
		for _, name := range []string{"outer", "inner"} {
			if !Later(ctx, func(deadLettered bool) { got = append(got, name, deadLettered) }) {
				t.Fatalf("Later(%s): got false before the host has settled", name)
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
		if Later(ctx, func(bool) { t.Error("ran after the host has settled") }) {
			t.Error("Later: got true after the host has settled")
		}
	}
}

func TestLaterWithoutAHost(t *testing.T) {
	t.Parallel()
	if Later(context.Background(), func(bool) { t.Error("ran without a host") }) {
		t.Error("Later: got true without a host")
	}
	if _, hosted := Host(context.Background()); hosted {
		t.Error("Host: got true without a host")
	}
}

func TestSettleMayCallBack(t *testing.T) {
	t.Parallel()
	ctx, settle := New(t.Context())
	late := true
	Later(ctx, func(bool) { late = Later(ctx, func(bool) {}) })
	settle(true)
	if late {
		t.Error("Later inside settle: got true, want the caller to act at once")
	}
}

func TestKnownKey(t *testing.T) {
	t.Parallel()
	show := func(ctx context.Context, key string) { ShowKey(ctx, key, "c#"+key) }
	show(t.Context(), "no host")
	KeepKey(t.Context(), "no host")
	if known, kept := KnownKey(t.Context()), KeptKey(t.Context()); known+kept+RecordKey(t.Context()) != "" {
		t.Errorf("without a host: known %q, kept %q, want no key", known, kept)
	}
	for _, tt := range []struct {
		tell                []func(context.Context, string)
		known, kept, record string
	}{
		{nil, "", "", ""},
		{[]func(context.Context, string){KeepKey, show}, "0", "0", ""},
		{[]func(context.Context, string){show, KeepKey, KeepKey}, "0", "1", "c#0"},
		{[]func(context.Context, string){show, show}, "0", "", "c#0"},
	} {
		ctx, _ := New(t.Context())
		for i, tell := range tt.tell {
			tell(ctx, strconv.Itoa(i))
		}
		if known, kept := KnownKey(ctx), KeptKey(ctx); known != tt.known || kept != tt.kept || RecordKey(ctx) != tt.record {
			t.Errorf("%d keys: known %q, kept %q; want %q and %q", len(tt.tell), known, kept, tt.known, tt.kept)
		}
	}
}

// Mocks print the context of a handler, while it tells its host something.
func TestPrintedContext(t *testing.T) {
	t.Parallel()
	ctx, _ := New(t.Context())
	KeepKey(ctx, "key")
	if got := fmt.Sprintf("%+v", ctx); strings.Contains(got, "key") {
		t.Errorf("printed with its fields: %s", got)
	}
}

// A function that panics, or ends its goroutine, does not keep the others from running, nor the host.
func TestSettleOfAFunctionThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(bool){"panic": func(bool) { panic("boom") }, "Goexit": func(bool) { runtime.Goexit() }} {
		ctx, settle := New(t.Context())
		ran := false
		Later(ctx, func(bool) { ran = true })
		Later(ctx, f)
		if err := settle(false); err == nil || !ran {
			t.Errorf("%s: got error %v, the other function ran: %t; want an error and true", name, err, ran)
		}
	}
}
