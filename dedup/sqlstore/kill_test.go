package sqlstore

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// ledger is what the handlers of one test have done, apart from any store.
type ledger struct {
	mu        sync.Mutex
	running   map[string]dedup.Lease
	fences    map[string]int64
	confirmed map[string]int // completions that the store has confirmed
	faults    []string
}

func (l *ledger) started(lease dedup.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, ok := l.running[lease.Key]; ok && time.Now().Before(other.Until) {
		l.faults = append(l.faults, fmt.Sprintf("%s started by %s while %s holds it", lease.Key, lease.Owner, other.Owner))
	}
	if lease.Fence <= l.fences[lease.Key] {
		l.faults = append(l.faults, fmt.Sprintf("%s: fence %d after %d", lease.Key, lease.Fence, l.fences[lease.Key]))
	}
	if l.confirmed[lease.Key] > 0 {
		l.faults = append(l.faults, lease.Key+" started after it was completed")
	}
	l.running[lease.Key], l.fences[lease.Key] = lease, lease.Fence
}

func (l *ledger) completed(lease dedup.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, lease.Key)
	l.confirmed[lease.Key]++
}

// The database is killed under load, twice, and comes back: no lease is held by two, no fence comes twice, and what was
// confirmed as completed stays completed.
func TestDatabaseIsKilled(t *testing.T) {
	t.Parallel()
	for _, name := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := ownServer(t, name)
			b.DB.SetMaxOpenConns(16)
			s := newStore(t, b)
			// Once before the load: a first acquire that fails would be the same as any other here.
			if err := s.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			l := &ledger{running: map[string]dedup.Lease{}, fences: map[string]int64{}, confirmed: map[string]int{}}
			var (
				wg     sync.WaitGroup
				stop   = make(chan struct{})
				events = make(chan string)
			)
			wg.Go(func() { // each event in three copies
				defer close(events)
				for i := 0; ; i++ {
					for range 3 {
						select {
						case events <- fmt.Sprintf("k%d", i):
						case <-stop:
							return
						}
					}
				}
			})
			for range 12 {
				wg.Go(func() {
					for key := range events {
						deliver(t, s, l, key)
					}
				})
			}
			for range 2 {
				time.Sleep(700 * time.Millisecond)
				b.Server.Kill()
				time.Sleep(200 * time.Millisecond)
				b.Server.Restart(t)
			}
			time.Sleep(700 * time.Millisecond)
			close(stop)
			wg.Wait()
			if len(l.faults) > 0 {
				t.Errorf("%d faults, the first: %s", len(l.faults), l.faults[0])
			}
			for key, n := range l.confirmed {
				if r, err := s.Inspect(t.Context(), key); err != nil || !r.Completed || n != 1 {
					t.Errorf("%s was completed %d times: got %+v, %v", key, n, r, err)
				}
			}
			t.Logf("%d events", len(l.confirmed))
			if len(l.confirmed) < 20 { // a loaded machine does less than an idle one
				t.Errorf("%d events were completed, want more", len(l.confirmed))
			}
		})
	}
}

// deliver redelivers a message until its event is done.
func deliver(t *testing.T, s *Store, l *ledger, key string) {
	for n := 1; n < 200; n++ {
		c := claim(key, fmt.Sprintf("%p-%d-%d", &n, n, time.Now().UnixNano()))
		c.Lease, c.Attempt = 2*time.Second, n
		lease, err := s.Acquire(t.Context(), c)
		switch outcomeOf(err) {
		case "completed":
			return
		case "acquired":
			l.started(lease)
			err := s.Complete(t.Context(), lease, dedup.Result{})
			if err == nil {
				l.completed(lease)
				return
			}
			if errors.Is(err, sqsonce.ErrLeaseLost) {
				continue
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("%s: not done after 200 deliveries", key)
}
