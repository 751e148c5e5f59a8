// Package runtimeapi runs a compiled Lambda bootstrap as real processes on this machine. The binary is the one for AWS, it calls
// the same Runtime API, and it is killed in the same way.
//
//	f, err := runtimeapi.Start(ctx, "./bootstrap", func(o *runtimeapi.Options) { o.Timeout = 10 * time.Second })
//	defer f.Close(ctx)
//	response, err := f.Invoke(ctx, event)
//
// [Function.Invoke] is an esm.Invoker. Set esm.Config.InvokerTimesOut with it, because this package applies the timeout.
//
// Build the bootstrap as for AWS, for this machine: CGO_ENABLED=0 go build -tags lambda.norpc -o bootstrap.
//
// # Processes
//
// If all processes are busy, an invocation starts a new one, up to Options.Processes. Above that, Invoke returns esm.ErrThrottled.
// A process serves one invocation at a time (Options.PerProcess changes that), and gets the next one when it asks for it. An
// invocation also starts a process in place of one that exited or was killed. After a process that exits before it asks for its
// first invocation, the next start waits 100 ms, doubled with each such process up to 5 s.
//
// An invocation that exceeds Options.Timeout ends together with its process. The process gets SIGKILL. If it registered an
// extension (aws-lambda-go's WithEnableSIGTERM does), it gets SIGTERM, and SIGKILL 500 ms later. [Function.Close] ends processes
// in the same way. As on Lambda, the timeout counts from when the process gets the event.
//
// SIGKILL also ends the processes that a bootstrap has started, except on Windows. On Linux the bootstrap dies with your program, even
// if that is killed. Elsewhere it ends when it asks for its next invocation.
//
// # Not implemented
//
// The processes are not isolated. They run as the caller, with the caller's file system and network, and are not frozen between
// invocations. Memory is not limited. Extensions can register but don't get events. Streamed responses are returned as a whole.
//
// The Runtime API is https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html.
package runtimeapi
