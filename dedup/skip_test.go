package dedup_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
)

// TestSkip: a skipped event is completed with the reason, and its copies are duplicates. Where the complete fails the event is not
// skipped yet: the failure decides. For Do it is an error like any other.
func TestSkip(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		o := newOnce(t, f, custom("k"), func(o *dedup.Options) { o.CacheSize = -1 })
		runs := 0
		h := o.Handler(func(context.Context, *sqsonce.Message) error { runs++; return sqsonce.Skip("order is void") })

		f.fail("complete", sqsonce.ErrLeaseLost)
		if err := h(t.Context(), message("1")); sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeLeaseLost {
			t.Errorf("complete refused: got %v, want a lost lease", err)
		}
		f.fail("complete", nil)
		records := f.Store.(*memstore.Store)
		_ = records.Delete(t.Context(), "billing#k")
		if err := h(t.Context(), message("1")); sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeSkipped {
			t.Errorf("got %v, want skipped", err)
		}
		r, err := records.Inspect(t.Context(), "billing#k")
		if err != nil || !r.Completed || r.LastError != "sqsonce: skipped: order is void" {
			t.Errorf("record: got %+v, %v, want it completed with the reason", r, err)
		}
		if err := h(t.Context(), message("2")); err != nil || runs != 2 {
			t.Errorf("a copy: got %v after %d runs, want nil after 2", err, runs)
		}
		skip := sqsonce.Skip("order is void")
		for range 2 { // it is released, and runs again
			if _, err := dedup.Do(t.Context(), o, "other", func(context.Context) (int, error) { return 0, skip }); !errors.Is(err, skip) {
				t.Errorf("Do: got %v, want its function's error", err)
			}
		}
	})
}
