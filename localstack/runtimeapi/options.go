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
	// Env is added to what Lambda sets, as "NAME=value"; it wins over it. Of the caller's own environment the processes
	// get PATH, HOME and TMPDIR only. Default: none.
	Env []string
	// Timeout is the longest an invocation may take, from when the process gets it; at most 15 min. Default: 3 s.
	Timeout time.Duration
	// InitTimeout is how long a process may take before it asks for its first invocation. Default: 10 s.
	InitTimeout time.Duration
	// MemorySize is what AWS_LAMBDA_FUNCTION_MEMORY_SIZE says, in MB; nothing is limited by it. Default: 128.
	MemorySize int
	// Processes is the most processes at once. Default: 10.
	Processes int
	// PerProcess is how many invocations a process serves at once. Above 1 the bootstrap runs as on Lambda Managed
	// Instances, with AWS_LAMBDA_MAX_CONCURRENCY set to it. A timeout of one invocation then ends all of its process.
	// Default: 1.
	PerProcess int
	// Stdout and Stderr get what the processes write; one write at a time. Default: discarded.
	Stdout, Stderr io.Writer
}

// OptionError is an option or argument that cannot be used. Start joins one per bad one.
type OptionError struct {
	Field   string // "Options.Processes"
	Problem string
}

func (e *OptionError) Error() string { return "runtimeapi: " + e.Field + ": " + e.Problem }

const maxTimeout = 15 * time.Minute

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 3*time.Second)
	o.InitTimeout = cmp.Or(o.InitTimeout, 10*time.Second)
	o.MemorySize = cmp.Or(o.MemorySize, 128)
	o.Processes = cmp.Or(o.Processes, 10)
	o.PerProcess = cmp.Or(o.PerProcess, 1)
	return o
}

func (o Options) check() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &OptionError{Field: "Options." + field, Problem: fmt.Sprintf(format, args...)})
	}
	if o.Timeout < 0 || o.Timeout > maxTimeout {
		bad("Timeout", "is %s; more than 0 and at most 15 min are allowed", o.Timeout)
	}
	if o.InitTimeout < 0 {
		bad("InitTimeout", "is %s; it cannot be negative", o.InitTimeout)
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
