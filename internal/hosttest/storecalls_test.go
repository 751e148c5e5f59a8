package hosttest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

const (
	calledEvents = 10
	// quickRequests get an event past a lost packet or a restart, beyond one request a second. The pauses are random by a quarter, so two more
	// may fall into a time.
	quickRequests = 6 + 2
)

// brokenStore fails while it is down, and notes the requests for each event.
type brokenStore struct {
	hangs    bool
	down     atomic.Bool
	mu       sync.Mutex
	requests map[string][]time.Time
}

// trip fails a request while the store is down.
func (b *brokenStore) trip(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if r.Body = io.NopCloser(bytes.NewReader(body)); err != nil || !b.down.Load() {
		return err
	}
	b.mu.Lock()
	for n := range calledEvents {
		if e := calledEvent(n); strings.Contains(string(body), source+"|"+e) {
			b.requests[e] = append(b.requests[e], time.Now())
		}
	}
	b.mu.Unlock()
	if b.hangs {
		<-r.Context().Done()
		return r.Context().Err()
	}
	return errUnavailable
}

// quick returns the most requests for one event beyond one a second, in any time.
func (b *brokenStore) quick() (most int) {
	for _, at := range b.requests {
		for i := range at {
			for j := range at[i:] {
				most = max(most, j+1-int(at[i+j].Sub(at[i])/time.Second))
			}
		}
	}
	return most
}

func calledEvent(n int) string { return fmt.Sprintf("g%d-1", n) }

// TestRequestsOfABrokenStore: while the store is down an event costs it a request a second, from all layers together: the host, dedup and
// the store's own repeats. A few quick ones come before.
func TestRequestsOfABrokenStore(t *testing.T) {
	t.Parallel()
	const takes = 5 * time.Second
	for _, hangs := range []bool{false, true} {
		for _, h := range hosts[:2] {
			for call, s := range map[string]script{
				"acquire":  succeed,
				"complete": func(context.Context, *run) error { time.Sleep(takes); return nil },
				"release":  func(context.Context, *run) error { time.Sleep(takes); return errCard },
			} {
				must.RunParallel(t, fmt.Sprintf("hangs=%t/%s/%s", hangs, h.name, call), func(t *testing.T) {
					w := newFixture(t, setup{quiet: true, maxReceives: maxReceives, visibility: 3 * time.Minute})
					b := &brokenStore{hangs: hangs, requests: map[string][]time.Time{}}
					w.net.broken = b
					host := h.start(w, &scenario{script: s})
					w.send(message{name: "warm"}) // a worker begins with one message
					time.Sleep(2 * takes)
					b.down.Store(call == "acquire")
					for n := range calledEvents {
						w.send(message{name: calledEvent(n)})
					}
					time.Sleep(takes / 2)
					b.down.Store(true)
					time.Sleep(30 * time.Second)
					b.down.Store(false)
					time.Sleep(time.Minute)
					host.stop()
					w.admin.kill()
					if len(b.requests) == 0 || b.quick() > quickRequests {
						t.Errorf("requests for %d events, for one of them %d more than one a second, want %d at most", len(b.requests), b.quick(), quickRequests)
					}
				})
			}
		}
	}
}
