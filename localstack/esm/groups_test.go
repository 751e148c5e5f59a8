package esm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/localstack/esm"
)

// Groups are invoked concurrently, each in its order, and one event may contain several groups.
func TestFIFO(t *testing.T) {
	onQueue(t, "jobs.fifo", func(x *fixture) {
		x.sendGroup("g", numbered(12)...)
		x.sendGroup("h", "h1", "h2")
		f := &function{t: t, f: func(context.Context, events.SQSEvent) (any, error) {
			time.Sleep(time.Second)
			return nil, nil
		}}
		x.during(10*time.Second, esm.Config{}, f.invoke)
		slices.SortFunc(f.batches[:2], func(a, b []string) int { return strings.Compare(b[0], a[0]) }) // at the same time
		f.wantBatches(numbered(12)[:10], []string{"h1", "h2"}, numbered(12)[10:])
		if got := f.at[1].Sub(x.start); got != 0 {
			t.Errorf("group h was invoked after %s, want beside group g", got)
		}
		if got := f.at[2].Sub(x.start); got != time.Second {
			t.Errorf("the rest of group g was invoked after %s, want after the first batch", got)
		}
	})
}

// watch fails the test when a group is in two invocations at once.
func watch(t *testing.T, f func(context.Context, events.SQSEvent) (any, error)) *function {
	var mu sync.Mutex
	live := map[string]bool{}
	return &function{t: t, f: func(ctx context.Context, e events.SQSEvent) (any, error) {
		group := e.Records[0].Attributes["MessageGroupId"]
		mu.Lock()
		if live[group] {
			t.Errorf("group %s is in two invocations at once", group)
		}
		live[group] = true
		mu.Unlock()
		defer func() {
			mu.Lock()
			live[group] = false
			mu.Unlock()
		}()
		return f(ctx, e)
	}}
}

// A function that makes its messages visible while it runs gets them again, but not at once: Lambda invokes one batch
// of a group at a time.
func TestFIFOOneBatchOfAGroupAtATime(t *testing.T) {
	onQueue(t, "jobs.fifo", func(x *fixture) {
		x.sendGroup("g", "g1", "g2")
		first := true
		f := watch(t, func(_ context.Context, e events.SQSEvent) (any, error) {
			if first {
				first = false
				for _, r := range e.Records {
					x.makeVisible(r.ReceiptHandle)
				}
				time.Sleep(2 * time.Second)
				return nil, errors.New("failed after giving its messages back")
			}
			return nil, nil
		})
		x.during(3*visibility, esm.Config{FunctionTimeout: 5 * time.Second}, f.invoke)
		if got := f.got(); len(got) < 2 {
			t.Errorf("invoked with %q, want a second invocation", got)
		}
		x.wantEmpty()
	})
}

// large returns bodies of which six fit into one event, so that one receive makes two batches.
func large(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = n + strings.Repeat(".", 1_000_000)
	}
	return out
}

// short reverses large.
func short(batches [][]string) [][]string {
	for _, b := range batches {
		for i := range b {
			b[i] = strings.TrimRight(b[i], ".")
		}
	}
	return batches
}

// A message that did not fit into an event is not invoked while the event is, nor if a message of the event failed: it
// would complete before the failed message.
func TestFIFOOrderAcrossThePayloadLimit(t *testing.T) {
	names := []string{"g1", "g2", "g3", "g4", "g5", "g6", "g7", "g8"}
	for _, tt := range []struct {
		name string
		busy bool // both slots are busy: the first batch fails before the second gets a slot
		want [][]string
	}{
		{name: "failure", want: [][]string{names[:6], names[:6], names[6:]}},
		{name: "failure known before the rest has a slot", busy: true, want: [][]string{{"10s"}, {"4s"}, names[:6], names[:6], names[6:]}},
	} {
		runOnQueue(t, tt.name, "jobs.fifo", func(x *fixture) {
			failed := false
			f := watch(x.T, func(_ context.Context, e events.SQSEvent) (any, error) {
				if d, err := time.ParseDuration(e.Records[0].Body); err == nil {
					time.Sleep(d)
					return nil, nil
				}
				time.Sleep(2 * time.Second)
				if !failed {
					failed = true
					return nil, errors.New("failed")
				}
				return nil, nil
			})
			cfg := esm.Config{MaximumConcurrency: 2, FunctionTimeout: 20 * time.Second}
			if tt.busy {
				x.run(cfg, f.invoke)
				x.sendGroup("other", "10s")
				time.Sleep(time.Second)
				x.sendGroup("another", "4s")
				time.Sleep(time.Second)
				x.sendGroup("g", large(names)...)
			} else {
				x.sendGroup("g", large(names)...)
				x.run(cfg, f.invoke)
			}
			time.Sleep(4 * visibility)
			x.mustStop()
			if d := cmp.Diff(tt.want, short(f.got())); d != "" {
				x.Errorf("batches (-want +got):\n%s", d)
			}
			x.wantEmpty()
			if took := f.at[len(f.at)-1].Sub(f.at[len(f.at)-2]); took != 2*time.Second {
				x.Errorf("the rest was invoked %s after the first part, want when that had ended", took)
			}
		})
	}
}
