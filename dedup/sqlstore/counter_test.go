package sqlstore

import (
	"context"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/limit/limittest"
)

func TestCounter(t *testing.T) {
	onEach(t, func(t *testing.T, name string, fresh func(*testing.T) func() *Store) {
		limittest.Run(t, limittest.Harness{
			New: func(t *testing.T) func() limit.Counter {
				open := fresh(t)
				return func() limit.Counter { return NewCounter(open()) }
			},
			Away: func(t *testing.T) limit.Counter { return NewCounter(awayStore(t, EmptyBed(t, name))) },
			Misconfigured: func(t *testing.T) limit.Counter {
				b := EmptyBed(t, name) // without tables
				return NewCounter(storeOn(t, b.DB, b.Dialect))
			},
			ReadOnly: func(t *testing.T) limit.Counter { return NewCounter(readOnlyStore(t, NewBed(t, name))) },
			Store:    func(c limit.Counter) dedup.Lister { return c.(*Counter).store },
			Delete: func(ctx context.Context, c limit.Counter, record string) error {
				return c.(*Counter).store.Delete(ctx, record)
			},
			RealTime: true, Step: unit, Grace: unit / 4, Takeover: time.Second,
		})
	})
}
