package dedup_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

func TestInProgressErrorIs(t *testing.T) {
	t.Parallel()
	err := &dedup.InProgressError{}
	if !errors.Is(err, sqsonce.ErrInProgress) || errors.Is(err, dedup.ErrCrashed) || errors.Is(err, sqsonce.ErrLeaseLost) {
		t.Errorf("ErrInProgress %t, ErrCrashed %t, ErrLeaseLost %t, want the first",
			errors.Is(err, sqsonce.ErrInProgress), errors.Is(err, dedup.ErrCrashed), errors.Is(err, sqsonce.ErrLeaseLost))
	}
}

// An error that users see says what happened, to which record, and what to do.
func TestErrorsNameTheRecord(t *testing.T) {
	t.Parallel()
	foreign := fmt.Errorf("%w: %w", sqsonce.ErrLeaseLost, dedup.ErrForeignWriter)
	crashed := "dedup: the last owner crashed: its lease ended without a complete or a release (consumer billing, key billing#orders|1): " +
		"find out whether its effect happened, then "
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, f *faults)
		option func(*dedup.Options)
		h      sqsonce.Handler
		want   string
	}{
		{"in progress", func(t *testing.T, f *faults) {
			must.Get(other(t, f.Store, recordKey("1")))(t)
		}, nil, hang(0), "sqsonce: retry after 1m1s: dedup: in progress elsewhere until 2000-01-01T00:01:00Z (consumer billing, key billing#orders|1)"},
		{"Block", func(t *testing.T, f *faults) { crash(t, f, "1") }, func(o *dedup.Options) { o.OnCrash = dedup.OnCrashBlock }, hang(0),
			crashed + "reopen the record to run the event again"},
		{"DeadLetter", func(t *testing.T, f *faults) { crash(t, f, "1") }, func(o *dedup.Options) { o.OnCrash = dedup.OnCrashDeadLetter }, hang(0),
			"sqsonce: rejected: " + crashed + "redrive the message to run the event again"},
		{"acquire failed", func(_ *testing.T, f *faults) { f.fail("acquire", errStore) }, nil, hang(0),
			"sqsonce: unavailable: dedup: acquire failed, handler not called (consumer billing, key billing#orders|1): store unreachable"},
		{"acquire refused", func(_ *testing.T, f *faults) { f.lose() }, nil, hang(0),
			"dedup: acquire refused, handler not called (consumer billing, key billing#orders|1): sqsonce: lease lost"},
		{"complete failed", func(_ *testing.T, f *faults) { f.fail("complete", errStore) }, nil, hang(0),
			"sqsonce: unavailable: dedup: handler succeeded, record not completed (consumer billing, key billing#orders|1): another process that takes the event over runs it again (Options.OnCompleteFailed): store unreachable"},
		{"complete refused, foreign writer", func(_ *testing.T, f *faults) { f.fail("complete", foreign) }, nil, hang(0),
			"sqsonce: lease lost: record overwritten by a writer that does not check ownership (consumer billing, key billing#orders|1)"},
		{"renewal refused, then a failure", func(_ *testing.T, f *faults) { f.fail("renew", sqsonce.ErrLeaseLost) }, nil,
			func(context.Context, *sqsonce.Message) error {
				time.Sleep(time.Minute)
				return errors.New("card declined")
			},
			"sqsonce: lease lost: record taken over by another owner, or deleted (consumer billing, key billing#orders|1): handler returned: card declined"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFaults()
				tt.before(t, f)
				o := newOnce(t, f)
				if tt.option != nil {
					o = newOnce(t, f, tt.option)
				}
				if err := o.Handler(tt.h)(t.Context(), message("1")); err == nil || err.Error() != tt.want {
					t.Errorf("got  %v\nwant %s", err, tt.want)
				}
			})
		})
	}
}
