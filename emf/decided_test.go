package emf_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/values"
	"github.com/sqsonce/sqsonce/lambda"
)

const queue = "arn:aws:sqs:eu-west-1:123456789012:orders"

// Each outcome is one metric of its invocation's line.
func TestEachOutcomeHasAMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, nil)
		hooks := f.hooks()
		values.EachOutcome(t, func(kind sqsonce.OutcomeKind, _ values.Outcome) {
			ctx := hooks.Begin(request(t, "r", time.Minute), nil)
			hooks.Finish(ctx, lambda.Report{QueueARN: queue, Outcomes: map[sqsonce.OutcomeKind]int{kind: 7}})
			if got := membersOf(f.lines()[0], 7); len(got) != 1 {
				t.Errorf("outcome %s: got the metrics %q, want one", kind, got)
			}
		})
	})
}

// The decisions that are metrics. The others are counted by what they make of their message.
func TestEachDecisionIsDecided(t *testing.T) {
	want := map[dedup.DecisionOutcome]string{
		dedup.DecidedFirst: "", dedup.DecidedTakeover: "Takeovers", dedup.DecidedSuspect: "Takeovers", dedup.DecidedUnguarded: "", dedup.DecidedDuplicate: "Duplicates",
		dedup.DecidedInProgress: "", dedup.DecidedCrashed: "", dedup.DecidedMismatch: "", dedup.DecidedNoKey: "", dedup.DecidedLost: "",
		dedup.DecidedStoreError: "", dedup.DecidedCancelled: "",
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, nil)
		hooks := f.hooks()
		var o dedup.Options
		f.metrics.Once(&o)
		for _, d := range values.Of[dedup.DecisionOutcome](t, "../dedup", "DecisionOutcome") {
			metric, decided := want[d]
			if !decided {
				t.Errorf("decision %s: decide which metric counts it", d)
			}
			ctx := hooks.Begin(request(t, "r", time.Minute), nil)
			o.Hooks[0].Decided(ctx, dedup.Decision{Outcome: d})
			hooks.Finish(ctx, lambda.Report{QueueARN: queue})
			got := membersOf(f.lines()[0], 1)
			if metric == "" && len(got) > 0 || metric != "" && !slices.Equal(got, []string{metric}) {
				t.Errorf("decision %s: got the metrics %q, want %q", d, got, metric)
			}
		}
	})
}

func (f *function) hooks() lambda.Hooks {
	var o lambda.Options
	f.metrics.Lambda(&o)
	return o.Hooks[0]
}

// membersOf are the names of the members with a value, in order.
func membersOf(line map[string]any, value float64) (names []string) {
	for name, v := range line {
		if v == value {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
