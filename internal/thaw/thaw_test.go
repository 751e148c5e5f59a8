package thaw

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/sqsonce/sqsonce/internal/thaw/thawtest"
)

// service counts its requests.
type service struct{ requests atomic.Int64 }

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	s.requests.Add(1)
	_, _ = io.WriteString(w, "ok")
}

// post returns a request whose body cannot be read again, as the SDK's cannot: net/http does not retry it by itself.
func post(client *http.Client) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://aws.local/", io.NopCloser(strings.NewReader("{}")))
		if err != nil {
			return err
		}
		req.ContentLength = 2
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_, err = io.ReadAll(resp.Body)
		return errors.Join(err, resp.Body.Close())
	}
}

// concurrently sends n requests at the same time, and returns how long the slowest took.
func concurrently(t *testing.T, n int, do func(context.Context, func(context.Context) error) error, f func(context.Context) error) time.Duration {
	t.Helper()
	start := time.Now()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := do(ctx, f); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

func bubble(t *testing.T, f func(*testing.T, *thawtest.Network, *service, func(context.Context) error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		n := thawtest.New(t, s)
		f(t, n, s, post(n.Client()))
	})
}

// After a freeze every idle connection is dead. None of them delays a call: neither the first call, nor those after its
// response, which get the other connections of the pool.
func TestConnectionsFromBeforeAFreeze(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, n *thawtest.Network, s *service, call func(context.Context) error) {
		var c Conns
		concurrently(t, 8, c.Do, call)
		n.Kill()
		time.Sleep(time.Minute)
		if took := concurrently(t, 1, c.Do, call); took != thawtest.Latency {
			t.Errorf("first call: took %s, want 1 ms", took)
		}
		if took := concurrently(t, 8, c.Do, call); took != thawtest.Latency {
			t.Errorf("calls after the first response: took %s, want 1 ms", took)
		}
		if got := s.requests.Load(); got != 8+1+8 {
			t.Errorf("the service got %d requests, want each once: 17", got)
		}
	})
}

// A busy process does not close its connections, unless they are distrusted.
func TestABusyProcessUsesItsConnectionsAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, n *thawtest.Network, s *service, call func(context.Context) error) {
		var c Conns
		for _, want := range []int{3, 6} {
			for range 20 {
				concurrently(t, 3, c.Do, call)
				time.Sleep(pause - time.Second)
			}
			if dials := n.Dials(); dials != want {
				t.Errorf("%d connections, want %d", dials, want)
			}
			c.Distrust()
		}
	})
}

// A connection from after the pause is used again, also while older ones are closed.
func TestConnectionsFromAfterAFreezeAreUsedAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, n *thawtest.Network, s *service, call func(context.Context) error) {
		var c Conns
		concurrently(t, 2, c.Do, call)
		n.Kill()
		time.Sleep(time.Minute)
		for range 5 {
			concurrently(t, 3, c.Do, call)
			time.Sleep(time.Second)
		}
		if dials := n.Dials(); dials != 2+3 {
			t.Errorf("%d connections, want 2 before and 3 after the freeze", dials)
		}
	})
}

// A freeze is noticed also when one of the two clocks stands still.
func TestFreezeOnEitherClock(t *testing.T) {
	t.Parallel()
	response := time.Now()
	// The monotonic reading is the second field. No public function changes only this.
	monotonic := func(at time.Time, by time.Duration) time.Time {
		moved := at
		(*[2]int64)(unsafe.Pointer(&moved))[1] += int64(by)
		if moved.Sub(at) != by || !moved.Round(0).Equal(at.Round(0)) {
			t.Fatal("time.Time has another layout")
		}
		return moved
	}
	for name, now := range map[string]time.Time{
		"both":           response.Add(time.Minute),
		"wall only":      monotonic(response.Add(time.Minute), -time.Minute),
		"monotonic only": monotonic(response, time.Minute),
		"short":          response.Add(pause),
	} {
		c := Conns{response: response}
		c.begin(now)
		if got, want := !c.thawed.IsZero(), name != "short"; got != want {
			t.Errorf("%s: a pause: %t, want %t", name, got, want)
		}
	}
}

// The caller's context ends the call, and the call's error is returned.
func TestErrorsPass(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, n *thawtest.Network, s *service, call func(context.Context) error) {
		var c Conns
		broken := errors.New("broken")
		if err := c.Do(t.Context(), func(context.Context) error { return broken }); err != broken {
			t.Errorf("got error %v, want the call's", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Do(ctx, call); !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want context.Canceled", err)
		}
	})
}
