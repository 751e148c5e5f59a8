package lambda

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/sqsonce/sqsonce"
)

// TestDuplicateIDs: a message that is in an event twice is handled twice, and named once if either copy failed: else the
// mapping would delete both.
func TestDuplicateIDs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fails []int64 // which runs of "2"
		want  string
	}{
		{"both succeed", nil, ""},
		{"the first fails", []int64{1}, "2"},
		{"the second fails", []int64{2}, "2"},
		{"both fail", []int64{1, 2}, "2"},
	} {
		var n atomic.Int64
		f := wrap(t, func(_ context.Context, m *sqsonce.Message) error {
			if m.ID != "2" {
				return nil
			}
			run := n.Add(1)
			for _, k := range tt.fails {
				if k == run {
					return errTest
				}
			}
			return nil
		})
		if got := invoke(t, f, t.Context(), batch("1", "2", "3", "2")); got != tt.want {
			t.Errorf("%s: failed: got %q, want %q", tt.name, got, tt.want)
		}
		if got := n.Load(); got != 2 {
			t.Errorf("%s: handled %d times, want 2", tt.name, got)
		}
	}
}

func TestDuplicateIDsOnFIFO(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	f := wrap(t, handlers{"a1": func(context.Context, *sqsonce.Message) error {
		if n.Add(1) == 2 {
			return errTest
		}
		return nil
	}}.handle)
	if got := invoke(t, f, t.Context(), fifoBatch("a1", "a2", "a1", "a3")); got != "a1 a3" {
		t.Errorf("failed: got %q, want a1 a3", got)
	}
}
