package fifo_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/fifo"
)

func TestPublishAll(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.Linger = time.Hour })
		var es []fifo.Event
		for i := range 25 {
			es = append(es, event(fmt.Sprint("g", i%20), i))
		}
		start := time.Now()
		receipts, err := p.PublishAll(x.Context(), es)
		if err != nil || time.Since(start) != 0 {
			x.Fatalf("PublishAll: %v after %v, want nil at once", err, time.Since(start))
		}
		for i, r := range receipts {
			want, _ := fifo.DedupID("orders", es[i].ID)
			if r.DedupID != want || r.MessageID == "" || r.Sequence == "" || r.Attempts != 1 {
				x.Errorf("receipt %d: %+v, want that of %s", i, r, es[i].ID)
			}
		}
		if diff := cmp.Diff([]int{10, 10, 5}, x.sizes()); diff != "" {
			x.Errorf("entries by request (-want +got):\n%s", diff)
		}
		if !p.Idle() || x.sent.inFlight() != 0 {
			x.Error("the publisher is not idle after PublishAll")
		}
	})
}
