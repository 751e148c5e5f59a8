package sqsonce_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sqsonce/sqsonce"
)

type aroundKey struct{}

// around is an option that notes what Around gets, and what its done does.
type around struct {
	ids, contexts []string // of one batch, and of its calls
	errs          []error
	dones         int
}

func (a *around) option(o *sqsonce.BatchOptions) {
	o.Size, o.Linger = 3, time.Minute
	o.Around = func(ctx context.Context, calls []context.Context, ms []*sqsonce.Message) (context.Context, func([]error)) {
		a.ids, a.contexts = nil, nil
		for i, m := range ms {
			a.ids = append(a.ids, m.ID)
			a.contexts = append(a.contexts, calls[i].Value(aroundKey{}).(string))
			ms[i], calls[i] = nil, nil
		}
		return context.WithValue(ctx, aroundKey{}, "batch"), func(errs []error) {
			a.dones++
			a.errs = append([]error(nil), errs...)
			clear(errs)
		}
	}
}

// callEach calls h for the messages 0, 1 and 2 with contexts that have their IDs, and returns the errors.
func callEach(t *testing.T, h sqsonce.Handler) [3]error {
	var errs [3]error
	var results [3]chan error
	for i := range results {
		results[i] = make(chan error, 1)
		ctx := context.WithValue(t.Context(), aroundKey{}, strconv.Itoa(i))
		go func() { results[i] <- h(ctx, &sqsonce.Message{ID: strconv.Itoa(i)}) }()
	}
	for i := range results {
		errs[i] = <-results[i]
	}
	return errs
}

// TestBatchAround: it gets the messages with the contexts of their calls, and the results; however the batch handler ends. What
// it does with its arguments changes nothing.
func TestBatchAround(t *testing.T) {
	t.Parallel()
	bad := errors.New("bad")
	for name, tc := range map[string]struct {
		h    func([]*sqsonce.Message) []error
		want func(id string, err error) bool
	}{
		"done": {func([]*sqsonce.Message) []error { return nil }, func(_ string, err error) bool { return err == nil }},
		"one fails": {func(ms []*sqsonce.Message) []error {
			errs := make([]error, len(ms))
			for i, m := range ms {
				if m.ID == "1" {
					errs[i] = bad
				}
			}
			return errs
		}, func(id string, err error) bool { return (err == bad) == (id == "1") }},
		"too few":      {func([]*sqsonce.Message) []error { return []error{nil} }, func(_ string, err error) bool { return err != nil }},
		"panics":       {func([]*sqsonce.Message) []error { panic("boom") }, func(_ string, err error) bool { return isPanic(err) }},
		"calls Goexit": {func([]*sqsonce.Message) []error { runtime.Goexit(); return nil }, func(_ string, err error) bool { return isPanic(err) }},
	} {
		var a around
		var value any
		h := sqsonce.Batch(func(ctx context.Context, ms []*sqsonce.Message) []error {
			value = ctx.Value(aroundKey{})
			return tc.h(ms)
		}, a.option)
		for i, err := range callEach(t, h) {
			if !tc.want(strconv.Itoa(i), err) {
				t.Errorf("%s: message %d has %v", name, i, err)
			}
		}
		if value != "batch" || a.dones != 1 || len(a.errs) != 3 {
			t.Errorf("%s: the batch's context has %v, done was called %d times with %v", name, value, a.dones, a.errs)
		}
		for i, id := range a.ids {
			if !tc.want(id, a.errs[i]) {
				t.Errorf("%s: done got %v for message %s", name, a.errs[i], id)
			}
		}
		if diff := cmp.Diff(a.ids, a.contexts); diff != "" || !cmp.Equal([]string{"0", "1", "2"}, a.ids, cmpopts.SortSlices(strings.Compare)) {
			t.Errorf("%s: contexts of %v for messages %v", name, a.contexts, a.ids)
		}
	}
}

func isPanic(err error) bool { _, ok := errors.AsType[*sqsonce.PanicError](err); return ok }

// TestBatchAroundThatFails: the batch runs as without it, and a line says once that it is not called again.
func TestBatchAroundThatFails(t *testing.T) { // not parallel: it sets slog's default
	type result = func([]error)
	for name, tc := range map[string]struct {
		around func(context.Context) (context.Context, result)
		calls  int
	}{
		"panics":      {func(context.Context) (context.Context, result) { panic("boom") }, 1},
		"done panics": {func(ctx context.Context) (context.Context, result) { return ctx, func([]error) { panic("boom") } }, 1},
	} {
		var book bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&book, nil)))
		var calls, ended atomic.Int32
		h := sqsonce.Batch(func(ctx context.Context, _ []*sqsonce.Message) []error {
			if ctx.Err() != nil {
				ended.Add(1)
			}
			return nil
		}, func(o *sqsonce.BatchOptions) {
			o.Size, o.Linger = 3, time.Minute
			o.Around = func(ctx context.Context, _ []context.Context, _ []*sqsonce.Message) (context.Context, func([]error)) {
				calls.Add(1)
				return tc.around(ctx)
			}
		})
		for range 3 {
			if errs := callEach(t, h); errs != [3]error{} || ended.Load() != 0 {
				t.Errorf("%s: got %v, and %d ended contexts", name, errs, ended.Load())
			}
		}
		slog.SetDefault(before)
		if n := strings.Count(book.String(), "hook=BatchOptions.Around"); n != 1 || int(calls.Load()) != tc.calls {
			t.Errorf("%s: %d lines and %d calls, want 1 and %d", name, n, calls.Load(), tc.calls)
		}
	}
}
