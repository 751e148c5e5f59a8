package hosttest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
	internal "github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// runElsewhere runs the handler for an event in another process, while the host receives a message of that event too. The
// run counts as one of the event. crash is when that process dies; 0: after the handler.
func runElsewhere(name string, length, crash time.Duration) func(*fixture) {
	return func(w *fixture) {
		p := w.newProcess()
		h := w.dedupHandler(p, takes(length))
		m := &sqsonce.Message{ID: "elsewhere", Body: `{"name":"a1"}`, ReceiveCount: 1, QueueARN: queueARN, Attributes: map[string]sqsonce.Attribute{
			sqsonce.AttrEventID:     {Type: "String", String: name},
			sqsonce.AttrEventSource: {Type: "String", String: source},
		}}
		go func() {
			if err := h(context.Background(), m); err != nil && p.alive() {
				w.Errorf("handled elsewhere: %v", err)
			}
			p.kill()
		}()
		if crash > 0 {
			time.AfterFunc(crash, p.kill)
		}
		time.Sleep(time.Second) // it acquires the record
	}
}

// storeUnavailable makes the store unavailable for d from now on.
func storeUnavailable(d time.Duration) func(*fixture) {
	return func(w *fixture) {
		w.net.storeUnavailableFor(d)
	}
}

// faults applies rules to SQS for d, from before the host starts.
func faults(d time.Duration, rules ...fault.Rule) func(*fixture) {
	return func(w *fixture) {
		w.sqs.Set(fault.Plan{Seed: 1, Rules: rules})
		time.AfterFunc(d, func() { w.sqs.Set(fault.Plan{}) })
	}
}

func crashAfter(d time.Duration) func(*fixture, running) {
	return func(_ *fixture, h running) {
		time.Sleep(d)
		h.crash()
	}
}

// losesStore succeeds, and makes the store unavailable for d.
func losesStore(d time.Duration) script {
	return func(_ context.Context, r *run) error {
		r.process.w.net.storeUnavailableFor(d)
		return nil
	}
}

// dies succeeds, and its process dies before dedup completes the record.
func dies(_ context.Context, r *run) error {
	r.process.kill()
	return nil
}

const heldInGroup = "the worker holds a message of a FIFO group and tries it again in the same receive"

// failureScenarios are failures around the handler: of its process, the store, the queue or the dead-letter queue.
var failureScenarios = []scenario{
	{
		name: "in progress elsewhere, then done there", script: succeed, before: runElsewhere("a1", 100*time.Second, 0),
		want: endStates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
	{
		name: "in progress elsewhere, and it crashes", script: succeed, before: runElsewhere("a1", 100*time.Second, 40*time.Second),
		want: endStates{"a1": {Status: done, Attempts: anyAttempts, Runs: 2}},
	},
	{
		name: "in progress elsewhere for longer than all receives", script: succeed, before: runElsewhere("a1", 40*time.Minute, 0),
		length: 2 * time.Hour,
		want:   endStates{"a1": {Status: done, Attempts: 1, Runs: 1}},
		differ: []difference{{
			hosts: []string{function, bareFunction}, want: endStates{"a1": {Status: done, Attempts: 1, Dead: byPolicy, Runs: 1}},
			because: "Lambda cannot hold a message: each delivery adds to its receive count",
		}},
	},
	{
		name: "store unavailable for a while", script: succeed, before: storeUnavailable(5 * time.Second),
		want: endStates{"a1": {Status: done, Attempts: anyAttempts, Runs: 1}},
	},
	{
		// A delivery without its store is no try: nothing is dead-lettered because of an outage.
		name: "store unavailable for half an hour", script: succeed, before: storeUnavailable(30 * time.Minute), length: 3 * time.Hour,
		want: endStates{"a1": {Status: done, Attempts: anyAttempts, Runs: 1}},
		differ: []difference{{
			hosts: []string{bareFunction}, want: endStates{"a1": {Status: none, Dead: byPolicy}},
			because: "without a client nobody changes the visibility timeout: five receives last 15 min",
		}},
	},
	{
		name: "store unavailable when the handler has succeeded", script: first(losesStore(10 * time.Second)),
		want: endStates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
	{
		// The message is not deleted without a completed record. Where the host loses it first, its redelivery completes the record.
		name: "store unavailable from the handler's success to the end of the lease", script: first(losesStore(time.Minute)), receives: 50,
		want: endStates{"a1": {Status: done, Attempts: anyAttempts, Runs: 1}},
	},
	{
		name: "the process dies while the handler runs", script: first(takes(20 * time.Second)),
		during: crashAfter(12 * time.Second), want: endStates{"a1": {Status: done, Attempts: anyAttempts, Runs: 2}},
	},
	{
		name: "the process dies between the handler and its record", script: first(dies), during: crashAfter(12 * time.Second),
		want: endStates{"a1": {Status: done, Attempts: anyAttempts, Runs: 2}},
	},
	{
		name: "the dead-letter queue fails once", script: fail(sqsonce.Reject(errCard)),
		before: faults(time.Hour, fault.Rule{Op: "SendMessage", Nth: 1, Times: 3, Do: fault.Error}), // the client tries three times
		want:   endStates{"a1": {Status: released, Error: rejectText, Attempts: 2, Dead: rejectText, Runs: 2}},
		differ: []difference{
			{hosts: []string{bareFunction}, want: forever(rejectText), because: bareRejects},
			{
				hosts: []string{worker}, kinds: []kind{fifo}, because: heldInGroup,
				want: endStates{"a1": {Status: released, Error: rejectText, Attempts: 1, Dead: rejectText, Runs: 3}},
			},
			{
				hosts: []string{worker}, kinds: []kind{standard}, because: "the worker asks the dead-letter queue again only after 30 s",
				want: endStates{"a1": {Status: released, Error: rejectText, Attempts: 3, Dead: rejectText, Runs: 3}},
			},
		},
	},
	{
		name: "deletes fail for a while", script: succeed, before: faults(5*time.Minute, fault.Rule{Op: "DeleteMessageBatch", Prob: 1, Do: fault.Error}),
		want: endStates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
}

// brokenErrors are errors that end a process whose host trusts them. The nil pointers are not nil as errors:
//
//	var e *fs.PathError
//	return e
func brokenErrors() map[string]error {
	return map[string]error{
		"a nil *fs.PathError":         (*fs.PathError)(nil),
		"a nil *net.OpError":          (*net.OpError)(nil),
		"a nil *url.Error":            (*url.Error)(nil),
		"a nil *sqsonce.PanicError":   (*sqsonce.PanicError)(nil),
		"a wrapped nil *fs.PathError": fmt.Errorf("read: %w", (*fs.PathError)(nil)),
		"a joined nil *fs.PathError":  errors.Join(errCard, (*fs.PathError)(nil)),
	}
}

// brokenScenarios are handlers, errors and settlement functions that panic. Each fails its message, or nothing at
// all; the message's record is released, and the process goes on.
func brokenScenarios() []scenario {
	var all []scenario
	for name, err := range brokenErrors() {
		text := internal.Usable(err).Error()
		all = append(all, scenario{
			name: name + " is returned, then done", script: first(fail(err)), want: onceMore(text), differ: sameReceive(text),
		})
	}
	settles := func(s script) script {
		return func(ctx context.Context, r *run) error {
			sqsonce.OnSettled(ctx, func(bool) { panic("settled") })
			defer sqsonce.OnSettled(ctx, func(bool) { panic((*fs.PathError)(nil)) })
			return s(ctx, r)
		}
	}
	return append(all,
		scenario{name: "OnSettled panics, done", script: settles(succeed), want: endStates{"a1": {Status: done, Attempts: 1, Runs: 1}}},
		scenario{name: "OnSettled panics, error, then done", script: first(settles(fail(errCard))), want: onceMore("card refused"), differ: sameReceive("card refused")},
		scenario{
			name: "OnSettled panics, Reject", script: settles(fail(sqsonce.Reject(errCard))),
			want:   endStates{"a1": {Status: released, Error: rejectText, Attempts: 1, Dead: rejectText, Runs: 1}},
			differ: []difference{{hosts: []string{bareFunction}, because: bareRejects, want: forever(rejectText)}},
		},
	)
}

var allScenarios = slices.Concat(handlerScenarios, failureScenarios, duplicateScenarios, groupScenarios, brokenScenarios())
