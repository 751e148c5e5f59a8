package host

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
)

type hookKey string

// recorder makes hooks that write down their calls, and what of the others' contexts they see.
type recorder struct{ calls []string }

func (r *recorder) hooks(name string) sqsonce.Hooks {
	note := func(hook string, ctx context.Context) {
		seen := ""
		for _, other := range []hookKey{"a", "b"} {
			if ctx.Value(other) != nil {
				seen += string(other)
			}
		}
		r.calls = append(r.calls, hook+" "+name+" sees "+seen)
	}
	return sqsonce.Hooks{
		Start: func(ctx context.Context, _ sqsonce.Delivery) context.Context {
			note("Start", ctx)
			return context.WithValue(ctx, hookKey(name), true)
		},
		Extended: func(ctx context.Context, _ sqsonce.Delivery, _ sqsonce.Extension) { note("Extended", ctx) },
		End:      func(ctx context.Context, _ sqsonce.Delivery, _ sqsonce.Return) { note("End", ctx) },
	}
}

// lines is a log, and how often it has a text.
func lines() (*slog.Logger, func(string) int) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, nil)), func(text string) int { return strings.Count(b.String(), text) }
}

func TestHooksNest(t *testing.T) {
	t.Parallel()
	log, _ := lines()
	var r recorder
	all := []sqsonce.Hooks{r.hooks("a"), {}, r.hooks("b")}
	hooks := NewHooks(log, "test", all)
	clear(all)
	c := hooks.Call(sqsonce.Delivery{})
	ctx := c.Start(t.Context())
	if ctx.Value(hookKey("a")) == nil || ctx.Value(hookKey("b")) == nil {
		t.Error("the handler's context has not the values of both sets of hooks")
	}
	c.Extended(sqsonce.Extension{})
	c.End(sqsonce.Return{})
	want := []string{"Start a sees ", "Start b sees a", "Extended a sees ab", "Extended b sees ab", "End b sees ab", "End a sees ab"}
	if !slices.Equal(r.calls, want) {
		t.Errorf("got %q, want %q", r.calls, want)
	}
}

// TestHookThatPanics: it is logged once and not called again. The others are, and the handler has its context.
func TestHookThatPanics(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(h *sqsonce.Hooks, calls *int){
		"Start": func(h *sqsonce.Hooks, calls *int) {
			h.Start = func(context.Context, sqsonce.Delivery) context.Context { *calls++; panic("boom") }
		},
		"End": func(h *sqsonce.Hooks, calls *int) {
			h.End = func(context.Context, sqsonce.Delivery, sqsonce.Return) { *calls++; panic("boom") }
		},
		"Extended": func(h *sqsonce.Hooks, calls *int) {
			h.Extended = func(context.Context, sqsonce.Delivery, sqsonce.Extension) { *calls++; panic("boom") }
		},
	} {
		log, count := lines()
		var r recorder
		calls := 0
		bad := r.hooks("b")
		change(&bad, &calls)
		hooks := NewHooks(log, "test", []sqsonce.Hooks{r.hooks("a"), bad})
		for range 3 {
			c := hooks.Call(sqsonce.Delivery{})
			if ctx := c.Start(t.Context()); ctx.Value(hookKey("a")) == nil {
				t.Errorf("%s: the handler's context has not the values of the first set of hooks", name)
			}
			c.Extended(sqsonce.Extension{})
			c.End(sqsonce.Return{})
		}
		if len(r.calls) != 3*5 || calls != 1 {
			t.Errorf("%s: %d calls of the other hooks and %d of it, want 15 and 1: %q", name, len(r.calls), calls, r.calls)
		}
		if count(`hook="test: Hooks.`+name+`"`) != 1 || count("level=ERROR") != 1 || count("stack=") != 1 || count(`error="the hook panicked: boom"`) != 1 {
			t.Errorf("%s: %d lines, want 1 with the stack", name, count("level=ERROR"))
		}
	}
}

// TestEndOnce: the first end of a call that was started counts.
func TestEndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var ends []sqsonce.Return
		extended := 0
		hooks := NewHooks(slog.Default(), "test", []sqsonce.Hooks{{
			Start: func(ctx context.Context, d sqsonce.Delivery) context.Context {
				time.Sleep(time.Duration(d.Run) * time.Second)
				return ctx
			},
			Extended: func(context.Context, sqsonce.Delivery, sqsonce.Extension) { extended++ },
			End: func(_ context.Context, _ sqsonce.Delivery, r sqsonce.Return) {
				mu.Lock()
				defer mu.Unlock()
				ends = append(ends, r)
			},
		}})
		want := func(when string, want ...sqsonce.Return) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(ends, want) {
				t.Errorf("%s: got %+v, want %+v", when, ends, want)
			}
			ends = nil
		}
		done, abandoned := sqsonce.Return{Outcome: sqsonce.OutcomeDone}, sqsonce.Return{Outcome: sqsonce.OutcomeAbandoned}

		c := hooks.Call(sqsonce.Delivery{Run: 0})
		c.Extended(sqsonce.Extension{})
		c.End(abandoned)
		want("not started")
		c.Start(t.Context())
		c.Extended(sqsonce.Extension{})
		time.Sleep(3 * time.Second)
		c.End(done)
		c.End(abandoned)
		c.Extended(sqsonce.Extension{})
		want("ended twice", sqsonce.Return{Outcome: sqsonce.OutcomeDone, Elapsed: 3 * time.Second})
		if extended != 1 {
			t.Errorf("Extended was called %d times, want once: while the handler ran", extended)
		}

		c = hooks.Call(sqsonce.Delivery{Run: 10})
		started := make(chan struct{})
		go func() { c.Start(t.Context()); close(started) }()
		time.Sleep(4 * time.Second)
		c.End(abandoned)
		want("while Start runs")
		<-started
		c.End(done)
		want("when Start has returned", sqsonce.Return{Outcome: sqsonce.OutcomeAbandoned, Elapsed: 4 * time.Second})
	})
}

// TestNoHooks: a host without hooks pays nothing for them.
func TestNoHooks(t *testing.T) {
	hooks := NewHooks(slog.Default(), "test", []sqsonce.Hooks{{}, {}})
	m := &sqsonce.Message{ID: "a"}
	allocs := testing.AllocsPerRun(100, func() {
		c := hooks.Call(sqsonce.Delivery{Message: m})
		if ctx := c.Start(t.Context()); ctx != t.Context() {
			t.Error("another context without hooks")
		}
		c.Extended(sqsonce.Extension{})
		c.End(sqsonce.Return{})
	})
	if hooks != nil || allocs != 0 {
		t.Errorf("%d sets of hooks and %v allocations, want none", len(hooks), allocs)
	}
}
