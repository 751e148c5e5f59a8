// Package runtimeapi runs a compiled Lambda bootstrap as real processes on this machine: the same binary, talking to the
// same Runtime API, killed the same way, as on AWS.
//
//	f, err := runtimeapi.Start(ctx, "./bootstrap", func(o *runtimeapi.Options) { o.Timeout = 10 * time.Second })
//	defer f.Close(ctx)
//	response, err := f.Invoke(ctx, event)
//
// [Function.Invoke] is an esm.Invoker; set esm.Config.InvokerTimesOut with it, since the timeout is counted here.
//
// Build the bootstrap as for AWS, for this machine: CGO_ENABLED=0 go build -tags lambda.norpc -o bootstrap.
//
// # Processes
//
// A process is started when an invocation finds none free, up to Options.Processes; beyond that Invoke returns
// [ErrThrottled]. It serves one invocation at a time (Options.PerProcess changes that), and the next one after it has
// asked for it. A process that exits or is killed is replaced by the next invocation. One that exits before it asked for
// its first invocation makes the next start wait, 100 ms doubling to 5 s.
//
// An invocation that runs over Options.Timeout ends with its process: SIGKILL, or where the bootstrap registered an
// extension (aws-lambda-go's WithEnableSIGTERM does) SIGTERM and 500 ms later SIGKILL. [Function.Close] ends processes the
// same way. Lambda counts the timeout from when the process gets the event, and so does this package.
//
// # What is not there
//
// Nothing is isolated: the processes run as the caller, with the caller's file system and network, and are not frozen
// between invocations. Memory is not limited. Extensions are told nothing but that they exist. Streamed responses are
// collected.
//
// The Runtime API is https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html.
package runtimeapi
