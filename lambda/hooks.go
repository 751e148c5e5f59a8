package lambda

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/guard"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Hooks are called around invocations and handlers, for telemetry. The rules of [sqsonce.Hooks] apply. The hooks aren't
// called for an event that the function refuses, and while too many goroutines are abandoned.
//
// End of an abandoned handler is called before Finish, or when Start has returned. Extended is never called, because a
// function doesn't extend visibility timeouts.
type Hooks struct {
	sqsonce.Hooks
	// Begin is called before the first handler, and all messages wait for it. The whole invocation uses the context that it
	// returns. The messages are copies, which share Attribute.Binary with those of the handlers, in the order of the event. If
	// Begin has not returned when the margin begins, it counts in Options.Abandoned, and the answer names all messages.
	Begin func(ctx context.Context, messages []*sqsonce.Message) context.Context
	// Finish is called after the answer is made and before it is returned, so it delays the answer. It can export the telemetry
	// that was gathered, because Lambda freezes the process after the answer. Its context ends three sixteenths of the margin
	// before the deadline. At two sixteenths the answer is returned all the same, so Finish can't cost a success. A Finish that
	// continues counts in Options.Abandoned.
	Finish func(ctx context.Context, r Report)
}

// Report has the outcomes of one invocation.
type Report struct {
	QueueARN string
	Records  int
	// Outcomes adds up to Records. A rejected message that was not sent to the dead-letter queue counts as failed.
	Outcomes map[sqsonce.OutcomeKind]int
	// Sent is how many messages were sent to the dead-letter queue: rejected messages, FIFO messages that failed too often, and
	// messages whose retention ends.
	Sent      int
	Elapsed   time.Duration // since Begin
	Remaining time.Duration // until the deadline, or 0 if it is not known
	Abandoned int64         // goroutines of this process that were abandoned and have not returned. See Options.Abandoned
	Err       error         // the error that the invocation returns
}

// hooks are those of the options, guarded.
type hooks struct {
	handlers host.Hooks
	around   []guarded
}

type guarded struct {
	Hooks
	begin, finish *guard.Guard
}

func newHooks(log *slog.Logger, all []Hooks) (h hooks) {
	var handlers []sqsonce.Hooks
	for _, o := range all {
		handlers = append(handlers, o.Hooks)
		h.around = append(h.around, guarded{o, guard.New(log, "lambda: Hooks.Begin"), guard.New(log, "lambda: Hooks.Finish")})
	}
	h.handlers = host.NewHooks(log, "lambda", handlers)
	return h
}

// begin calls the Begin hooks, and returns their context: ctx where they have not returned before messages are no longer started.
func (v *invocation) begin(ctx context.Context) context.Context {
	if v.hooks.around == nil {
		return ctx
	}
	wait, cancel := v.times.until(ctx, handlersStop)
	defer cancel()
	begun := ctx
	if !v.awaitHooks(wait, func() {
		for _, g := range v.hooks.around {
			if g.Begin != nil {
				begun = g.begin.Context(begun, func(ctx context.Context) context.Context { return g.Begin(ctx, v.messages()) })
			}
		}
	}) {
		return ctx
	}
	return begun
}

// messages are those of the event, as handlers will see them.
func (v *invocation) messages() []*sqsonce.Message {
	all := make([]*sqsonce.Message, len(v.records))
	for i := range v.records {
		all[i] = new(sqsonce.Message)
		v.records[i].fill(all[i], v.killAt)
	}
	return all
}

// awaitHooks calls f, which calls hooks, and reports whether it has returned before ctx ended.
func (v *invocation) awaitHooks(ctx context.Context, f func()) bool {
	if await(ctx, &v.abandoned, f) {
		return true
	}
	v.log.ErrorContext(ctx, "lambda: hook abandoned: it did not return in time for the answer")
	return false
}

// finish calls the End hooks of abandoned handlers, and the Finish hooks. It returns in time for the answer, whatever they do.
func (v *invocation) finish(ctx context.Context, r results, err error) {
	if v.hooks.around == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	wait, cancel := v.times.until(ctx, answerEnd)
	defer cancel()
	ctx, cancelHooks := v.times.until(ctx, hooksEnd)
	defer cancelHooks()
	report := v.report(r, err)
	v.awaitHooks(wait, func() { v.callFinish(ctx, r, report) })
}

func (v *invocation) callFinish(ctx context.Context, r results, report Report) {
	for i, s := range r.states {
		if s == abandoned || s == deadLettered {
			v.slots[i].end(sqsonce.OutcomeAbandoned, nil, -1)
		}
	}
	for _, g := range slices.Backward(v.hooks.around) {
		if g.Finish != nil {
			g.finish.Call(ctx, func() { g.Finish(ctx, report) })
		}
	}
}

func (v *invocation) report(r results, err error) Report {
	report := Report{
		QueueARN: v.records[0].QueueARN, Records: len(r.states), Outcomes: map[sqsonce.OutcomeKind]int{},
		Elapsed: time.Since(v.begun), Abandoned: v.abandoned.Load(), Err: err,
	}
	if v.times.limited() {
		report.Remaining = max(0, time.Until(v.times.deadline))
	}
	for i, s := range r.states {
		slot := &v.slots[i]
		switch {
		case s == notStarted, s == expired:
			report.Outcomes[sqsonce.OutcomeNotStarted]++
		case s == abandoned, s == deadLettered:
			report.Outcomes[sqsonce.OutcomeAbandoned]++
		case s == failed && slot.outcome == sqsonce.OutcomeRejected:
			report.Outcomes[sqsonce.OutcomeFailed]++
		default:
			report.Outcomes[slot.outcome]++
		}
		if s == deadLettered || s == expired || s == succeeded && slot.err != nil {
			report.Sent++
		}
	}
	return report
}

// outcome is that of a failure for telemetry: a handler that was cut off has its own.
func (f failure) outcome() sqsonce.OutcomeKind {
	kind := sqsonce.OutcomeOf(f.err).Kind
	if kind == sqsonce.OutcomeFailed && f.cut && (errors.Is(f.err, f.ctx.Err()) || errors.Is(f.err, sqsonce.ErrShutdown)) {
		return sqsonce.OutcomeShutdown
	}
	return kind
}

// end calls the End hooks of the record's handler, unless they were called already.
func (s *slot) end(kind sqsonce.OutcomeKind, err error, delay time.Duration) {
	if s.is(abandoned) {
		kind, delay = sqsonce.OutcomeAbandoned, -1
	}
	s.call.End(sqsonce.Return{Outcome: kind, Err: err, Delay: delay})
}
