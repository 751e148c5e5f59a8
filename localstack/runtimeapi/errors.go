package runtimeapi

import (
	"errors"
	"fmt"
	"time"
)

// ErrClosed is the error of Invoke after Close, or after the context of Start was cancelled.
var ErrClosed = errors.New("runtimeapi: function is closed")

// errTooLarge is the error of Invoke for an event above the 6 MB of a synchronous invocation. It stands for Lambda's status 413.
var errTooLarge = errors.New("runtimeapi: event exceeds 6 MB")

// FunctionError is the error of a failed invocation, with Lambda's X-Amz-Function-Error and its payload.
type FunctionError struct {
	// Type is the Go type of the function's error or panic, as aws-lambda-go names it, such as "errorString", or a type of
	// Lambda, such as "Sandbox.Timedout".
	Type       string       `json:"errorType"`
	Message    string       `json:"errorMessage"`
	StackTrace []stackFrame `json:"stackTrace,omitempty"`
}

// stackFrame is a line of the stack of a panic.
type stackFrame struct {
	Path  string `json:"path"`
	Line  int    `json:"line"`
	Label string `json:"label"`
}

// The error types of Lambda.
const (
	typeTimeout      = "Sandbox.Timedout"              // the invocation exceeded Timeout, or the process InitTimeout
	typeExit         = "Runtime.ExitError"             // the process ended without a response
	typeEntrypoint   = "Runtime.InvalidEntrypoint"     // the bootstrap could not be started
	typeResponseSize = "Function.ResponseSizeTooLarge" // the response exceeds 6 MB
)

func (e *FunctionError) Error() string { return "runtimeapi: " + e.Type + ": " + e.Message }

func timedOut(id string, d time.Duration) *FunctionError {
	return &FunctionError{Type: typeTimeout, Message: fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", id, d.Seconds())}
}

func initTimedOut(d time.Duration) *FunctionError {
	return &FunctionError{Type: typeTimeout, Message: fmt.Sprintf("Error: Init phase timed out after %.2f seconds", d.Seconds())}
}

// exitedWith is the error of an invocation whose process ended; err is the error of exec.Cmd.Wait.
func exitedWith(id string, err error) *FunctionError {
	message := "Runtime exited without providing a reason"
	if err != nil {
		message = "Runtime exited with error: " + err.Error() // "exit status 1", "signal: killed"
	}
	return &FunctionError{Type: typeExit, Message: fmt.Sprintf("RequestId: %s Error: %s", id, message)}
}
