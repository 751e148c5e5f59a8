package sqsonce

import (
	"context"
	"time"
)

// Hooks are what a host calls around each handler, for telemetry. Both hosts take the same ones: see their Options.
//
// A field that is nil is not called. Every other is called synchronously, from any goroutine, and must return at once: what it
// is around waits for it, whatever its deadline: a handler, a call of SQS, Run, Publish or Close. It must not change what it gets, nor
// call Close. None can change what becomes of a message. One that panics is logged once and not called again, while the others still
// are; none may call runtime.Goexit. Hooks that are set together run in their order, those that end something in reverse; one that is
// set twice is called twice.
//
// The structs that hooks get may grow fields.
type Hooks struct {
	// Start is called before the handler, on its goroutine. The handler, and every later hook of the same delivery, gets the
	// context that it returns, which must be derived from ctx. It must not end before ctx does, or before End.
	Start func(ctx context.Context, d Delivery) context.Context
	// End is called once for each Start: when the handler has returned, panicked or called runtime.Goexit, before its message is
	// settled; or when the host gives up waiting for it (OutcomeAbandoned), on another goroutine.
	End func(ctx context.Context, d Delivery, r Return)
	// Extended is called when the host has extended the visibility timeout of a message whose handler runs, or could not. It may
	// be called beside End. A function extends nothing.
	Extended func(ctx context.Context, d Delivery, e Extension)
}

// Delivery is one call of a handler.
type Delivery struct {
	// Message is what the handler gets. It must not be changed.
	Message *Message
	// QueueURL is the queue's; empty in a function, which knows Message.QueueARN only.
	QueueURL string
	// Received is when the host got the message.
	Received time.Time
	// Run counts the calls for this message in this process since then, from 1: a worker runs the head of a FIFO group again
	// by itself, and what it holds.
	Run int
}

// Return is how a call of a handler ended.
type Return struct {
	Outcome OutcomeKind
	// Err is what the handler returned; a [*PanicError] where it did not return.
	Err error
	// Elapsed is the time since Start was called.
	Elapsed time.Duration
	// Delay is how long the message is to wait for its next try, where [RetryAfter] or the backoff says so; else negative, as
	// for an event in progress whose end nobody knows.
	Delay time.Duration
}

// Extension is one visibility change of a message whose handler runs.
type Extension struct {
	Until time.Time // the end of the visibility timeout, by the host's clock; zero where the change failed
	Err   error
}
