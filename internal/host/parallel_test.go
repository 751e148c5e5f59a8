package host_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// Each call is made once, so many at once and no more, and all have ended when it returns.
func TestInParallel(t *testing.T) {
	for _, tt := range []struct {
		n, atOnce int
		want      time.Duration
	}{{0, 4, 0}, {3, 4, time.Second}, {4, 4, time.Second}, {9, 4, 3 * time.Second}, {3, 1, 3 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			calls, began := make([]atomic.Int64, tt.n), time.Now()
			host.InParallel(tt.n, tt.atOnce, func(i int) {
				time.Sleep(time.Second)
				calls[i].Add(1)
			})
			if took := time.Since(began); took != tt.want {
				t.Errorf("%d calls, %d at once, took %s, want %s", tt.n, tt.atOnce, took, tt.want)
			}
			for i := range calls {
				if n := calls[i].Load(); n != 1 {
					t.Errorf("%d calls, %d at once: call %d was made %d times", tt.n, tt.atOnce, i, n)
				}
			}
		})
	}
}
