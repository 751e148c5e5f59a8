//go:build unix

package stores

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

const mostHandlers = 64

// runHandlers runs 1, 16 and 64 handlers on b.N messages, and reports the rate, the CPU time and the latency of a message.
func runHandlers(b *testing.B, handle func(ctx context.Context, event string) error) {
	for _, handlers := range []int{1, 16, mostHandlers} {
		b.Run(fmt.Sprintf("handlers=%d", handlers), func(b *testing.B) {
			run := rand.Text()
			took := make([]time.Duration, b.N)
			var next atomic.Int64
			var wg sync.WaitGroup
			cpu := cpuTime(b)
			start := time.Now()
			b.ResetTimer()
			for range handlers {
				wg.Go(func() {
					for {
						i := next.Add(1) - 1
						if i >= int64(b.N) {
							return
						}
						begin := time.Now()
						if err := handle(b.Context(), eventName(run, i)); err != nil {
							b.Error(err)
							return
						}
						took[i] = time.Since(begin)
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			n := float64(b.N)
			b.ReportMetric(n/time.Since(start).Seconds(), "msg/s")
			b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/n, "cpu-µs/msg")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(0, "ns/op") // removes it from the output: it is 1/(msg/s)
		})
	}
}

// cpuTime is the user and system time of this process.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
