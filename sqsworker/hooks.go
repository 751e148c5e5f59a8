package sqsworker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Hooks are called around handlers and calls of SQS, for traces and metrics. The rules of [sqsonce.Hooks] apply. They run on
// the goroutines of handlers and calls, not on the goroutine that decides for all messages. A slow hook delays only its own
// message or call. For counts and gauges read [Worker.Stats] instead. An Attach hook gets the worker.
//
// A handler that is stuck ends when it returns, with the outcome of its return, or when the stop no longer waits for it.
type Hooks struct {
	sqsonce.Hooks
	// Call is called before each call of SQS for messages. The call is made with the context that it returns. done, which may be
	// nil, is called when SQS has answered. The context ends when done has returned.
	Call func(ctx context.Context, c Call) (_ context.Context, done func(CallResult))
	// Attach is called once, by Run. Run calls its result, which may be nil, when it returns. Use it for instruments that read
	// Stats on demand. It may keep w.
	Attach func(w *Worker) (detach func())
}

// Call is one call of SQS.
type Call struct {
	QueueURL string             // of the queue that gets the call, for a reject the dead-letter queue
	Purpose  string             // "receive", "delete", "extend", "release" or "reject". Metrics use the texts, which are stable
	Entries  int                // messages asked for, or to be changed
	Messages []*sqsonce.Message // nil for receives, don't keep them
}

// CallResult is the answer to a [Call].
type CallResult struct {
	Elapsed time.Duration
	Entries int   // messages received, or entries changed
	Failed  int   // entries that SQS refused, or that its answer does not name
	Err     error // the error of the whole call
}

// hooks are those of the options, guarded.
type hooks struct {
	handlers host.Hooks
	calls    host.Around[Call, CallResult]
	attach   []func(*Worker) func()
}

func newHooks(log *slog.Logger, all []Hooks) (h hooks) {
	var handlers []sqsonce.Hooks
	for _, o := range all {
		handlers = append(handlers, o.Hooks)
		h.calls = h.calls.With(log, "sqsworker: Hooks.Call", o.Call)
		h.attach = append(h.attach, o.Attach)
	}
	h.handlers = host.NewHooks(log, "sqsworker", handlers)
	return h
}

// begin calls the hooks before a call of SQS, on its goroutine, and returns its context and what is to be called with its result.
func (h *hooks) begin(ctx context.Context, c Call) (_ context.Context, done func(CallResult)) {
	if h.calls == nil {
		return ctx, func(CallResult) {}
	}
	ctx, cancel := context.WithCancel(ctx) // calls share theirs, see [host.Ends]: what a hook derives from it would stay until it ends
	ctx, answered := h.calls.Begin(ctx, c)
	start := time.Now()
	return ctx, func(r CallResult) {
		r.Elapsed = time.Since(start)
		answered(r)
		cancel()
	}
}

// messagesOf returns the messages of a call's entries, for its hooks; nil without hooks.
func messagesOf[E any](h *hooks, entries []E, of func(E) *delivery) []*sqsonce.Message {
	if h.calls == nil {
		return nil
	}
	ms := make([]*sqsonce.Message, 0, len(entries))
	for _, e := range entries {
		ms = append(ms, of(e).m)
	}
	return ms
}

// callResult is the result of a call with several entries.
func (r results) callResult(err error) (c CallResult) {
	c.Err = err
	for _, err := range r {
		if err == nil {
			c.Entries++
		} else {
			c.Failed++
		}
	}
	return c
}

// extended tells the hooks of the handlers that run what became of their messages' extensions. calls are those of the changes.
func (r results) extended(calls []*host.Call, changes []change, start time.Time) {
	for i, call := range calls {
		if err := r[i]; err != nil {
			call.Extended(sqsonce.Extension{Err: err})
		} else {
			call.Extended(sqsonce.Extension{Until: start.Add(changes[i].visibility)})
		}
	}
}

// callsOf returns the handlers' calls of an extension's messages: nil for what has not run, and without effect where one has ended.
func (h *hooks) callsOf(changes []change) (calls []*host.Call) {
	if h.handlers == nil {
		return nil
	}
	for _, c := range changes {
		calls = append(calls, c.d.call)
	}
	return calls
}

// handlerReturn is what the hooks learn of a handler whose context was ctx.
func (r result) handlerReturn(ctx context.Context) sqsonce.Return {
	ret := sqsonce.Return{Outcome: r.outcome, Err: r.err, Delay: r.asked}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, sqsonce.ErrLeaseLost), r.outcome == sqsonce.OutcomeLeaseLost:
		ret.Outcome, ret.Delay = sqsonce.OutcomeLeaseLost, -1
	case r.outcome == sqsonce.OutcomeFailed && errors.Is(cause, sqsonce.ErrShutdown) && isCancellation(r.err):
		ret.Outcome, ret.Delay = sqsonce.OutcomeShutdown, max(0, r.asked)
	case r.outcome == sqsonce.OutcomeFailed:
		ret.Delay = r.delay
	case r.outcome == sqsonce.OutcomeUnavailable:
		ret.Delay = -1 // not decided yet
	}
	return ret
}

// isCancellation says that a handler returned the end of its context.
func isCancellation(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, sqsonce.ErrShutdown)
}
