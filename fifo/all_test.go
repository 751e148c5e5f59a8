package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestPublishAll(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.Linger = time.Hour })
		var es []fifo.Event
		for i := range 25 {
			es = append(es, event(fmt.Sprint("g", i%20), i))
		}
		start := time.Now()
		receipts, err := p.PublishAll(x.Context(), es)
		if err != nil || time.Since(start) != 0 {
			x.Fatalf("PublishAll: %v after %v, want nil at once", err, time.Since(start))
		}
		for i, r := range receipts {
			want, _ := fifo.DedupID("orders", es[i].ID)
			if r.DedupID != want || r.MessageID == "" || r.Sequence == "" || r.Attempts != 1 {
				x.Errorf("receipt %d: %+v, want that of %s", i, r, es[i].ID)
			}
		}
		if diff := cmp.Diff([]int{10, 10, 5}, x.sizes()); diff != "" {
			x.Errorf("entries by request (-want +got):\n%s", diff)
		}
		if !p.Idle() || x.sent.inFlight() != 0 {
			x.Error("the publisher is not idle after PublishAll")
		}
	})
}

func TestPublishAllOfNothing(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		if r, err := x.publisher().PublishAll(x.Context(), nil); len(r) != 0 || err != nil {
			x.Errorf("PublishAll(nil) = %v, %v", r, err)
		}
	})
}

func TestPublishAllOfMoreThanTheBuffer(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.MaxMessages = 7 })
		es := make([]fifo.Event, 50)
		for i := range es {
			es[i] = event(fmt.Sprint("g", i%3), i)
		}
		if _, err := p.PublishAll(x.Context(), es); err != nil {
			x.Fatal(err)
		}
		if n := len(x.srv.Messages(x.url)); n != 50 {
			x.Errorf("%d messages, want 50", n)
		}
	})
}

// One bad event fails with its index and halts the later events of its group, and no others.
func TestPublishAllWithABadEvent(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		es := []fifo.Event{
			event("a", 1), {ID: "a/v2", Group: "a"}, event("b", 1), event("a", 3), event("a", 4), {Group: "b", Body: "x"}, event("c", 1),
		}
		receipts, err := p.PublishAll(x.Context(), es)
		got := make(map[int]string)
		for _, pe := range split(err) {
			if pe.EventID != es[pe.Index].ID || pe.Group != es[pe.Index].Group {
				x.Errorf("error %+v, want it to name event %d", pe, pe.Index)
			}
			got[pe.Index] = reason(pe)
			if fe, ok := errors.AsType[*sqsonce.FieldError](pe); ok {
				got[pe.Index] = fe.Field
			}
		}
		want := map[int]string{1: "Event.Body", 3: "halted", 4: "halted", 5: "Event.ID"}
		if diff := cmp.Diff(want, got); diff != "" {
			x.Errorf("errors (-want +got):\n%s", diff)
		}
		for i, r := range receipts {
			if _, failed := want[i]; failed != (r == fifo.Receipt{}) {
				x.Errorf("receipt %d: %+v", i, r)
			}
		}
	})
}

// SQS refuses an event while later events of its group wait for capacity: they are halted too.
func TestPublishAllHaltsEventsThatWaitForCapacity(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.MaxMessages = 1 })
		_, err := p.PublishAll(x.Context(), []fifo.Event{event("g", 1), event("g", 2), event("g", 3)})
		got := make(map[int]string)
		for _, pe := range split(err) {
			got[pe.Index] = reason(pe)
		}
		if diff := cmp.Diff(map[int]string{0: "not sent", 1: "halted", 2: "halted"}, got); diff != "" {
			x.Errorf("errors (-want +got):\n%s", diff)
		}
		if q := x.queued("g"); len(q) != 0 {
			x.Errorf("queue has %v, want nothing", q)
		}
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.FailEntries, Code: "InvalidMessageContents"})
}

// At the deadline of a Lambda function the whole call ends.
func TestPublishAllContextEnds(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.InFlight = 1 })
		ctx, cancel := context.WithTimeoutCause(x.Context(), 3*time.Second, errCancelled)
		defer cancel()
		var es []fifo.Event
		for i := range 11 {
			es = append(es, event(fmt.Sprint("g", i), 1))
		}
		es = append(es, event("g0", 2))
		start := time.Now()
		_, err := p.PublishAll(ctx, es)
		if took := time.Since(start); took != 3*time.Second {
			x.Errorf("returned after %v, want 3s: with its context", took)
		}
		if x.sent.inFlight() != 0 || !p.Idle() {
			x.Error("the publisher is not idle after PublishAll")
		}
		errs := split(err)
		if len(errs) != len(es) {
			x.Fatalf("%d errors, want one per event", len(errs))
		}
		for i, pe := range errs {
			want := "unknown"
			if i >= 10 {
				want = "not sent"
			}
			if reason(pe) != want || pe.Index != i || !errors.Is(pe, errCancelled) {
				x.Errorf("event %d: %v, want %s and the context's cause", i, pe, want)
			}
		}
		// The next invocation publishes the same events again.
		x.srv.Set(fault.Plan{})
		if _, err := p.PublishAll(x.Context(), es); err != nil {
			x.Errorf("again: %v", err)
		}
		time.Sleep(2 * time.Minute)
		if n := len(x.srv.Messages(x.url)); n != len(es) {
			x.Errorf("%d messages, want %d: each once", n, len(es))
		}
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.Delay, Delay: time.Minute})
}

// Events of two calls share a group: those of the second call wait, and the others go on when its context ends.
func TestPublishAllSharesGroupsWithPublish(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		first, err := p.Enqueue(x.Context(), event("g", 1))
		if err != nil {
			x.Fatal(err)
		}
		time.Sleep(time.Second / 2) // it is in flight: the request takes a second
		ctx, cancel := context.WithTimeoutCause(x.Context(), time.Second/4, errCancelled)
		defer cancel()
		_, err = p.PublishAll(ctx, []fifo.Event{event("g", 2), event("h", 1)})
		for _, pe := range split(err) {
			if pe.Group == "g" && reason(pe) != "not sent" {
				x.Errorf("an event behind one of another call: %v, want not sent", pe)
			}
		}
		third, err := p.Publish(x.Context(), event("g", 3))
		if err != nil {
			x.Fatal(err)
		}
		r, err := first.Wait(x.Context())
		if err != nil || r.Sequence >= third.Sequence {
			x.Errorf("first %+v, %v; third %+v", r, err, third)
		}
		if diff := cmp.Diff([]string{"g/v1", "g/v3"}, x.queued("g")); diff != "" {
			x.Errorf("queue (-want +got):\n%s", diff)
		}
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Times: 2, Do: fault.Delay, Delay: time.Second})
}

// Between two attempts no request is in flight that could notice the end of the context.
func TestPublishAllContextEndsBetweenAttempts(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		ctx, cancel := context.WithTimeoutCause(x.Context(), 3*time.Second, errCancelled)
		defer cancel()
		start := time.Now()
		_, err := p.PublishAll(ctx, []fifo.Event{event("g", 1), event("h", 1), event("g", 2)})
		if took := time.Since(start); took != 3*time.Second {
			x.Errorf("returned after %v, want 3s: with its context", took)
		}
		errs := split(err)
		if len(errs) != 3 || reason(errs[0]) != "not sent" || reason(errs[1]) != "not sent" || reason(errs[2]) != "not sent" {
			x.Errorf("errors %v, want ErrNotSent for each", errs)
		}
		if !p.Idle() {
			x.Error("the publisher is not idle after PublishAll")
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.FailEntries})
}
