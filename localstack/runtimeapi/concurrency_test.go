package runtimeapi_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

// together runs n invocations at once and returns their responses.
func (x *fixture) together(n int, r request) []response {
	x.Helper()
	var mu sync.Mutex
	var out []response
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			got, err := x.do(r)
			if err != nil {
				x.Errorf("Invoke: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, got)
		})
	}
	wg.Wait()
	return out
}

func pids(rs []response) map[int]bool {
	out := map[int]bool{}
	for _, r := range rs {
		out[r.PID] = true
	}
	return out
}

// Each invocation has its own process. Idle processes are used before a new one starts.
func TestScaleOut(t *testing.T) {
	t.Parallel()
	x := start(t, func(o *runtimeapi.Options) { o.Processes = 3 })
	x.must(request{})
	x.must(request{})
	if got := len(x.PIDs()); got != 1 {
		t.Errorf("%d processes for one invocation after the other, want 1", got)
	}
	got := x.together(3, request{Sleep: 500 * time.Millisecond})
	if len(pids(got)) != 3 {
		t.Errorf("three invocations at once ran in %d processes, want 3", len(pids(got)))
	}
	for _, r := range got {
		if r.Parallel != 1 {
			t.Errorf("process %d worked on %d invocations at once, want 1", r.PID, r.Parallel)
		}
	}
	if again := x.together(3, request{Sleep: 300 * time.Millisecond}); len(again) != 3 || len(x.PIDs()) != 3 {
		t.Errorf("%d processes after six invocations, want the same 3", len(x.PIDs()))
	}
}

func TestThrottled(t *testing.T) {
	t.Parallel()
	x := start(t, func(o *runtimeapi.Options) { o.Processes = 1 })
	running := x.begin(5 * time.Second)
	if _, err := x.do(request{}); !errors.Is(err, esm.ErrThrottled) {
		t.Errorf("Invoke returned %v, want ErrThrottled", err)
	}
	must.Do(t, <-running)
	// When Invoke has returned, the process has already asked for its next invocation, so nothing is throttled.
	for range 50 {
		x.must(request{})
	}
}

// With PerProcess one process serves several invocations at once.
func TestPerProcess(t *testing.T) {
	t.Parallel()
	x := start(t, func(o *runtimeapi.Options) { o.Processes, o.PerProcess = 2, 3 })
	x.must(request{})
	got := x.together(3, request{Sleep: 500 * time.Millisecond})
	if len(pids(got)) != 1 {
		t.Errorf("three invocations at once ran in %d processes, want 1", len(pids(got)))
	}
	if got := x.must(request{}).Parallel; got != 3 {
		t.Errorf("the process worked on %d invocations at once, want 3", got)
	}
	if got := x.together(6, request{Sleep: 500 * time.Millisecond}); len(pids(got)) != 2 {
		t.Errorf("six invocations at once ran in %d processes, want 2", len(pids(got)))
	}
}

// The timeout of one invocation ends all invocations of its process.
func TestPerProcessTimeout(t *testing.T) {
	t.Parallel()
	x := start(t, func(o *runtimeapi.Options) {
		o.Processes, o.PerProcess, o.Timeout = 1, 2, 10*time.Second
	})
	first := x.begin(time.Minute)
	time.Sleep(time.Second)
	if e := x.fail(request{Sleep: time.Minute}); e.Type != runtimeapi.TypeExit {
		t.Errorf("the other invocation's error is %+v, want %s", e, runtimeapi.TypeExit)
	}
	if e, ok := errors.AsType[*runtimeapi.FunctionError](<-first); !ok || e.Type != runtimeapi.TypeTimeout {
		t.Errorf("error is %+v, want %s", e, runtimeapi.TypeTimeout)
	}
	x.must(request{})
}
