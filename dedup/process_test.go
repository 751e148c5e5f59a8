package dedup_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// A record says in which process its event ran last, also after a release that followed that process's crash. Owners of earlier
// versions, of operators and of other programs name none.
func TestLastRun(t *testing.T) {
	t.Parallel()
	const died = "pod-1.ABCDEFGH"
	for name, tt := range map[string]struct {
		owner, want string
		policy      dedup.CrashPolicy
		suspects    int
		released    bool // by the process that found the crash
	}{
		"blocked":                     {"X@" + died, died, dedup.OnCrashBlock, 0, false},
		"of a note in an SQL inbox":   {"started/X@" + died, died, dedup.OnCrashBlock, 0, false},
		"dead-lettered":               {"X@" + died, died, dedup.OnCrashDeadLetter, 0, true},
		"suspect":                     {"X@" + died, died, dedup.OnCrashRerun, 3, true},
		"blocked, earlier version":    {"X", "", dedup.OnCrashBlock, 0, false},
		"dead-lettered, earlier":      {"X", "", dedup.OnCrashDeadLetter, 0, true},
		"suspect, earlier version":    {"X", "", dedup.OnCrashRerun, 3, true},
		"an operator's":               {host.OperatorPrefix + "ann@pod-1.ABCDEFGH", "", dedup.OnCrashBlock, 0, false},
		"another program's":           {"ann@example.org", "", dedup.OnCrashBlock, 0, false},
		"with a name that is no name": {"X@" + strings.Repeat("p", 33) + ".ABCDEFGH", "", dedup.OnCrashBlock, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFaults()
				claim := dedup.Claim{Key: recordKey("1"), Owner: tt.owner, Lease: time.Second, Retention: time.Hour}
				start := must.Get(f.Store.Acquire(t.Context(), claim))(t).Lease.Fence
				time.Sleep(time.Minute)
				inspect := func() dedup.Record {
					return must.Get(f.Store.(dedup.Inspector).Inspect(t.Context(), recordKey("1")))(t)
				}
				h := newOnce(t, f, func(o *dedup.Options) { o.OnCrash = tt.policy }).Handler(func(context.Context, *sqsonce.Message) error { return nil })
				for i := range 1 + tt.suspects { // a suspect that waits for its turn again has the same run
					ctx, settled := settle.New(settle.WithSuspects(t.Context(), tt.suspects))
					m := message("1")
					m.ReceiveCount = 2 + i
					if err := h(ctx, m); err == nil {
						t.Fatal("the event has run")
					}
					_ = settled(true)
				}
				if strings.HasPrefix(tt.owner, host.OperatorPrefix) {
					start = 0
				}
				r := inspect()
				if name, fence := r.LastRun(); name != tt.want || fence != start || r.Until.IsZero() != tt.released || r.Crashes(time.Now()) != 1 {
					t.Errorf("ran in %q at %d, with %d crashes, want %q at %d and one crash: %+v", name, fence, r.Crashes(time.Now()), tt.want, start, r)
				}
				if !tt.released {
					return
				}
				if err := h(settle.RunningSuspect(t.Context()), message("1")); err != nil {
					t.Fatal(err)
				}
				host, _ := os.Hostname()
				host, _, _ = strings.Cut(host, ".")
				r = inspect()
				if name, fence := r.LastRun(); name == died || !strings.Contains(name, host[max(0, len(host)-32):]) || fence != r.Fence || fence <= start {
					t.Errorf("ran again in %q at %d, want this process, later than %d", name, fence, start)
				}
			})
		})
	}
}
