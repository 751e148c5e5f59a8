package lambda

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
)

// once wraps a handler in dedup with a store in memory.
func once(t *testing.T, h sqsonce.Handler) sqsonce.Handler {
	t.Helper()
	o := must.Get(dedup.New(memstore.New(), "billing"))(t)
	return o.Handler(h)
}

// TestCopiesWaitInTheInvocation: Lambda cannot hold a message. A copy waits in its handler until the event is completed, so
// that one receive is enough.
func TestCopiesWaitInTheInvocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		f := wrap(t, once(t, func(ctx context.Context, m *sqsonce.Message) error {
			n.Add(1)
			return takes(900*time.Millisecond)(ctx, m)
		}))
		if got := invoke(t, f, timeout(t, 30*time.Second), batch("1", "1", "1", "2")); got != "" || n.Load() != 2 {
			t.Errorf("failed %q, %d runs; want none, 2", got, n.Load())
		}
	})
}
