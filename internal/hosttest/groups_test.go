package hosttest

import (
	"context"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
)

// only is a script for one event; the others succeed.
func only(name string, s script) script {
	return func(ctx context.Context, r *run) error {
		if r.event != name {
			return nil
		}
		return s(ctx, r)
	}
}

func named(names ...string) []message {
	ms := make([]message, len(names))
	for i, n := range names {
		ms[i].name = n
	}
	return ms
}

// all returns the same end state for several events.
func all(f endState, names ...string) endStates {
	fs := endStates{}
	for _, n := range names {
		fs[n] = f
	}
	return fs
}

func (fs endStates) and(more endStates) endStates {
	for name, f := range more {
		fs[name] = f
	}
	return fs
}

const (
	notTried  = "a message behind a failed one of its group is not tried, and the receive count of both grows"
	delivered = "SQS delivers a group together, so the receive counts of the messages behind one that always fails grow with it; without a client nothing is sent to the dead-letter queue"
	noClient  = "without a client nothing is sent to the dead-letter queue, and the receive counts of the messages behind the rejected one grow with it"
)

var (
	oneRun = endState{Status: done, Attempts: 1, Runs: 1}
	waited = endState{Status: done, Attempts: 2, Runs: 1} // run in the second receive
	notRun = endState{Status: none, Dead: byPolicy}       // in the dead-letter queue without a run

	errElsewhere = fmt.Errorf("ledger: %w", sqsonce.ErrLeaseLost)
)

// elsewhere has one of a group always fail with an error of a lost lease that is not its own.
func elsewhere(name string, err error) scenario {
	dead := "handler returned the lost lease of another record: " + err.Error()
	return scenario{
		name: name, kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"), script: only("a2", fail(err)),
		want: all(oneRun, "a1", "b1").and(endStates{
			"a2": {Status: released, Error: err.Error(), Attempts: 1, Dead: dead, Runs: 5},
			"a3": {Status: done, Attempts: 1, Runs: 1},
		}),
		differ: []difference{{
			hosts: []string{bareFunction}, because: delivered,
			want: all(notRun, "a3").and(endStates{"a2": {Status: released, Error: err.Error(), Attempts: 5, Dead: byPolicy, Runs: 5}}),
		}, {
			hosts: []string{function}, because: "a function does not run a message again in one receive, and the one behind it keeps a receive of its own",
			want: endStates{
				"a2": {Status: released, Error: err.Error(), Attempts: 4, Dead: dead, Runs: 4},
				"a3": {Status: done, Attempts: 4, Runs: 1},
			},
		}},
	}
}

// groupScenarios have messages of one FIFO group.
var groupScenarios = []scenario{
	{
		name: "the first of a group fails once", kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"), script: only("a1", first(fail(errCard))),
		want: all(oneRun, "a2", "a3", "b1").and(endStates{"a1": {Status: done, Error: "card refused", Attempts: 1, Runs: 2}}),
		differ: []difference{{
			hosts: []string{function, bareFunction}, because: notTried,
			want: all(waited, "a2", "a3").and(onceMore("card refused")),
		}},
	},
	{
		name: "one of a group panics once", kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"), script: only("a2", first(panics)),
		want: all(oneRun, "a1", "a3", "b1").and(endStates{"a2": {Status: done, Error: panicText, Attempts: 1, Runs: 2}}),
		differ: []difference{{
			hosts: []string{function, bareFunction}, because: notTried,
			want: endStates{"a2": {Status: done, Error: panicText, Attempts: 2, Runs: 2}, "a3": waited},
		}},
	},
	// Such as of a dedup.Do in the handler. Its own record and message are this delivery's all the while.
	elsewhere("one of a group always returns the lost lease of another event", errElsewhere),
	elsewhere("one of a group always rejects the lost lease of another event", sqsonce.Reject(errElsewhere)),
	{
		name: "one of a group always fails", kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"), script: only("a2", fail(errCard)),
		want: all(oneRun, "a1", "b1").and(endStates{
			"a2": {Status: released, Error: "card refused", Attempts: 1, Dead: "card refused", Runs: 5},
			"a3": {Status: done, Attempts: 1, Runs: 1},
		}),
		differ: []difference{{
			hosts: []string{bareFunction}, because: delivered,
			want: all(notRun, "a3").and(endStates{"a2": {Status: released, Error: "card refused", Attempts: 5, Dead: byPolicy, Runs: 5}}),
		}, {
			hosts: []string{function}, because: "a function does not run a message again in one receive, and the one behind it keeps a receive of its own",
			want: endStates{
				"a2": {Status: released, Error: "card refused", Attempts: 4, Dead: "card refused", Runs: 4},
				"a3": {Status: done, Attempts: 4, Runs: 1},
			},
		}},
	},
	{
		name: "one of a group is rejected", kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"), script: only("a2", fail(sqsonce.Reject(errCard))),
		want: all(oneRun, "a1", "a3", "b1").and(endStates{
			"a2": {Status: released, Error: rejectText, Attempts: 1, Dead: rejectText, Runs: 1},
		}),
		differ: []difference{{
			hosts: []string{bareFunction}, because: noClient,
			want: all(notRun, "a3").and(endStates{"a2": {Status: released, Error: rejectText, Attempts: 5, Dead: byPolicy, Runs: 5}}),
		}},
	},
	{
		name: "one of a group asks for a delay", kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"),
		script: only("a2", first(fail(sqsonce.RetryAfter(2*time.Minute, errCard)))),
		want: all(oneRun, "a1", "b1").and(endStates{
			"a2": {Status: done, Error: "sqsonce: retry after 2m0s: card refused", Attempts: 2, Runs: 2, Again: 2 * time.Minute}, "a3": waited,
		}),
		differ: []difference{
			{
				hosts: []string{bareFunction}, because: "without a client nobody changes the visibility timeout",
				want: endStates{"a2": {Status: done, Error: "sqsonce: retry after 2m0s: card refused", Attempts: 2, Runs: 2, Again: 3 * time.Minute}},
			},
			{
				hosts: []string{worker}, because: heldInGroup,
				want: endStates{
					"a2": {Status: done, Error: "sqsonce: retry after 2m0s: card refused", Attempts: 1, Runs: 2, Again: 2 * time.Minute}, "a3": oneRun,
				},
			},
		},
	},
	{
		name: "one of a group is in progress elsewhere", kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"), script: succeed,
		before: runElsewhere("a2", 20*time.Second, 0),
		want:   all(oneRun, "a1", "a2", "a3", "b1"),
		differ: []difference{{hosts: []string{function, bareFunction}, want: endStates{"a3": waited}, because: notTried}},
	},
	{
		name: "the process dies in the middle of a group", kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"), script: takes(9 * time.Second),
		during: crashAfter(10 * time.Second),
		want:   all(oneRun, "a1", "b1").and(endStates{"a2": {Status: done, Attempts: 2, Runs: 2}, "a3": waited}),
		differ: []difference{{
			hosts: []string{worker}, want: endStates{"b1": {Status: done, Attempts: 2, Runs: 2}},
			because: "a worker starts with one message, and receives the others when it has run for 8 s",
		}},
	},
	{
		name: "groups of a standard queue are tenants", kinds: []kind{standard}, send: named("a1", "a2", "b1", "a3"), script: only("a1", fail(errCard)),
		want: all(oneRun, "a2", "a3", "b1").and(forever("card refused")),
	},
}
