package otelsqs_test

import (
	"errors"
	"testing"

	"go.opentelemetry.io/otel/codes"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/values"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// The outcomes whose spans are errors, and those that have an error.type.
func TestEachOutcomeIsDecided(t *testing.T) {
	want := map[sqsonce.OutcomeKind]struct{ failed, errorType bool }{
		sqsonce.OutcomeDone: {}, sqsonce.OutcomeSkipped: {}, sqsonce.OutcomeInProgress: {}, sqsonce.OutcomeNotStarted: {}, sqsonce.OutcomeShutdown: {},
		sqsonce.OutcomeFailed: {true, true}, sqsonce.OutcomeRejected: {true, true}, sqsonce.OutcomeLeaseLost: {true, true},
		sqsonce.OutcomeAbandoned: {true, true}, sqsonce.OutcomeUnavailable: {true, true},
	}
	f := newFixture(t, "jobs")
	var o sqsworker.Options
	f.tel.Worker(&o)
	for _, kind := range values.Outcomes() {
		row, decided := want[kind]
		if !decided {
			t.Errorf("outcome %s: decide whether its span is an error", kind)
		}
		d := sqsonce.Delivery{Message: &sqsonce.Message{ID: "m"}, QueueURL: f.url, Run: 1}
		hooks := o.Hooks[0]
		f.spans.Reset()
		ctx := hooks.Start(t.Context(), d)
		hooks.End(ctx, d, sqsonce.Return{Outcome: kind, Err: errors.New("boom")})
		span := f.spans.GetSpans()[0]
		hasType := false
		for _, a := range span.Attributes {
			hasType = hasType || a.Key == "error.type"
		}
		if failed := span.Status.Code == codes.Error; failed != row.failed || hasType != row.errorType {
			t.Errorf("outcome %s: got an error %v, error.type %v, want %v, %v", kind, failed, hasType, row.failed, row.errorType)
		}
	}
}
