package runtimeapi_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

func TestInvoke(t *testing.T) {
	t.Parallel()
	x := start(t, func(o *runtimeapi.Options) { o.Timeout = 30 * time.Second })
	first, second := x.must(request{Value: "a"}), x.must(request{Value: "b"})
	if first.Value != "a" || second.Value != "b" {
		t.Errorf("got %q and %q, want a and b", first.Value, second.Value)
	}
	if first.PID != second.PID || second.Count != 2 {
		t.Errorf("processes %d and %d, the last one's invocation number %d; want one process twice", first.PID, second.PID, second.Count)
	}
	if !slices.Equal(x.PIDs(), []int{first.PID}) {
		t.Errorf("PIDs returned %d, want %d", x.PIDs(), first.PID)
	}
	if first.Budget <= 29*time.Second || first.Budget > 30*time.Second {
		t.Errorf("the deadline was in %s, want in just under 30 s", first.Budget)
	}
	if first.Request == second.Request || !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(first.Request) {
		t.Errorf("request IDs are %q and %q, want two UUIDs", first.Request, second.Request)
	}
	if !strings.HasSuffix(first.ARN, ":function:function") || !strings.HasPrefix(first.ARN, "arn:aws:lambda:") {
		t.Errorf("function ARN is %q", first.ARN)
	}
	if !regexp.MustCompile(`^Root=1-[0-9a-f]{8}-[0-9a-f]{24};Parent=[0-9a-f]{16};Sampled=0;Lineage=1:[0-9a-f]{8}:0$`).MatchString(first.TraceID) {
		t.Errorf("trace ID is %q", first.TraceID)
	}
}

// After a function error the process serves the next invocation.
func TestHandlerError(t *testing.T) {
	t.Parallel()
	x := start(t)
	pid := x.must(request{}).PID
	if e := x.fail(request{Do: "error", Value: "no stock"}); e.Type != "errorString" || e.Message != "no stock" {
		t.Errorf("error is %+v, want errorString: no stock", e)
	}
	if e := x.fail(request{Do: "custom", Value: "no stock"}); e.Type != "customError" || e.Message != "no stock" {
		t.Errorf("error is %+v, want customError: no stock", e)
	}
	if got := x.must(request{}).PID; got != pid {
		t.Errorf("process %d after an error, want still %d", got, pid)
	}
}

// If the process ends, the invocation ends with an error, and the next one gets a new process.
func TestCrash(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		r       request
		kind    string
		message string
		stack   bool
	}{
		{"panic", request{Do: "panic", Value: "oh no"}, "string", "oh no", true},
		{"panic in a goroutine", request{Do: "goroutine", Value: "oh no"}, runtimeapi.TypeExit, "Runtime exited with error: exit status 2", false},
		{"exit", request{Do: "exit", Value: "1234"}, runtimeapi.TypeExit, "Runtime exited with error: exit status 4", false},
		{"exit with 0", request{Do: "exit"}, runtimeapi.TypeExit, "Runtime exited without providing a reason", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := start(t)
			pid := x.must(request{}).PID
			e := x.fail(tt.r)
			if e.Type != tt.kind || !strings.Contains(e.Message, tt.message) || tt.stack != (len(e.StackTrace) > 0) {
				t.Errorf("error is %+v, want %s: %s, stack %t", e, tt.kind, tt.message, tt.stack)
			}
			next := x.must(request{})
			if next.PID == pid || next.Count != 1 {
				t.Errorf("process %d, invocation %d of it; want a new one after %d", next.PID, next.Count, pid)
			}
		})
	}
}

func TestResponseOver6MB(t *testing.T) {
	t.Parallel()
	x := start(t)
	if e := x.fail(request{Do: "large"}); e.Type != runtimeapi.TypeResponseSize {
		t.Errorf("error is %+v, want %s", e, runtimeapi.TypeResponseSize)
	}
	x.must(request{})
}

// An incomplete streamed response is an error.
func TestBrokenStream(t *testing.T) {
	t.Parallel()
	x := start(t)
	if e := x.fail(request{Do: "stream"}); e.Message != "stream broke" {
		t.Errorf("error is %+v, want: stream broke", e)
	}
	x.must(request{})
}

func TestEventOver6MB(t *testing.T) {
	t.Parallel()
	x := start(t)
	if _, err := x.do(request{Value: strings.Repeat("x", 6<<20)}); !errors.Is(err, runtimeapi.ErrTooLarge) {
		t.Errorf("Invoke returned %v, want ErrTooLarge", err)
	}
	if got := x.must(request{Value: strings.Repeat("x", 5<<20)}).Value; len(got) != 5<<20 {
		t.Errorf("response of %d bytes, want %d", len(got), 5<<20)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	t.Run("default", func(t *testing.T) {
		t.Parallel()
		x := start(t, func(o *runtimeapi.Options) {
			o.Env = []string{"TABLE=dedup", "AWS_REGION=eu-west-1"}
			o.MemorySize = 512
		})
		for name, want := range map[string]string{
			"TABLE": "dedup", "AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-1", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512", "_HANDLER": "bootstrap",
			"LAMBDA_TASK_ROOT": filepath.Dir(bootstrap), "PATH": os.Getenv("PATH"), "GOFLAGS": "", "AWS_LAMBDA_MAX_CONCURRENCY": "",
			"AWS_ACCESS_KEY_ID": "test", "AWS_LAMBDA_FUNCTION_NAME": "function",
		} {
			if got := x.must(request{Do: "getenv", Value: name}).Value; got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if got, want := x.must(request{}).ARN, "arn:aws:lambda:eu-west-1:000000000000:function:function"; got != want {
			t.Errorf("the invoked ARN is %q, want %q", got, want)
		}
	})
	t.Run("PerProcess", func(t *testing.T) {
		t.Parallel()
		x := start(t, func(o *runtimeapi.Options) { o.PerProcess = 4 })
		if got := x.must(request{Do: "getenv", Value: "AWS_LAMBDA_MAX_CONCURRENCY"}).Value; got != "4" {
			t.Errorf("AWS_LAMBDA_MAX_CONCURRENCY is %q, want 4", got)
		}
	})
}

func TestOutput(t *testing.T) {
	t.Parallel()
	x := start(t)
	x.must(request{Do: "print", Value: "hello"})
	must.Do(t, x.Close(t.Context()))
	if got := strings.Count(x.out.String(), "hello\n"); got != 2 {
		t.Errorf("output is %q, want hello from stdout and stderr", x.out.String())
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	must.Do(t, os.WriteFile(plain, nil, 0o600))
	bad := func(o *runtimeapi.Options) {
		o.Timeout, *runtimeapi.InitTimeout(o), o.MemorySize, o.Processes, o.PerProcess = time.Hour, -1, -1, -1, -1
	}
	timeout := func(d time.Duration, perProcess int) func(*runtimeapi.Options) {
		return func(o *runtimeapi.Options) { o.Timeout, o.PerProcess = d, perProcess }
	}
	tests := []struct {
		name, bootstrap string
		optFns          []func(*runtimeapi.Options)
		want            []string
	}{
		{"missing", plain + "-not", nil, []string{"bootstrap"}},
		{"not executable", plain, nil, []string{"bootstrap"}},
		{"everything", "", []func(*runtimeapi.Options){bad}, []string{
			"bootstrap", "Options.Timeout", "Options.InitTimeout", "Options.MemorySize", "Options.Processes", "Options.PerProcess",
		}},
		{"901 s", bootstrap, []func(*runtimeapi.Options){timeout(901*time.Second, 1)}, []string{"Options.Timeout"}},
		{"5,400 s on Managed Instances", plain, []func(*runtimeapi.Options){timeout(90*time.Minute, 2)}, []string{"bootstrap"}},
		{"5,401 s on Managed Instances", bootstrap, []func(*runtimeapi.Options){timeout(5401*time.Second, 2)}, []string{"Options.Timeout"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := runtimeapi.Start(context.Background(), tt.bootstrap, tt.optFns...)
			if got := fields(err); !slices.Equal(got, tt.want) {
				t.Errorf("bad fields are %q, want %q\n%v", got, tt.want, err)
			}
		})
	}
}

// fields are what the lines of an error are about.
func fields(err error) (out []string) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		out = append(out, strings.Split(line, ": ")[1])
	}
	return out
}

// If the system cannot run the file, every invocation ends with a function error, as on Lambda.
func TestInvalidEntrypoint(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bootstrap")
	must.Do(t, os.WriteFile(path, []byte("not a program"), 0o700))
	f := must.Get(runtimeapi.Start(context.Background(), path))(t)
	_, err := f.Invoke(t.Context(), []byte(`{}`))
	if e, ok := errors.AsType[*runtimeapi.FunctionError](err); !ok || e.Type != runtimeapi.TypeEntrypoint {
		t.Errorf("Invoke returned %v, want %s", err, runtimeapi.TypeEntrypoint)
	}
	must.Do(t, f.Close(t.Context()))
}
