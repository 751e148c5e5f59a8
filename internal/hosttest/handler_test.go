package hosttest

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/sqsworker"
)

var errCard = errors.New("card refused")

func succeed(context.Context, *run) error { return nil }

func fail(err error) script { return func(context.Context, *run) error { return err } }

// first is a script for an event's first run; the others succeed.
func first(s script) script { return s.then(succeed) }

// then is s for an event's first run, and next for the others.
func (s script) then(next script) script {
	return func(ctx context.Context, r *run) error {
		if r.n > 1 {
			return next(ctx, r)
		}
		return s(ctx, r)
	}
}

func panics(context.Context, *run) error { panic("boom") }

func exits(context.Context, *run) error {
	runtime.Goexit()
	return nil
}

// takes takes d, or until its context or its process ends.
func takes(d time.Duration) script {
	return func(ctx context.Context, r *run) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.process.dead:
			return errDead
		}
	}
}

// ignores takes d and ignores its context.
func ignores(d time.Duration) script {
	return func(_ context.Context, r *run) error {
		if !r.process.sleep(d) {
			return errDead
		}
		return nil
	}
}

func stuck(_ context.Context, r *run) error {
	<-r.process.dead
	return errDead
}

const (
	panicText  = "sqsonce: handler panicked: boom"
	goexitText = "sqsonce: handler called runtime.Goexit"
)

// forever is the end state of an event whose handler always fails.
func forever(text string) endStates {
	return endStates{"a1": {Status: released, Error: text, Attempts: 5, Dead: byPolicy, Runs: 5}}
}

// inProcess: the worker runs a failing head of a group again under its lease, and a function sends it to the dead-letter
// queue at its last receive.
func inProcess(text string) []difference {
	return []difference{{
		hosts: []string{worker}, kinds: []kind{fifo},
		want:    endStates{"a1": {Status: released, Error: text, Attempts: 1, Dead: text, Runs: 5}},
		because: "the worker runs the head of a group again under its lease, so that the receive counts of the messages behind it do not grow, and then sends it to the dead-letter queue",
	}, {
		hosts: []string{function}, kinds: []kind{fifo},
		want:    endStates{"a1": {Status: released, Error: text, Attempts: 5, Dead: text, Runs: 5}},
		because: "the function sends the message to the dead-letter queue itself, so that those behind it run",
	}}
}

// onceMore is the end state of an event whose first run failed.
func onceMore(text string) endStates {
	return endStates{"a1": {Status: done, Error: text, Attempts: 2, Runs: 2}}
}

// sameReceive: the second run needs no second receive.
func sameReceive(text string) []difference {
	return []difference{{
		hosts: []string{worker}, kinds: []kind{fifo},
		want:    endStates{"a1": {Status: done, Error: text, Attempts: 1, Runs: 2}},
		because: "the worker runs the head of a group again in the same receive",
	}}
}

// handlerScenarios are the ways in which the handler of one event can end.
var handlerScenarios = []scenario{
	{name: "done", script: succeed, want: endStates{"a1": {Status: done, Attempts: 1, Runs: 1}}},
	{name: "error, then done", script: first(fail(errCard)), want: onceMore("card refused"), differ: sameReceive("card refused")},
	{name: "error, always", script: fail(errCard), want: forever("card refused"), differ: inProcess("card refused")},
	{name: "panic, then done", script: first(panics), want: onceMore(panicText), differ: sameReceive(panicText)},
	{name: "panic, always", script: panics, want: forever(panicText), differ: inProcess(panicText)},
	{name: "Goexit, then done", script: first(exits), want: onceMore(goexitText), differ: sameReceive(goexitText)},
	{name: "Goexit, always", script: exits, want: forever(goexitText), differ: inProcess(goexitText)},
	{
		name: "RetryAfter", script: first(fail(sqsonce.RetryAfter(45*time.Second, errCard))),
		want: endStates{"a1": {Status: done, Error: "sqsonce: retry after 45s: card refused", Attempts: 2, Runs: 2, Again: 45 * time.Second}},
		differ: []difference{
			{
				hosts: []string{bareFunction}, because: "without a client nobody changes the visibility timeout",
				want: endStates{"a1": {Status: done, Error: "sqsonce: retry after 45s: card refused", Attempts: 2, Runs: 2, Again: 180 * time.Second}},
			},
			{
				hosts: []string{worker}, kinds: []kind{fifo}, because: heldInGroup,
				want: endStates{"a1": {Status: done, Error: "sqsonce: retry after 45s: card refused", Attempts: 1, Runs: 2, Again: 45 * time.Second}},
			},
		},
	},
	{
		name: "Postpone", script: first(fail(sqsonce.Postpone(45*time.Second, errCard))),
		want: endStates{"a1": {Status: done, Attempts: 1, Runs: 2, Again: 45 * time.Second}},
		differ: []difference{
			{
				hosts: []string{function}, because: "a function can't hold a message: its delay costs a receive",
				want: endStates{"a1": {Status: done, Attempts: 2, Runs: 2, Again: 45 * time.Second}},
			},
			{
				hosts: []string{bareFunction}, because: "without a client nobody changes the visibility timeout",
				want: endStates{"a1": {Status: done, Attempts: 2, Runs: 2, Again: 180 * time.Second}},
			},
		},
	},
	{
		name: "Postpone, more often than it may be received",
		script: func(_ context.Context, r *run) error {
			if r.n < 9 {
				return sqsonce.Postpone(time.Minute, errCard)
			}
			return nil
		},
		want: endStates{"a1": {Status: done, Attempts: 1, Runs: 9}},
		differ: []difference{{
			hosts: []string{function, bareFunction}, because: "each delay of a function costs a receive, and without a limiter nobody decides that the handler runs all the same",
			want: endStates{"a1": {Status: released, Attempts: 5, Dead: byPolicy, Runs: 5}},
		}},
	},
	{
		name: "Reject", script: fail(sqsonce.Reject(errCard)),
		want: endStates{"a1": {Status: released, Error: rejectText, Attempts: 1, Dead: rejectText, Runs: 1}},
		differ: []difference{{
			hosts: []string{bareFunction}, because: bareRejects,
			want: forever(rejectText),
		}},
	},
	{
		name: "poison body", send: []message{{name: "a1", body: `{"name":1}`}}, script: succeed,
		want: endStates{"a1": {Status: released, Error: poisonText, Attempts: 1, Dead: poisonText}},
		differ: []difference{{
			hosts: []string{bareFunction}, because: bareRejects,
			want: endStates{"a1": {Status: released, Error: poisonText, Attempts: 5, Dead: byPolicy}},
		}},
	},
	{
		name: "slow, longer than the worker's visibility timeout", script: takes(27 * time.Second),
		worker: func(o *sqsworker.Options) { o.VisibilityTimeout = 10 * time.Second },
		want:   endStates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
	{
		name: "slow, longer than the function's timeout, then done", script: first(takes(4 * time.Minute)),
		want: endStates{"a1": {Status: done, Attempts: 1, Runs: 1}},
		differ: []difference{{
			hosts: []string{function, bareFunction}, want: onceMore("sqsonce: host is stopping"),
			because: "a function ends at its timeout: the handler's context ends before, and the message is delivered again",
		}},
	},
	{
		name: "slow, longer than the function's timeout, always", script: takes(4 * time.Minute), length: 2 * time.Hour,
		want: endStates{"a1": {Status: done, Attempts: 1, Runs: 1}},
		differ: []difference{{
			hosts: []string{function, bareFunction}, want: forever("sqsonce: host is stopping"),
			because: "a function ends at its timeout: a handler that takes longer never succeeds",
		}, {
			hosts: []string{function}, kinds: []kind{fifo}, because: "the function sends a FIFO message that was cut off to the dead-letter queue itself",
			want: endStates{"a1": {Status: released, Error: "sqsonce: host is stopping", Attempts: 5, Dead: "lambda: the handler's time ended: sqsonce: host is stopping", Runs: 5}},
		}},
	},
	{
		name: "ignores its context", script: ignores(time.Minute),
		worker: func(o *sqsworker.Options) {
			o.Timeout = func(*sqsonce.Message) time.Duration { return 20 * time.Second }
		},
		want: endStates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
	{
		name: "ignores its context and fails", worker: func(o *sqsworker.Options) {
			o.Timeout = func(*sqsonce.Message) time.Duration { return 20 * time.Second }
		},
		script: first(func(ctx context.Context, r *run) error { return errors.Join(ignores(time.Minute)(ctx, r), errCard) }),
		want:   onceMore("card refused"), differ: sameReceive("card refused"),
	},
	{
		name: "never returns, until its process is replaced", script: first(stuck), length: 2 * time.Hour,
		during: func(_ *fixture, h running) {
			time.Sleep(time.Hour)
			h.restart()
		},
		want: endStates{"a1": {Status: done, Attempts: anyAttempts, Runs: 2}},
	},
}

const bareRejects = "without a client nothing is sent to the dead-letter queue: the redrive policy moves the message, after all receives and without a reason"

const rejectText = "sqsonce: rejected: card refused"

const poisonText = "sqsonce: rejected: sqsonce: body is not a JSON hosttest.order (at byte 9, field name)"
