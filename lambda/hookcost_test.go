package lambda

import (
	"context"
	"log/slog"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
)

// TestWithoutHooks: nothing is paid for hooks or limits that are not set. One allocation more for each message would be above the
// number.
func TestWithoutHooks(t *testing.T) {
	f := wrap(t, handlers{}.handle, func(o *Options) { o.Logger, o.Concurrency = slog.New(slog.DiscardHandler), 1 })
	e := batch(numbered(10)...)
	const most = 45
	allocs := testing.AllocsPerRun(200, func() {
		must.Get(f(context.Background(), e))(t)
	})
	if allocs > most {
		t.Errorf("%v allocations for ten messages, want at most %v", allocs, most)
	}
}
