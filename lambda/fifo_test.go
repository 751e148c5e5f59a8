package lambda

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

func TestFIFOFailureEndsItsGroupOnly(t *testing.T) {
	t.Parallel()
	for name, h := range bad {
		var r runs
		f := wrap(t, r.wrap(handlers{"a2": h}.handle))
		got := invoke(t, f, t.Context(), fifoBatch("a1", "b1", "a2", "a3", "b2", "c1", "a4", "b3"))
		if got != "a2 a3 a4" {
			t.Errorf("%s: failed: got %q, want a2 a3 a4", name, got)
		}
		if started := strings.Join(r.list(), " "); strings.Contains(started, "a3") || strings.Contains(started, "a4") {
			t.Errorf("%s: ran %s: one of them is behind a failed message", name, started)
		}
	}
}

// TestFIFOOrder: in a group a handler starts when the one before it has returned; groups do not wait for each other.
func TestFIFOOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		active := map[string]bool{}
		f := wrap(t, func(_ context.Context, m *sqsonce.Message) error {
			mu.Lock()
			if active[m.Group] {
				t.Errorf("%s started while another of its group ran", m.ID)
			}
			active[m.Group] = true
			order = append(order, m.ID)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			active[m.Group] = false
			mu.Unlock()
			return nil
		})
		begun := time.Now()
		if got := invoke(t, f, t.Context(), fifoBatch("a1", "b1", "a2", "c1", "b2", "a3")); got != "" {
			t.Errorf("failed: %q", got)
		}
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("took %v, want 3s: the longest group", took)
		}
		var a []string
		for _, id := range order {
			if id[0] == 'a' {
				a = append(a, id)
			}
		}
		if got := strings.Join(a, " "); got != "a1 a2 a3" {
			t.Errorf("group a ran as %s", got)
		}
	})
}

func TestFIFOBoundsGroups(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var r runs
		f := wrap(t, r.wrap(takes(time.Second)), func(o *Options) { o.Concurrency = 2 })
		begun := time.Now()
		invoke(t, f, t.Context(), fifoBatch("a1", "b1", "c1", "d1"))
		if took := time.Since(begun); r.most != 2 || took != 2*time.Second {
			t.Errorf("%d at once in %v, want 2 in 2s", r.most, took)
		}
	})
}

// TestFIFOMissingGroup: SQS accepts no message without a group in a FIFO queue. All such messages would be in one order.
func TestFIFOMissingGroup(t *testing.T) {
	t.Parallel()
	e := fifoBatch("a1", "a2", "a3")
	for i := range e.Records {
		delete(e.Records[i].Attributes, "MessageGroupId")
	}
	f := wrap(t, handlers{"a2": fails(errTest)}.handle)
	if got := invoke(t, f, t.Context(), e); got != "a2 a3" {
		t.Errorf("failed: got %q, want a2 a3", got)
	}
}

// TestFairQueueStaysParallel: on a standard queue a group ID is a tenant and gives no order.
func TestFairQueueStaysParallel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := fifoBatch("a1", "a2", "a3", "a4")
		for i := range e.Records {
			e.Records[i].EventSourceARN = standardARN
		}
		var r runs
		h := handlers{"a1": fails(errTest), "": func(ctx context.Context, m *sqsonce.Message) error {
			if m.Group != "a" {
				t.Errorf("group: got %q, want a", m.Group)
			}
			return takes(time.Second)(ctx, m)
		}}
		begun := time.Now()
		got := invoke(t, wrap(t, r.wrap(h.handle)), t.Context(), e)
		if took := time.Since(begun); got != "a1" || took != time.Second || r.most < 3 {
			t.Errorf("failed %q in %v, %d at once; want a1 in 1s, at least 3 at once", got, took, r.most)
		}
	})
}
