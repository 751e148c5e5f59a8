package sqlstore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// A pool of one connection serves any number of handlers: nobody holds it while waiting for something else.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	EachDialect(t, func(t *testing.T, b *Bed) {
		s := newStore(t, b)
		b.DB.SetMaxOpenConns(1)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var handlers sync.WaitGroup
		for h := range 16 {
			handlers.Go(func() {
				for n := range 5 {
					l, err := s.Acquire(ctx, claim(fmt.Sprint("order ", h, ".", n), "owner"))
					if err == nil {
						err = s.Complete(ctx, l, dedup.Result{})
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		handlers.Wait()
	})
}
