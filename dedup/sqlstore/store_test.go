package sqlstore

import (
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	for _, k := range beds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			NewBed(t, k.name) // skips where there is no server
			storetest.Run(t, storetest.Harness{
				New:      func(t *testing.T) dedup.Store { return newStore(t, NewBed(t, k.name)) },
				Lease:    unit,
				Grace:    time.Second,
				RealTime: true,
			})
		})
	}
}
