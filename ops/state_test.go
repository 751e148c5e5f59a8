package ops_test

import (
	"slices"
	"testing"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/values"
	"github.com/sqsonce/sqsonce/ops"
)

// Each state of a record is a state of messages, with what it means and what to do.
func TestEachStateIsDecided(t *testing.T) {
	for _, s := range values.Of[dedup.RecordState](t, "../dedup", "RecordState") {
		state := ops.State(s)
		if !slices.Contains(ops.States(), state) || state.Means() == "" || state.Do() == "" {
			t.Errorf("state %s: decide what it means for a message and what to do", s)
		}
	}
}
