package esm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("m%05d", i)
	}
	return out
}

// Without a batching window each receive is a batch, and is invoked at once.
func TestBatchSize(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.send("a", "b", "c", "d", "e")
		f := always(t, nil, nil)
		x.during(time.Second, esm.Config{BatchSize: 2}, f.invoke)
		// Invocations at the same instant have no order.
		got := slices.SortedFunc(slices.Values(f.got()), slices.Compare)
		if want := [][]string{{"a", "b"}, {"c", "d"}, {"e"}}; !cmp.Equal(want, got) {
			t.Errorf("batches: got %q, want %q", got, want)
		}
		for i, at := range f.at {
			if at != x.start {
				t.Errorf("batch %d was invoked after %s, want at once", i, at.Sub(x.start))
			}
		}
		x.wantEmpty()
	})
}

func TestWindow(t *testing.T) {
	runOnQueue(t, "runs from the first message", "jobs", func(x *fixture) {
		f := always(x.T, nil, nil)
		x.run(esm.Config{BatchSize: 100, BatchingWindow: 10 * time.Second}, f.invoke)
		time.Sleep(7 * time.Second)
		x.send("a")
		time.Sleep(4 * time.Second)
		x.send("b")
		time.Sleep(5 * time.Second)
		x.send("c")
		time.Sleep(5 * time.Second)
		x.send("d") // 14 s after a
		time.Sleep(20 * time.Second)
		x.mustStop()
		f.wantBatches([]string{"a", "b", "c"}, []string{"d"})
		if got, want := f.at[0].Sub(x.start), 17*time.Second; got != want {
			x.Errorf("invoked after %s, want %s", got, want)
		}
	})
	runOnQueue(t, "ends when the batch is full", "jobs", func(x *fixture) {
		x.send(numbered(30)...)
		f := always(x.T, nil, nil)
		x.during(10*time.Second, esm.Config{BatchSize: 25, BatchingWindow: 5 * time.Second}, f.invoke)
		f.wantBatches(numbered(30)[:25], numbered(30)[25:])
		if got := f.at[0].Sub(x.start); got != 0 {
			x.Errorf("the full batch was invoked after %s, want at once", got)
		}
		if got := f.at[1].Sub(x.start); got != 5*time.Second {
			x.Errorf("the other batch was invoked after %s, want 5s", got)
		}
	})
	runOnQueue(t, "ends between whole seconds", "jobs", func(x *fixture) {
		x.send("a")
		f := always(x.T, nil, nil)
		x.run(esm.Config{BatchSize: 100, BatchingWindow: 2 * time.Second}, f.invoke)
		time.Sleep(1500 * time.Millisecond)
		x.send("b")
		time.Sleep(10 * time.Second)
		x.mustStop()
		f.wantBatches([]string{"a", "b"})
		// The last receive waits for a whole second: a shorter wait would be 0, in a busy loop.
		if got, want := f.at[0].Sub(x.start), 2500*time.Millisecond; got != want {
			x.Errorf("invoked after %s, want %s", got, want)
		}
	})
	runOnQueue(t, "ends when a receive fails", "jobs", func(x *fixture) {
		x.send("a")
		x.inject(fault.Rule{Op: "ReceiveMessage", Nth: 2, Times: 50, Do: fault.Error, Code: "AccessDenied"})
		f := always(x.T, nil, nil)
		x.run(esm.Config{BatchSize: 25, BatchingWindow: 300 * time.Second}, f.invoke)
		time.Sleep(time.Second)
		f.wantBatches([]string{"a"})
	})
}

// If the visibility timeout could end in the window, the mapping receives with window + timeout + 30 s.
func TestWindowExtendsVisibility(t *testing.T) {
	for _, tt := range []struct{ window, want time.Duration }{
		{window: 0, want: visibility},
		{window: visibility - 10*time.Second, want: visibility},
		{window: visibility, want: visibility + 10*time.Second + 30*time.Second},
	} {
		runOnQueue(t, tt.window.String(), "jobs", func(x *fixture) {
			x.send("a")
			x.run(esm.Config{BatchSize: 1, BatchingWindow: tt.window, FunctionTimeout: 10 * time.Second}, always(x.T, nil, fmt.Errorf("no")).invoke)
			time.Sleep(time.Second)
			if got := x.srv.Messages(x.url)[0].VisibleAt.Sub(x.start); got != tt.want {
				x.Errorf("received with a visibility of %s, want %s", got, tt.want)
			}
		})
	}
}

// An event of exactly 6 MB is sent, one byte more is not: the last record starts the next one.
func TestPayloadLimit(t *testing.T) {
	for _, tt := range []struct{ extra, want int }{{0, 1}, {1, 2}} {
		runOnQueue(t, fmt.Sprint(tt.extra), "jobs", func(x *fixture) {
			f := always(x.T, nil, nil)
			x.send("x")
			x.during(time.Second, esm.Config{}, f.invoke)
			// A seventh message fills the event exactly; the records differ only in size.
			const size = 900_000
			frame := len(`{"Records":[]}`)
			fill := 6<<20 - frame - 6 - 7*(f.sizes[0]-frame-1) - 6*size + tt.extra
			for range 6 {
				x.send(strings.Repeat("x", size))
			}
			x.send(strings.Repeat("x", fill))
			f = always(x.T, nil, nil)
			x.during(time.Second, esm.Config{}, f.invoke)
			if len(f.sizes) != tt.want || len(slices.Concat(f.got()...)) != 7 {
				x.Errorf("events of %d bytes, want %d of them with all messages", f.sizes, tt.want)
			}
			if tt.extra == 0 && f.sizes[0] != 6<<20 {
				x.Errorf("event of %d bytes, want %d", f.sizes[0], 6<<20)
			}
		})
	}
}

// At the concurrency limit the mapping does not receive.
func TestMaximumConcurrency(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.send(numbered(20)...)
		f := &function{t: t, f: func(context.Context, events.SQSEvent) (any, error) {
			time.Sleep(2 * time.Second)
			return nil, nil
		}}
		x.run(esm.Config{BatchSize: 2, MaximumConcurrency: 3}, f.invoke)
		for range 6 {
			time.Sleep(time.Second)
			inFlight := x.inFlight()
			if inFlight > 6 {
				t.Errorf("%d messages in flight, want at most 3 batches of 2", inFlight)
			}
		}
		time.Sleep(10 * time.Second)
		x.mustStop()
		if f.most != 3 {
			t.Errorf("%d invocations at once, want 3", f.most)
		}
		if got, want := f.at[len(f.at)-1].Sub(x.start), 6*time.Second; got != want {
			t.Errorf("the last of ten batches was invoked after %s, want %s", got, want)
		}
	})
}
