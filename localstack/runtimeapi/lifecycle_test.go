//go:build unix

package runtimeapi_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

// alive reports whether the process exists. It is our child process, and Function waits for it when it ends.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// At the timeout the process is killed, and has exited before Invoke returns.
func TestTimeout(t *testing.T) {
	t.Parallel()
	x := start(t, func(o *runtimeapi.Options) { o.Timeout = time.Second })
	pid := x.must(request{}).PID
	begin := time.Now()
	e := x.fail(request{Sleep: time.Minute})
	if e.Type != runtimeapi.TypeTimeout || !strings.HasSuffix(e.Message, "Error: Task timed out after 1.00 seconds") {
		t.Errorf("error is %+v", e)
	}
	if took := time.Since(begin); took < time.Second || took > 10*time.Second {
		t.Errorf("timed out after %s, want 1 s", took)
	}
	if alive(pid) {
		t.Errorf("process %d is still there", pid)
	}
	if next := x.must(request{}); next.PID == pid || next.Count != 1 {
		t.Errorf("process %d, invocation %d of it; want a new one after %d", next.PID, next.Count, pid)
	}
}

// After SIGTERM the process still runs. A response that it sends then is ignored.
func TestAnswerAfterTimeout(t *testing.T) {
	t.Parallel()
	x := start(t, func(o *runtimeapi.Options) {
		o.Timeout, o.Env = time.Second, []string{"TEST_SIGTERM=extension"}
	})
	x.must(request{})
	if e := x.fail(request{Sleep: 1200 * time.Millisecond}); e.Type != runtimeapi.TypeTimeout {
		t.Errorf("error is %+v, want %s", e, runtimeapi.TypeTimeout)
	}
}

// The timeout counts from the delivery and does not include the start of the process.
func TestTimeoutLeavesOutInit(t *testing.T) {
	t.Parallel()
	x := start(t, func(o *runtimeapi.Options) { o.Timeout, o.Env = 5*time.Second, []string{"TEST_INIT=slow"} })
	if got := x.must(request{}).Budget; got <= 2*time.Second { // 3 s of init
		t.Errorf("the first invocation had %s until its deadline, want about 5 s", got)
	}
}

// A bootstrap that registers an extension gets SIGTERM, and SIGKILL if it does not exit.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		end  func(x *fixture)
	}{
		{"on Close", func(x *fixture) {
			must.Do(x, x.Close(context.Background()))
		}},
		{"on timeout", func(x *fixture) {
			if e := x.fail(request{Sleep: time.Minute}); e.Type != runtimeapi.TypeTimeout {
				x.Errorf("error is %+v, want %s", e, runtimeapi.TypeTimeout)
			}
		}},
	}
	for _, tt := range tests {
		for _, registered := range []bool{true, false} {
			name := tt.name
			if !registered {
				name += ", no extension"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				x := start(t, func(o *runtimeapi.Options) {
					o.Timeout = time.Second
					o.Env = []string{"TEST_SIGTERM=handler"}
					if registered {
						o.Env = []string{"TEST_SIGTERM=extension"}
					}
				})
				pid := x.must(request{}).PID
				begin := time.Now()
				tt.end(x)
				if alive(pid) {
					t.Errorf("process %d is still there", pid)
				}
				if got := strings.Contains(x.out.String(), "got SIGTERM"); got != registered {
					t.Errorf("SIGTERM arrived: %t, want %t; output:\n%s", got, registered, x.out.String())
				}
				// aws-lambda-go's callback does not end the process.
				if took := time.Since(begin); registered && took < 500*time.Millisecond {
					t.Errorf("killed after %s, want at least 500 ms after SIGTERM", took)
				}
			})
		}
	}
}

// After a bootstrap that failed to start, the next invocations start it again, each after a longer pause.
func TestInitCrash(t *testing.T) {
	t.Parallel()
	x := start(t, func(o *runtimeapi.Options) { o.Env = []string{"TEST_INIT=crash"} })
	begin := time.Now()
	for range 4 {
		if e := x.fail(request{}); e.Type != runtimeapi.TypeExit || !strings.Contains(e.Message, "exit status 3") {
			t.Errorf("error is %+v, want %s with exit status 3", e, runtimeapi.TypeExit)
		}
	}
	if got := strings.Count(x.out.String(), "init\n"); got != 4 {
		t.Errorf("%d starts, want one an invocation", got)
	}
	if took := time.Since(begin); took < 700*time.Millisecond {
		t.Errorf("four starts took %s, want waits of 100, 200 and 400 ms between them", took)
	}
}

func TestInitTimeout(t *testing.T) {
	t.Parallel()
	x := start(t, func(o *runtimeapi.Options) {
		o.Env, *runtimeapi.InitTimeout(o) = []string{"TEST_INIT=hang"}, 200*time.Millisecond
	})
	if e := x.fail(request{}); e.Type != runtimeapi.TypeTimeout || !strings.Contains(e.Message, "Init phase timed out after 0.20 seconds") {
		t.Errorf("error is %+v", e)
	}
	if pids := x.PIDs(); len(pids) != 0 {
		t.Errorf("processes %d are still there", pids)
	}
}

func TestKillOne(t *testing.T) {
	t.Parallel()
	x := start(t)
	if _, err := x.KillOne(); err == nil {
		t.Error("KillOne without a process returned no error")
	}

	// Of two processes the second is busy: that one is killed.
	first := x.must(request{}).PID
	short := x.begin(5 * time.Second)
	failed := x.begin(time.Minute)
	must.Do(t, <-short)
	pid := must.Get(x.KillOne())(t)
	if pid == first {
		t.Error("the idle process was killed")
	}
	err := <-failed
	if e, ok := errors.AsType[*runtimeapi.FunctionError](err); !ok || e.Type != runtimeapi.TypeExit || !strings.Contains(e.Message, "signal: killed") {
		t.Errorf("Invoke returned %v, want %s: signal: killed", err, runtimeapi.TypeExit)
	}
	if alive(pid) {
		t.Errorf("process %d is still there", pid)
	}

	// Killing an idle process fails no invocation.
	if pid, err = x.KillOne(); err != nil || alive(pid) || len(x.PIDs()) != 0 {
		t.Errorf("KillOne returned %d, %v; is it alive: %t; processes: %d", pid, err, alive(pid), x.PIDs())
	}
	if got := x.must(request{}); got.Count != 1 {
		t.Errorf("invocation %d of process %d, want the first of a new one", got.Count, got.PID)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	t.Run("waits for invocations", func(t *testing.T) {
		t.Parallel()
		x := start(t)
		done := x.begin(400 * time.Millisecond)
		must.Do(t, x.Close(t.Context()))
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the invocation failed: %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Error("the invocation did not return")
		}
		if _, err := x.do(request{}); !errors.Is(err, runtimeapi.ErrClosed) {
			t.Errorf("Invoke returned %v, want ErrClosed", err)
		}
	})
	t.Run("kills when its context ends", func(t *testing.T) {
		t.Parallel()
		x := start(t)
		pid := x.must(request{}).PID
		done := x.begin(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := x.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close returned %v, want DeadlineExceeded", err)
		}
		if err := <-done; err == nil {
			t.Error("the invocation succeeded")
		}
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
	})
	t.Run("context of Start", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(context.Background())
		f := must.Get(runtimeapi.Start(ctx, bootstrap, func(o *runtimeapi.Options) { o.Timeout = time.Minute }))(t)
		time.AfterFunc(300*time.Millisecond, cancel)
		if _, err := f.Invoke(context.Background(), []byte(`{"Sleep":60000000000}`)); err == nil {
			t.Error("the invocation succeeded")
		}
		if _, err := f.Invoke(context.Background(), []byte(`{}`)); !errors.Is(err, runtimeapi.ErrClosed) {
			t.Errorf("Invoke returned %v, want ErrClosed", err)
		}
		must.Do(t, f.Close(t.Context()))
	})
	t.Run("during the wait after a failed init", func(t *testing.T) {
		t.Parallel()
		x := start(t, func(o *runtimeapi.Options) { o.Env = []string{"TEST_INIT=crash"} })
		for range 5 {
			x.fail(request{})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		go x.do(request{})
		time.Sleep(20 * time.Millisecond)
		begin := time.Now()
		_ = x.Close(ctx) // the error of the context, or nil if Close was faster
		if took := time.Since(begin); took > time.Second {
			t.Errorf("Close took %s, want not the 1.6 s until the next start", took)
		}
	})
}

// Cancelling the context of Invoke does not stop the invocation.
func TestInvokeContext(t *testing.T) {
	t.Parallel()
	x := start(t, func(o *runtimeapi.Options) { o.Processes = 1 })
	pid := x.must(request{}).PID
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := x.Invoke(ctx, []byte(`{"Sleep":1500000000}`)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Invoke returned %v, want DeadlineExceeded", err)
	}
	if _, err := x.do(request{}); !errors.Is(err, esm.ErrThrottled) {
		t.Errorf("Invoke returned %v, want ErrThrottled: the process still works", err)
	}
	for begin := time.Now(); time.Since(begin) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
		if got, err := x.do(request{}); err == nil {
			if got.PID != pid || got.Count != 3 {
				t.Errorf("process %d, invocation %d of it; want the third of %d", got.PID, got.Count, pid)
			}
			return
		}
	}
	t.Error("the process did not become free")
}
