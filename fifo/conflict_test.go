package fifo_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestDedupConflict(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{orders, standard} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			bubble(t, queue, func(x *fixture) {
				p := x.publisher()
				time.Sleep(time.Hour + 100*time.Millisecond)
				other := event("g", 1)
				other.Body = "another"

				pd, err := p.Enqueue(x.Context(), event("g", 1))
				if err != nil {
					x.Fatal(err)
				}
				if _, err := p.Publish(x.Context(), other); !errors.Is(err, fifo.ErrDedupConflict) {
					x.Errorf("while the first waits: %v, want ErrDedupConflict", err)
				}
				if _, err := pd.Get(x.Context()); err != nil {
					x.Fatal(err)
				}
				time.Sleep(5*time.Minute - time.Millisecond)
				if _, err := p.Publish(x.Context(), other); !errors.Is(err, fifo.ErrDedupConflict) {
					x.Errorf("just under five minutes later: %v, want ErrDedupConflict", err)
				}
				time.Sleep(2 * time.Second)
				x.sent.forget()
				if _, err := p.Publish(x.Context(), other); err != nil {
					x.Errorf("over five minutes later: %v", err)
				}
			})
		})
	}
}

// The body of an event that is certainly not in the queue may be corrected.
func TestARefusedEventMayBeCorrected(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		if _, err := p.Publish(x.Context(), event("g", 1)); !errors.Is(err, fifo.ErrNotSent) {
			x.Fatalf("Publish: %v, want ErrNotSent", err)
		}
		corrected := event("g", 1)
		corrected.Body = "corrected"
		x.sent.forget()
		if _, err := p.Publish(x.Context(), corrected); err != nil {
			x.Errorf("the corrected body: %v", err)
		}
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.FailEntries, Code: "InvalidMessageContents"})
}
