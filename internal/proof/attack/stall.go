package attack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// stall holds up the network while deliveries of a host wait for their acquires, for longer than they do. When it goes on,
// no event may look like a crash, and none may wait for the end of a lease: no handler has run.
func stall(t *testing.T, target Target) {
	const n = 40
	b := &bed{T: t, target: target}
	p := b.proxy()
	o, err := dedup.New(target.Store(t, p.Addr), "stall", func(o *dedup.Options) {
		Options(o)
		o.OnCrash, o.LeaseDuration, o.CallTimeout = dedup.OnCrashBlock, time.Minute, 3*time.Second
	})
	if err != nil {
		t.Fatal(err)
	}
	deliver := func(i int, run func()) error {
		m := &sqsonce.Message{ID: fmt.Sprint(t.Name(), i), Body: "{}", ReceiveCount: 1 + i%2, QueueARN: "arn:aws:sqs:us-east-1:1:stall"}
		return o.Handler(func(context.Context, *sqsonce.Message) error { run(); return nil })(context.Background(), m)
	}
	var ran sync.Map
	all := func(from int) (failed []int, errs []error) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for i := range n {
			wg.Go(func() {
				if err := deliver(from+i, func() { ran.Store(from+i, true) }); err != nil {
					mu.Lock()
					defer mu.Unlock()
					failed, errs = append(failed, from+i), append(errs, err)
				}
			})
		}
		wg.Wait()
		return failed, errs
	}
	for tries := 1; ; tries++ { // until the connections are open: a busy server takes a while for so many
		_, errs := all(0)
		if len(errs) == 0 {
			break
		}
		if tries == 10 {
			t.Fatal(errs)
		}
	}
	p.Stall()
	// Longer than an acquire waits, which is 3 or 4 s, and shorter than its release does, to 6 s at least.
	time.AfterFunc(5*time.Second, p.Resume)
	failed, errs := all(n)
	if len(failed) == 0 {
		t.Fatal("all were answered during the stall")
	}
	for _, err := range errs {
		if errors.Is(err, dedup.ErrCrashed) {
			t.Errorf("during the stall: %v", err)
		}
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		again, errs := all(n)
		if len(again) == 0 {
			break
		}
		for _, err := range errs {
			if errors.Is(err, dedup.ErrCrashed) {
				t.Fatalf("after the stall: %v", err)
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d events wait for a lease that nobody has: %v", len(again), n, errs[0])
		}
	}
	for i := range 2 * n {
		if _, ok := ran.Load(i); !ok {
			t.Errorf("event %d is done and did not run", i)
		}
	}
}
