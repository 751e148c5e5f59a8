package sqsonce

import (
	"context"
	"time"
)

// Hooks are functions that a host calls around each handler, for telemetry. Both hosts accept the same Hooks in their
// Options.
//
// The host skips a nil field. It calls the others synchronously, from any goroutine. A hook must return at once,
// because the host waits for it, whatever the deadline of the surrounding work: a handler, a call of SQS, Run, Publish
// or Close. A hook must not change its arguments, and must not call Close or runtime.Goexit. Hooks can't change what
// happens to a message. The host logs the panic of a hook once and does not call that hook again, but goes on to call
// the others.
//
// Hooks that you set together run in their order, and hooks that end something run in reverse order. A hook that you
// set twice is called twice.
//
// The structs that hooks get may grow fields.
type Hooks struct {
	// Start is called before the handler, on its goroutine. The handler, and every later hook of the same delivery,
	// gets the context that Start returns. That context must be derived from ctx. It must not end before ctx does, or
	// before End.
	Start func(ctx context.Context, d Delivery) context.Context
	// End is called once for each Start. It is called after the handler has returned, panicked or called
	// runtime.Goexit, and before its message is settled. If the host gives up waiting for the handler
	// (OutcomeAbandoned), End is called on another goroutine.
	End func(ctx context.Context, d Delivery, r Return)
	// Extended is called after the host has extended the visibility timeout of a message whose handler runs, or has
	// failed to. It may be called while End runs. A function on Lambda never calls it, because it does not extend
	// visibility timeouts.
	Extended func(ctx context.Context, d Delivery, e Extension)
}

// Delivery is one call of a handler.
type Delivery struct {
	// Message is the handler's argument. A hook must not change it.
	Message *Message
	// QueueURL is the URL of the queue. It is empty in a function, which knows only Message.QueueARN.
	QueueURL string
	// Received is when the host got the message.
	Received time.Time
	// Run counts the calls for this message in this process since Received, from 1. A worker runs the head of a FIFO
	// group, and messages that it holds, again without another receive.
	Run int
}

// Return is how a call of a handler ended.
type Return struct {
	Outcome OutcomeKind
	// Err is the handler's error. It is a [*PanicError] if the handler did not return.
	Err error
	// Elapsed is the time since Start was called.
	Elapsed time.Duration
	// Delay is how long the message waits for its next run, if [RetryAfter], [Postpone] or the backoff decides that.
	// Otherwise it is negative, for example for an event in progress whose end isn't known.
	Delay time.Duration
}

// Extension is one visibility change of a message whose handler runs.
type Extension struct {
	Until time.Time // the end of the visibility timeout by the host's clock, or zero if the change failed
	Err   error
}
