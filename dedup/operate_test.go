package dedup_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
)

// The process that completed an event acknowledges it for a minute without a look at its record: a message that an operator sends
// at once after a reopen is lost, and 65 s later it runs.
func TestReopenedEventWaitsForTheMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		var e effects
		h := newOnce(t, s).Handler(e.handler)
		deliver := func(want int) {
			t.Helper()
			must.Do(t, h(t.Context(), message("1")))
			if e.got() != want {
				t.Errorf("ran %d times, want %d", e.got(), want)
			}
		}
		deliver(1)
		r := must.Get(s.Inspect(t.Context(), recordKey("1")))(t)
		must.Do(t, s.Reopen(t.Context(), r, "note"))
		deliver(1)
		time.Sleep(65 * time.Second)
		deliver(2)
	})
}

// A redriven message runs at once after a reopen, also in an envelope, which has its own attributes inside.
func TestRedrivenMessageIsNotAcknowledgedFromMemory(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"{}", `{"Type":"Notification","TopicArn":"arn:aws:sns:eu-west-1:1:orders","MessageId":"1","Message":"{}","Timestamp":"2026-01-31T12:00:00Z"}`} {
		s := memstore.New()
		var e effects
		h := sqsonce.OpenEnvelope(newOnce(t, s).Handler(e.handler))
		m := message("1")
		m.Body = body
		must.Do(t, h(t.Context(), m))
		must.Do(t, s.Reopen(t.Context(), must.Get(s.Inspect(t.Context(), recordKey("1")))(t), "note"))
		m.Attributes[sqsonce.AttrRedriven] = sqsonce.Attribute{Type: "String", String: "1 R 0"}
		for range 2 {
			must.Do(t, h(t.Context(), m))
		}
		if e.got() != 2 {
			t.Errorf("%s: ran %d times, want 2: once more", body, e.got())
		}
	}
}

// A forced reopen ends a handler that is stuck: its next renewal is refused.
func TestForcedReopenCancelsTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		started := make(chan struct{})
		h := newOnce(t, s).Handler(func(ctx context.Context, _ *sqsonce.Message) error {
			close(started)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		done := make(chan error)
		go func() { done <- h(context.Background(), message("1")) }()
		<-started
		r := must.Get(s.Inspect(t.Context(), recordKey("1")))(t)
		must.Do(t, s.Reopen(t.Context(), r, "stuck", func(o *dedup.ReopenOptions) { o.Force = true }))
		start := time.Now()
		if err := <-done; !errors.Is(err, sqsonce.ErrLeaseLost) || time.Since(start) > 10*time.Second {
			t.Errorf("the handler ended with %v after %s, want ErrLeaseLost with the next renewal", err, time.Since(start))
		}
		if r, err := s.Inspect(t.Context(), recordKey("1")); err != nil || r.State(time.Now()) != dedup.StateReleased || r.Note != "stuck" {
			t.Errorf("record: got %+v, %v, want it released, with the note", r, err)
		}
	})
}

func TestRecordState(t *testing.T) {
	t.Parallel()
	now := time.Now()
	lease := dedup.Lease{Owner: "owner", Until: now.Add(time.Second)}
	for want, r := range map[dedup.RecordState]dedup.Record{
		dedup.StateForeign: {Completed: true}, dedup.StateCompleted: {Completed: true, Lease: lease}, dedup.StateReleased: {Lease: dedup.Lease{Owner: "owner"}},
		dedup.StateRunning: {Lease: lease}, dedup.StateCrashed: {Lease: dedup.Lease{Owner: "owner", Until: now}},
	} {
		if got := r.State(now); got != want {
			t.Errorf("%+v: got %s, want %s", r, got, want)
		}
	}
}
