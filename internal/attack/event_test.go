package attack

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
)

// Two owners on stores that know nothing of each other have the lease of one event at the same time.
func TestOverlapIsSeen(t *testing.T) {
	t.Parallel()
	e := &event{name: "1"}
	m := &sqsonce.Message{ID: "1", ReceiveCount: 1, QueueARN: "arn:aws:sqs:us-east-1:1:attack"}
	handler := func(h sqsonce.Handler) sqsonce.Handler {
		o, err := dedup.New(memstore.New(), "attack")
		if err != nil {
			t.Fatal(err)
		}
		return o.Handler(h)
	}
	inner := handler(func(ctx context.Context, _ *sqsonce.Message) error {
		e.end(e.start(ctx))
		return nil
	})
	outer := handler(func(ctx context.Context, m *sqsonce.Message) error {
		defer e.end(e.start(ctx))
		return inner(context.Background(), m)
	})
	if err := outer(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	if wrong := strings.Join(e.wrong, "; "); !strings.Contains(wrong, "before the end of run 0's lease") {
		t.Errorf("got %q, want the overlap", wrong)
	}
}

func TestWrongOutcomesAreSeen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want int
	}{{nil, 0}, {errors.New("failed"), 0}, {dedup.ErrCrashed, 1}, {sqsonce.ErrMisconfigured, 1}} {
		e := &event{name: "1"}
		if e.delivered(tt.err); len(e.wrong) != tt.want || e.isDone() != (tt.err == nil) {
			t.Errorf("%v: got %q, done %t", tt.err, e.wrong, e.isDone())
		}
	}
}
