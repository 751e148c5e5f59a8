// Command testbootstrap is a Lambda function for the tests of runtimeapi. Its event says what it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// request is the event.
type request struct {
	Do    string // "": respond
	Value string
	Sleep time.Duration
}

// response is what the process knows of its invocation.
type response struct {
	PID      int
	Count    int // invocations of this process so far
	Value    string
	Budget   time.Duration // time until the deadline
	Request  string
	ARN      string
	TraceID  string
	Parallel int // most invocations at once so far
}

type customError struct{ Reason string }

func (e *customError) Error() string { return e.Reason }

var state struct {
	sync.Mutex
	count, running, parallel int
}

func handle(ctx context.Context, r request) (any, error) {
	deadline, _ := ctx.Deadline()
	budget := time.Until(deadline)
	state.Lock()
	state.count++
	state.running++
	state.parallel = max(state.parallel, state.running)
	state.Unlock()
	defer func() {
		state.Lock()
		state.running--
		state.Unlock()
	}()
	if r.Do == "announce" {
		fmt.Println(r.Value)
	}
	time.Sleep(r.Sleep)
	switch r.Do {
	case "error":
		return nil, errors.New(r.Value)
	case "custom":
		return nil, &customError{r.Value}
	case "panic":
		panic(r.Value)
	case "goroutine":
		go func() { panic(r.Value) }()
		select {}
	case "exit":
		os.Exit(len(r.Value))
	case "large":
		return strings.Repeat("x", 7<<20), nil
	case "stream":
		return &brokenStream{}, nil
	case "getenv":
		r.Value = os.Getenv(r.Value)
	case "child":
		child := exec.Command("sleep", "600")
		if err := child.Start(); err != nil {
			return nil, err
		}
		r.Value = strconv.Itoa(child.Process.Pid)
	case "print":
		fmt.Println(r.Value)
		fmt.Fprintln(os.Stderr, r.Value)
	}
	lc, _ := lambdacontext.FromContext(ctx)
	trace, _ := ctx.Value("x-amzn-trace-id").(string)
	state.Lock()
	defer state.Unlock()
	return response{
		PID: os.Getpid(), Count: state.count, Value: r.Value, Budget: budget, Request: lc.AwsRequestID,
		ARN: lc.InvokedFunctionArn, TraceID: trace, Parallel: state.parallel,
	}, nil
}

// brokenStream returns a few bytes and then an error.
type brokenStream struct{ sent bool }

func (s *brokenStream) Read(p []byte) (int, error) {
	if s.sent {
		return 0, errors.New("stream broke")
	}
	s.sent = true
	return copy(p, "half"), nil
}

func main() {
	switch os.Getenv("TEST_INIT") {
	case "crash":
		fmt.Println("init")
		os.Exit(3)
	case "slow":
		time.Sleep(3 * time.Second)
	case "hang":
		time.Sleep(time.Hour)
	}
	var options []lambda.Option
	got := func() { fmt.Println("got SIGTERM") }
	switch os.Getenv("TEST_SIGTERM") {
	case "extension":
		options = append(options, lambda.WithEnableSIGTERM(got))
	case "handler":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		go func() {
			<-signals
			got()
		}()
	}
	lambda.StartWithOptions(handle, options...)
}
