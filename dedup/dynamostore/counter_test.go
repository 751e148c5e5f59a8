package dynamostore

import (
	"context"
	"testing"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/limittest"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestCounter(t *testing.T) {
	t.Parallel()
	faulty := func(rules ...fault.Rule) func(*testing.T) limit.Counter {
		return func(t *testing.T) limit.Counter {
			b := newBed(t)
			c := NewCounter(b.store())
			b.faults(rules...)
			return c
		}
	}
	limittest.Run(t, limittest.Harness{
		New: func(t *testing.T) func() limit.Counter {
			b := newBed(t)
			return func() limit.Counter { return NewCounter(b.store()) }
		},
		Away: faulty(fault.Rule{Prob: 1, Do: fault.Reset}),
		Misconfigured: func(t *testing.T) limit.Counter {
			b := newBed(t)
			return NewCounter(must.Get(New(b.client(b.srv), "missing"))(t))
		},
		ReadOnly: faulty(fault.Rule{Op: "UpdateItem", Prob: 1, Do: fault.Error, Code: "ReadOnlyException"}),
		Store:    func(c limit.Counter) dedup.Lister { return c.(*keyCounter).store },
		Delete: func(ctx context.Context, c limit.Counter, record string) error {
			return c.(*keyCounter).store.Delete(ctx, record)
		},
		Writes: func(c limit.Counter) float64 { return c.(*keyCounter).store.Stats().WriteUnits },
		Grace:  wideClock,
	})
}
