package host_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// A context ends with its parent, or with its timeout or up to a fiftieth earlier.
func TestEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ends host.Ends
		parent, cancel := context.WithCancel(t.Context())
		first := ends.After(parent, 50*time.Second)
		time.Sleep(999 * time.Millisecond)
		if ends.After(parent, 50*time.Second) != first {
			t.Error("a call within a fiftieth has an end of its own")
		}
		if other := ends.After(parent, 10*time.Second); other == first {
			t.Error("another timeout has the same end")
		}
		first = ends.After(parent, 50*time.Second)
		time.Sleep(time.Second)
		second := ends.After(parent, 50*time.Second)
		time.Sleep(49*time.Second + time.Millisecond)
		if first.Err() != context.DeadlineExceeded || second.Err() != nil {
			t.Errorf("the first: %v, the second: %v", first.Err(), second.Err())
		}
		cancel()
		if second.Err() != context.Canceled || ends.After(parent, 50*time.Second).Err() == nil {
			t.Errorf("the parent has ended, and the second: %v", second.Err())
		}
	})
}
