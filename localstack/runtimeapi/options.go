package runtimeapi

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"
)

// Options configure [Start].
type Options struct {
	// Env has further environment variables, as "NAME=value". They override the variables that Lambda sets. Of the caller's own
	// environment the processes get only PATH, HOME and TMPDIR. AWS_LAMBDA_FUNCTION_NAME is also the name in the function's ARN.
	// Default: empty.
	Env []string
	// Timeout is how long an invocation may last, counted from when the process gets it.
	// Default: 3 s. Limits: at most 15 min. With a PerProcess above 1, as on Managed Instances, at most 90 min.
	Timeout time.Duration
	// initTimeout is how long a process may run before it asks for its first invocation. 10 s but in tests.
	initTimeout time.Duration
	// MemorySize is the value of AWS_LAMBDA_FUNCTION_MEMORY_SIZE, in MB. It does not limit the memory.
	// Default: 128.
	MemorySize int
	// Processes is the maximum number of processes at once.
	// Default: 10.
	Processes int
	// PerProcess is how many invocations a process serves at once. Above 1 the bootstrap runs as on Lambda Managed Instances,
	// with AWS_LAMBDA_MAX_CONCURRENCY set to this number, and the timeout of one invocation ends all invocations of its process.
	// Default: 1.
	PerProcess int
	// Stdout and Stderr get the output of the processes, one write at a time.
	// Default: discarded.
	Stdout, Stderr io.Writer
}

// optionError is an invalid option or argument. Start returns one per bad field, joined.
type optionError struct {
	Field   string // "Options.Processes"
	Problem string
}

func (e *optionError) Error() string { return "runtimeapi: " + e.Field + ": " + e.Problem }

// The longest timeouts of a function.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
const (
	maxTimeout        = 15 * time.Minute
	maxManagedTimeout = 90 * time.Minute // on Managed Instances
)

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 3*time.Second)
	o.initTimeout = cmp.Or(o.initTimeout, 10*time.Second)
	o.MemorySize = cmp.Or(o.MemorySize, 128)
	o.Processes = cmp.Or(o.Processes, 10)
	o.PerProcess = cmp.Or(o.PerProcess, 1)
	return o
}

func (o Options) check() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &optionError{Field: "Options." + field, Problem: fmt.Sprintf(format, args...)})
	}
	longest := maxTimeout
	if o.PerProcess > 1 {
		longest = maxManagedTimeout
	}
	if o.Timeout < 0 || o.Timeout > longest {
		bad("Timeout", "is %s; more than 0 and at most %v min are allowed", o.Timeout, longest.Minutes())
	}
	if o.initTimeout < 0 {
		bad("InitTimeout", "is %s; it cannot be negative", o.initTimeout)
	}
	if o.MemorySize < 0 {
		bad("MemorySize", "is %d; it cannot be negative", o.MemorySize)
	}
	if o.Processes < 0 {
		bad("Processes", "is %d; it cannot be negative", o.Processes)
	}
	if o.PerProcess < 0 {
		bad("PerProcess", "is %d; it cannot be negative", o.PerProcess)
	}
	return errors.Join(errs...)
}
