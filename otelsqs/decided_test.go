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
	f := newFixture(t, "jobs")
	var opts sqsworker.Options
	f.tel.Worker(&opts)
	values.EachOutcome(t, func(kind sqsonce.OutcomeKind, o values.Outcome) {
		d := sqsonce.Delivery{Message: &sqsonce.Message{ID: "m"}, QueueURL: f.url, Run: 1}
		hooks := opts.Hooks[0]
		f.spans.Reset()
		ctx := hooks.Start(t.Context(), d)
		hooks.End(ctx, d, sqsonce.Return{Outcome: kind, Err: errors.New("boom")})
		span := f.spans.GetSpans()[0]
		hasType := false
		for _, a := range span.Attributes {
			hasType = hasType || a.Key == "error.type"
		}
		if failed := span.Status.Code == codes.Error; failed != o.SpanFailed || hasType != o.SpanFailed {
			t.Errorf("outcome %s: got an error %v, error.type %v, want both %v", kind, failed, hasType, o.SpanFailed)
		}
	})
}
