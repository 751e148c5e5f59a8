package lambda

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// state of a record. Every state that is not done is reported as a failure, the zero value too.
//
//	unstarted -> running -> succeeded                           the handler has succeeded: host.Outcomes
//	                     -> unstarted                           a suspect, which runs later
//	                     -> settling -> unstarted               it runs again in this invocation: see tryAgain
//	                     -> settling -> failed                  an error, perhaps after a question
//	                                 -> succeeded               the dead-letter queue has confirmed the message before the results were closed
//	          -> notStarted          when the handlers are closed, or when the retention of a message behind another one ends: see expireBehind
//	                     -> abandoned when the handlers are closed, or at half of the time if messages behind it need the rest
//
// In the results an abandoned record is deadLettered if the dead-letter queue has confirmed it, and one that was not started is expired.
type state uint32

const (
	unstarted state = iota
	running
	settling
	succeeded
	failed
	notStarted
	abandoned
	deadLettered
	expired
)

// done reports that Lambda deletes the message.
func (s state) done() bool { return s == succeeded || s == deadLettered || s == expired }

// slot is the result of one record.
//
// A handler that ignores its context may return while the response is being made, or much later. So each change of the state
// is a compare-and-swap from the state before. Of the handler's return and the closing of the handlers only one succeeds, and
// the other one sees that. The handler's goroutine writes err, outcome and retry before it swaps to settling. They are read
// only after that swap, so the values that an abandoned handler writes there are never read.
type slot struct {
	state   atomic.Uint32
	head    bool            // the first of its chain in the event
	suspect bool            // runs apart: see suspects.go
	alone   bool            // so does the chain that it is in
	runs    int             // of its handler in this invocation
	message sqsonce.Message // filled when the handler starts
	call    *host.Call      // for hooks, set before the state is running
	ctx     context.Context // of the host, set before the state is running
	v       *invocation     // and the chain from its record on, for InDebt
	chain   []int
	worker  *worker
	sent    atomic.Bool // to the dead-letter queue after it was abandoned, or not started
	own     atomic.Bool // its last run was unavailable, and its question passed

	err     error
	outcome sqsonce.OutcomeKind
	retry   time.Time // when the message should be visible again; zero: at the end of its visibility timeout
}

func (s *slot) change(from, to state) bool { return s.state.CompareAndSwap(uint32(from), uint32(to)) }

func (s *slot) is(want state) bool { return s.state.Load() == uint32(want) }

// close makes the state final and returns it. The handlers are closed by then.
func (s *slot) close() state {
	switch {
	case s.change(settling, failed):
		return failed
	case s.is(abandoned) && s.sent.Load():
		return deadLettered
	case s.is(notStarted) && s.sent.Load():
		return expired
	}
	return state(s.state.Load())
}

// handle runs the handler for the first record of a chain. It reports whether that succeeded before the results were closed:
// the next record may run. Otherwise the chain has ended, or goes on after the send to the dead-letter queue.
func (v *invocation) handle(chain []int, w *worker) (next bool) {
	s := &v.slots[chain[0]]
	s.runs++
	s.own.Store(false)
	s.call = v.hooks.handlers.Call(sqsonce.Delivery{Message: &s.message, Received: v.begun, Run: s.runs})
	m := &s.message
	v.records[chain[0]].fill(m, v.killAt)
	base, _ := settle.New(v.withSuspects(v.ctx, s))
	settle.RunsAtOnce(base, min(v.opts.Concurrency, len(v.records)))
	s.ctx, s.v, s.chain, s.worker = base, v, chain, w
	settle.HeldBy(base, s)
	if !s.change(unstarted, running) { // the handlers are closed
		v.endChain(chain)
		return false
	}
	ctx, returned := v.limit(base, chain)
	begun := time.Now()
	host.Run(func() error { return v.handler(s.call.Start(ctx), m) }, func(err error) {
		returned()
		cut := ctx.Err() != nil
		if s.is(running) && (err == nil || !cut) { // neither abandoned nor cut off
			v.runTimes.add(time.Since(begun))
		}
		if o := sqsonce.OutcomeOf(err).Kind; host.Outcomes[o].Done {
			next = v.succeed(s, base, o, err)
		} else {
			v.fail(failure{chain: chain, slot: s, message: m, ctx: ctx, err: err, cut: cut})
		}
	})
	return next
}

// succeed sets the result of a handler that succeeded, or ended its message with err.
func (v *invocation) succeed(s *slot, ctx context.Context, outcome sqsonce.OutcomeKind, err error) (next bool) {
	s.outcome = outcome
	s.end(outcome, err, -1)
	v.tell(ctx, false, s)
	if !s.change(running, succeeded) {
		v.returnLate(s, err)
		return false
	}
	if line := host.Outcomes[outcome].Line; line != "" {
		v.log.InfoContext(v.contextOf(s), "lambda: "+line, keyMessage, s.message.ID, keyGroup, s.message.Group, keyError, err)
	}
	return true
}

// failure is the error that a handler returned for the first record of a chain, or the mark that the handler was abandoned.
type failure struct {
	chain   []int
	slot    *slot
	message *sqsonce.Message
	ctx     context.Context // of the handler
	err     error
	cut     bool // the context had ended when the handler returned

	expires   bool // its retention ends
	crashes   bool // it crashed a process alone
	abandoned bool // the handler has not returned: what it may write of the slot is not read
	unstarted bool // the handler was not called: see expireBehind
}

// fail sets the result of a handler that failed, or leaves it to settle.
func (v *invocation) fail(f failure) {
	s, m := f.slot, f.message
	f = v.judge(f)
	v.logWithoutClient(s, f.err)
	s.err, s.outcome, s.retry = f.err, f.outcome(), v.retryAt(m, f.err)
	delay := time.Duration(-1)
	if s.outcome != sqsonce.OutcomeRejected && !s.retry.IsZero() {
		delay = time.Until(s.retry)
	}
	s.end(s.outcome, f.err, delay)
	if v.holdSuspect(f) {
		v.tell(f.ctx, false, s)
		return
	}
	if !s.change(running, settling) {
		v.tell(f.ctx, false, s)
		v.returnLate(s, f.err)
		return
	}
	if s.outcome == sqsonce.OutcomeUnavailable {
		v.askWhetherDown(f)
	}
	if v.mayBeDeadLettered(f) || v.mayExpire(f) || v.mayTryAgain(f) {
		v.sends.add(f)
		return
	}
	v.tell(f.ctx, false, s)
	s.change(settling, failed)
	v.logFailure(f)
	v.endChain(f.chain[1:])
}

// abandon gives up a handler that does not return. Its message leaves its group as that of one that fails, unless middleware waits for
// its store: then nothing is known of the message.
func (v *invocation) abandon(chain []int) (sending bool) {
	v.logAbandoned(chain[0])
	s := &v.slots[chain[0]]
	var m sqsonce.Message // as it was received: the handler may still write into its own
	v.records[chain[0]].fill(&m, v.killAt)
	f := failure{chain: chain, slot: s, message: &m, ctx: s.ctx, err: errAbandoned, abandoned: true}
	if settle.InHandler(f.ctx) && v.mayBeDeadLettered(f) {
		v.sends.add(f)
		return true
	}
	return v.endChain(chain[1:])
}

// settle sends a failed message to the dead-letter queue, where it belongs there, and sets its result. Once that is confirmed
// the message counts as a success, and its group goes on. So it does where SQS moves the message, also one that its handler postpones.
func (v *invocation) settle(f failure) {
	if f.unstarted {
		v.expireBehind(f.chain)
		return
	}
	if v.tryAgain(f) {
		return
	}
	mayBe := v.mayBeDeadLettered(f)
	sent := mayBe && v.isSpent(f) && v.deadLetter(f) || v.expire(f)
	goesOn := sent || (mayBe || f.outcome() == sqsonce.OutcomePostponed) && v.isLeftToSQS(f)
	switch {
	case f.abandoned:
		f.slot.sent.Store(sent)
	case sent:
		v.tell(f.ctx, true, f.slot)
		goesOn = f.slot.change(settling, succeeded)
	default:
		v.tell(f.ctx, false, f.slot)
		goesOn = f.slot.change(settling, failed) && goesOn
		v.logFailure(f)
	}
	if goesOn && len(f.chain) > 1 {
		v.goOn(f.chain[1:])
		return
	}
	v.endChain(f.chain[1:])
}

// tell settles a message for middleware.
func (v *invocation) tell(ctx context.Context, sent bool, s *slot) {
	if err := settle.Settle(ctx, sent); err != nil {
		v.log.ErrorContext(v.contextOf(s), "lambda: function of OnSettled failed", keyMessage, s.message.ID, keyError, err)
	}
}

// contextOf is the context of a record's Start hooks, for lines about it: a handler of the log finds a trace in it.
func (v *invocation) contextOf(s *slot) context.Context { return s.call.Context(v.ctx) }

// returnLate is for the return of a handler that was abandoned: its worker was replaced.
func (v *invocation) returnLate(s *slot, err error) {
	s.worker.replaced = true
	m := &s.message
	v.abandoned.Add(-1)
	v.log.WarnContext(v.contextOf(s), "lambda: abandoned handler returned after the response", keyMessage, m.ID, keyGroup, m.Group, keyError, err)
}

func (v *invocation) logFailure(f failure) {
	if line := host.Outcomes[sqsonce.OutcomeOf(f.err).Kind].Debug; line != "" {
		v.log.DebugContext(v.contextOf(f.slot), "lambda: "+line, f.about()...)
		return
	}
	v.log.WarnContext(v.contextOf(f.slot), "lambda: handler failed", f.about()...)
}

// about returns the attributes of a line about a failure, with the key that deduplication used, if it did.
func (f failure) about() []any {
	m := f.message
	attrs := []any{keyMessage, m.ID, keyGroup, m.Group, keyCount, m.ReceiveCount}
	if key := settle.KnownKey(f.ctx); key != "" {
		attrs = append(attrs, keyEvent, key)
	}
	return append(attrs, host.ErrorAttrs(f.err)...)
}
