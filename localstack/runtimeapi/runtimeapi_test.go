package runtimeapi_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testlog"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

var bootstrap string // of internal/testbootstrap

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "runtimeapi")
	if err != nil {
		panic(err)
	}
	bootstrap = filepath.Join(dir, "bootstrap")
	build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", bootstrap, "./internal/testbootstrap")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("go build: %v\n%s", err, out))
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Println(err)
			code = 1
		}
	}
	os.Exit(code)
}

// request and response mirror those of the test bootstrap.
type request struct {
	Do, Value string
	Sleep     time.Duration
}

type response struct {
	PID, Count, Parallel         int
	Value, Request, ARN, TraceID string
	Budget                       time.Duration
}

// fixture is a function and the output of its processes.
type fixture struct {
	*testing.T
	*runtimeapi.Function
	out testlog.Book
}

func start(t *testing.T, optFns ...func(*runtimeapi.Options)) *fixture {
	t.Helper()
	x := &fixture{T: t}
	f := must.Get(runtimeapi.Start(context.Background(), bootstrap, append([]func(*runtimeapi.Options){func(o *runtimeapi.Options) {
		o.Stdout, o.Stderr, o.Timeout = &x.out, &x.out, time.Minute
	}}, optFns...)...))(t)
	x.Function = f
	t.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if pids := f.PIDs(); len(pids) != 0 {
			t.Errorf("processes %d are alive after Close", pids)
		}
	})
	return x
}

// do invokes and decodes the response.
func (x *fixture) do(r request) (response, error) {
	event, err := json.Marshal(r)
	if err != nil {
		return response{}, err
	}
	b, err := x.Invoke(context.Background(), event)
	if err != nil {
		return response{}, err
	}
	var out response
	return out, json.Unmarshal(b, &out)
}

func (x *fixture) must(r request) response {
	x.Helper()
	out, err := x.do(r)
	if err != nil {
		x.Fatalf("Invoke(%+v): %v", r, err)
	}
	return out
}

// fail invokes and returns the expected function error.
func (x *fixture) fail(r request) *runtimeapi.FunctionError {
	x.Helper()
	out, err := x.do(r)
	e, ok := errors.AsType[*runtimeapi.FunctionError](err)
	if !ok {
		x.Fatalf("Invoke(%+v) returned %+v, %v; want a FunctionError", r, out, err)
	}
	return e
}

// begin returns when a process works on an invocation, with what will be its error.
func (x *fixture) begin(takes time.Duration) <-chan error {
	begun := "begun " + rand.Text()
	ended := make(chan error, 1)
	go func() {
		_, err := x.do(request{Do: "announce", Value: begun, Sleep: takes})
		ended <- err
	}()
	for !strings.Contains(x.out.String(), begun) && len(ended) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	return ended
}
