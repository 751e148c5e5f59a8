package fifo

import (
	"context"
	"log/slog"
	"time"

	"github.com/sqsonce/sqsonce/internal/guard"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Hooks are called for events and for requests, for telemetry. The rules of [sqsonce.Hooks] apply. A hook must not wait for the
// result of an event.
type Hooks struct {
	// Accept is called before an event is checked, with a copy. It returns the event's context, which the publisher keeps until
	// Answered, and the trace context to send with the event. The context must be derived from ctx. Its end is ignored.
	Accept func(ctx context.Context, a Acceptance) (context.Context, Carry)
	// Answered is called once for each event, when it has its receipt or its error, and before the caller that waits for the
	// result goes on. A caller whose context ends while its event is in flight doesn't wait, and the event is answered later.
	Answered func(ctx context.Context, a Answer)
	// Send is called before each request and returns the request's context. The publisher calls done, which may be nil, when
	// SQS has answered.
	Send func(ctx context.Context, s Send) (_ context.Context, done func(SendResult))
	// Attach is called by NewPublisher, and its result, which may be nil, at the end of the first Close. It is for instruments
	// that read Stats.
	Attach func(p *Publisher) (detach func())
}

// Acceptance is an event that is about to be accepted.
type Acceptance struct {
	QueueURL string
	Event    *Event // not to be changed
}

// Answer is the result of an event.
type Answer struct {
	QueueURL string
	Event    *Event // not to be changed
	Receipt  Receipt
	Err      error         // a *PublishError, whose Index is 0
	Elapsed  time.Duration // since the event was accepted, or 0 if it was not
}

// Send is one request.
type Send struct {
	QueueURL string
	Events   []context.Context // of its entries, as Accept returned them
	Bytes    int64             // of its messages
}

// SendResult is the answer to one request.
type SendResult struct {
	Elapsed      time.Duration
	Sent, Failed int   // entries. One that the answer does not name has failed
	Err          error // of the whole request
}

// hooks are those of the options, guarded. They are never called under the publisher's lock.
type hooks struct {
	events []guarded // nil: there are no hooks
	sends  host.Around[Send, SendResult]
	attach []func(*Publisher) func()
}

type guarded struct {
	Hooks
	accept, answered *guard.Guard
}

func newHooks(log *slog.Logger, all []Hooks) (hs hooks) {
	for _, h := range all {
		hs.events = append(hs.events, guarded{h, guard.New(log, "fifo: Hooks.Accept"), guard.New(log, "fifo: Hooks.Answered")})
		hs.sends = hs.sends.With(log, "fifo: Hooks.Send", h.Send)
		hs.attach = append(hs.attach, h.Attach)
	}
	return hs
}

// hookedEvent is the hooks' data of an event, from Accept to Answered.
type hookedEvent struct {
	ctx   context.Context
	event *Event // the hooks' copy
	carry Carry  // what is sent of it: see carried
}

// accepting calls the hooks for an event that was given to the publisher. It returns nil if there are none.
func (p *Publisher) accepting(ctx context.Context, ev Event) *hookedEvent {
	if p.hooks.events == nil {
		return nil
	}
	given := ev // a copy, and not ev itself: that would be allocated without hooks too
	given.Attributes = cloneAttributes(ev.Attributes)
	h := &hookedEvent{ctx: ctx, event: &given}
	for i := range p.hooks.events {
		if hook := &p.hooks.events[i]; hook.Accept != nil {
			h.ctx = hook.accept.Context(h.ctx, func(ctx context.Context) context.Context {
				next, c := hook.Accept(ctx, Acceptance{QueueURL: p.queueURL, Event: h.event})
				h.carry = h.carry.or(c)
				return next
			})
		}
	}
	return h
}

// answer calls the hooks for an event that has its result. accepted is zero where it was not accepted.
func (p *Publisher) answer(h *hookedEvent, r Receipt, err error, accepted time.Time) {
	a := Answer{QueueURL: p.queueURL, Event: h.event, Receipt: r, Err: err}
	if !accepted.IsZero() {
		a.Elapsed = time.Since(accepted)
	}
	for i := len(p.hooks.events) - 1; i >= 0; i-- {
		if hook := &p.hooks.events[i]; hook.Answered != nil {
			hook.answered.Call(h.ctx, func() { hook.Answered(h.ctx, a) })
		}
	}
}

// unlock gives up the lock. Then it calls the hooks for the events that got their results under it, and lets those go on who wait
// for them. Whoever may have called finish ends with it.
func (p *Publisher) unlock() {
	answered := p.answered
	p.answered = nil
	p.mu.Unlock()
	for _, e := range answered {
		if e.hooked != nil {
			p.answer(e.hooked, e.pending.receipt, e.pending.err, e.accepted)
		}
		close(e.pending.done)
	}
}

// sending calls the hooks before a request. It returns the request's context, and what is called when it was answered.
func (p *Publisher) sending(ctx context.Context, batch []*entry) (_ context.Context, answered func(SendResult)) {
	if p.hooks.sends == nil {
		return ctx, func(SendResult) {}
	}
	s := Send{QueueURL: p.queueURL}
	for _, e := range batch {
		s.Events = append(s.Events, e.hooked.ctx)
		s.Bytes += e.messageSize()
	}
	return p.hooks.sends.Begin(ctx, s)
}

// sendResult is what hooks are told of an attempt.
func (a *attempt) sendResult(err error) SendResult {
	r := SendResult{Elapsed: a.took, Err: err}
	for _, entry := range a.results {
		if entry.proof == provesSent {
			r.Sent++
		}
	}
	r.Failed = len(a.batch) - r.Sent
	return r
}
