//go:build unix

package sqlstore

import (
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
)

// BenchmarkFirstDelivery is an acquire and a complete, each durable before it returns. Besides the time it reports the
// messages per second, and this process's CPU time per message. That includes all of SQLite's work and none of a server's.
func BenchmarkFirstDelivery(b *testing.B) {
	benchmark(b, func(b *testing.B, s *Store, key string) error {
		l, err := s.Acquire(b.Context(), claim(key, rand.Text()))
		if err != nil {
			return err
		}
		return s.Complete(b.Context(), l, dedup.Result{})
	})
}

// BenchmarkDuplicate is an acquire of a completed event.
func BenchmarkDuplicate(b *testing.B) {
	benchmark(b, func(b *testing.B, s *Store, _ string) error {
		c := claim("completed", "a")
		l, err := s.Acquire(b.Context(), c)
		if err == nil {
			return s.Complete(b.Context(), l, dedup.Result{})
		}
		if resultOf(err) == "completed" || resultOf(err) == "in progress" {
			return nil
		}
		return err
	})
}

func benchmark(b *testing.B, deliver func(b *testing.B, s *Store, key string) error) {
	for _, name := range sqlbed.Names {
		for _, handlers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/handlers=%d", name, handlers), func(b *testing.B) {
				bed := NewBed(b, name)
				bed.DB.SetMaxOpenConns(handlers)
				bed.DB.SetMaxIdleConns(handlers)
				s := newStore(b, bed)
				if err := s.Check(b.Context()); err != nil {
					b.Fatal(err)
				}
				var next atomic.Int64
				var wg sync.WaitGroup
				cpu := cpuTime(b)
				b.ResetTimer()
				for range handlers {
					wg.Go(func() {
						for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
							if err := deliver(b, s, fmt.Sprint("bench#", i)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
				b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(b.N), "cpu-µs/msg")
			})
		}
	}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
