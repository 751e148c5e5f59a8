package host

import (
	"sync"
	"sync/atomic"
)

// InParallel calls f with 0 to n-1, so many at once, and returns when all calls have ended.
func InParallel(n, atOnce int, f func(i int)) {
	var next atomic.Int64
	var calls sync.WaitGroup
	for range min(n, atOnce) {
		calls.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	calls.Wait()
}
