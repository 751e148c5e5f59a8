package fifo_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		key, size, err := p.Check(sized("g", 5<<20))
		if key != "orders|g/v1" || size != 5<<20 || err != nil {
			x.Errorf("got key %q, %d bytes and error %v, want those of the event", key, size, err)
		}
		_, _, err = p.Check(fifo.Event{ID: "1", Group: "g"})
		pe, ok := errors.AsType[*fifo.PublishError](err)
		if !ok || pe.EventID != "1" || pe.Group != "g" || !errors.Is(err, fifo.ErrNotSent) || !cmp.Equal(fields(err), []string{"Event.Body"}) {
			x.Errorf("an event without a body: %v, want the error of Publish", err)
		}
		if n := len(x.srv.Calls()); n != 1 { // CreateQueue
			x.Errorf("%d calls, want none of Check", n-1)
		}
	})
}

func TestFits(t *testing.T) {
	t.Parallel()
	bubble(t, "unused", func(x *fixture) {
		x.url = x.create(orders, map[string]string{"MaximumMessageSize": "2048"})
		p := x.publisher()
		for _, tt := range []struct {
			size  int64
			fits  bool
			reads int
		}{{1024, true, 0}, {mebibyte + 1, false, 0}, {2049, false, 1}, {2048, true, 1}} {
			if fits := p.Fits(x.Context(), tt.size); fits != tt.fits || x.limitReads() != tt.reads {
				x.Errorf("%d bytes: %t after %d reads of the limit, want %t after %d", tt.size, fits, x.limitReads(), tt.fits, tt.reads)
			}
		}
	})
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	why := errors.New("no body")
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		_, err := p.PublishAll(x.Context(), []fifo.Event{event("g", 1), refused(event("g", 2), why), event("g", 3), event("h", 1)})
		want := map[int]string{1: "not sent", 2: "halted"}
		got := map[int]string{}
		for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
			pe, _ := errors.AsType[*fifo.PublishError](err)
			got[pe.Index] = reason(err)
			if pe.Index == 1 && !errors.Is(err, why) {
				x.Errorf("%v, want the reason too", err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			x.Errorf("errors by index (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"g/v1"}, x.queued("g")); diff != "" {
			x.Errorf("group g (-want +got):\n%s", diff)
		}
		// Nothing was accepted: the group is not halted.
		if _, err := p.Publish(x.Context(), event("g", 2)); err != nil {
			x.Errorf("published again: %v", err)
		}
		if _, err := p.Enqueue(x.Context(), refused(event("h", 2), why)); !errors.Is(err, why) || reason(err) != "not sent" {
			x.Errorf("Enqueue: %v, want the reason", err)
		}
		// The reason may be the error of another event.
		_, err = p.Publish(x.Context(), refused(event("i", 1), fifo.ErrUnknownOutcome))
		if reason(err) != "not sent" {
			x.Errorf("%v, want ErrNotSent alone", err)
		}
	})
}

// An event that may be in the queue by an earlier call is not certainly not there because it is refused now. One with a bad
// field is another event.
func TestRefuseAfterAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	why := errors.New("no body")
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		ctx, cancel := context.WithTimeout(x.Context(), 1)
		defer cancel()
		if _, err := p.PublishAll(ctx, []fifo.Event{event("g", 1)}); reason(err) != "unknown" {
			x.Fatalf("%v, want an unknown outcome", err)
		}
		_, err := p.Publish(x.Context(), refused(event("g", 1), why))
		if pe, _ := errors.AsType[*fifo.PublishError](err); reason(err) != "unknown" || errors.Is(err, fifo.ErrNotSent) || pe.FirstAttempt.IsZero() {
			x.Errorf("%v, want an unknown outcome", err)
		}
		_, err = p.Publish(x.Context(), refused(event("g", 1), &sqsonce.OptionError{Field: "Event.Body"}))
		if _, ok := errors.AsType[*sqsonce.OptionError](err); !ok || reason(err) != "not sent" {
			x.Errorf("%v, want a OptionError", err)
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.LoseReply})
}

func refused(e fifo.Event, why error) fifo.Event {
	e.Refused = why
	return e
}
