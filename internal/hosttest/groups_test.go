package hosttest

import (
	"context"
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

// all is one fate of several events.
func all(f fate, names ...string) fates {
	fs := fates{}
	for _, n := range names {
		fs[n] = f
	}
	return fs
}

func (fs fates) and(more fates) fates {
	for name, f := range more {
		fs[name] = f
	}
	return fs
}

const (
	together  = "behind a failed message of its group a message is not tried, and both spend a receive"
	untried   = "SQS hands a group out together, so the followers of a message that fails to the end spend their receives with it; Lambda cannot hold them"
	bareSends = "without a client nobody sends to the dead-letter queue, and the followers spend their receives with the rejected message"
)

var (
	oneRun  = fate{Status: done, Attempts: 1, Runs: 1}
	waited  = fate{Status: done, Attempts: 2, Runs: 1} // for the next receive
	unheard = fate{Status: none, Dead: redriven}       // in the dead-letter queue without having been run
)

// groups are outcomes of messages that share an ordered group.
var groups = []outcome{
	{
		name: "the first of a group fails once", kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"), script: only("a1", first(fail(errCard))),
		want: all(oneRun, "a2", "a3", "b1").and(fates{"a1": {Status: done, Error: "card refused", Attempts: 1, Runs: 2}}),
		differ: []difference{{
			hosts: []string{function, bareFunction}, because: together,
			want: all(waited, "a2", "a3").and(onceMore("card refused")),
		}},
	},
	{
		name: "one of a group panics once", kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"), script: only("a2", first(panics)),
		want: all(oneRun, "a1", "a3", "b1").and(fates{"a2": {Status: done, Error: panicText, Attempts: 1, Runs: 2}}),
		differ: []difference{{
			hosts: []string{function, bareFunction}, because: together,
			want: fates{"a2": {Status: done, Error: panicText, Attempts: 2, Runs: 2}, "a3": waited},
		}},
	},
	{
		name: "one of a group always fails", kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"), script: only("a2", fail(errCard)),
		want: all(oneRun, "a1", "b1").and(fates{
			"a2": {Status: released, Error: "card refused", Attempts: 5, Dead: "card refused", Runs: 15},
			"a3": {Status: done, Attempts: 5, Runs: 1}, // at its last receive, and at no other
		}),
		differ: []difference{{
			hosts: []string{function, bareFunction}, because: untried,
			want: all(unheard, "a3").and(fates{"a2": {Status: released, Error: "card refused", Attempts: 5, Dead: redriven, Runs: 5}}),
		}},
	},
	{
		name: "one of a group is rejected", kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"), script: only("a2", fail(sqsonce.Reject(errCard))),
		want: all(oneRun, "a1", "a3", "b1").and(fates{
			"a2": {Status: released, Error: rejectText, Attempts: 1, Dead: rejectText, Runs: 1},
		}),
		differ: []difference{{
			hosts: []string{bareFunction}, because: bareSends,
			want: all(unheard, "a3").and(fates{"a2": {Status: released, Error: rejectText, Attempts: 5, Dead: redriven, Runs: 5}}),
		}},
	},
	{
		name: "one of a group asks for a delay", kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"),
		script: only("a2", first(fail(sqsonce.RetryAfter(2*time.Minute, errCard)))),
		want: all(oneRun, "a1", "b1").and(fates{
			"a2": {Status: done, Error: "sqsonce: retry after 2m0s: card refused", Attempts: 2, Runs: 2, Again: 2 * time.Minute}, "a3": waited,
		}),
		differ: []difference{{
			hosts: []string{bareFunction}, because: "without a client nobody changes the visibility timeout",
			want: fates{"a2": {Status: done, Error: "sqsonce: retry after 2m0s: card refused", Attempts: 2, Runs: 2, Again: 3 * time.Minute}},
		}},
	},
	{
		name: "one of a group is in progress elsewhere", kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"), script: succeed,
		before: holdElsewhere("a2", 20*time.Second, 0),
		want:   all(oneRun, "a1", "a2", "a3", "b1"),
		differ: []difference{{hosts: []string{function, bareFunction}, want: fates{"a3": waited}, because: together}},
	},
	{
		name: "the process dies in the middle of a group", kinds: []kind{fifo}, send: named("a1", "a2", "b1", "a3"), script: takes(6 * time.Second),
		during: crashAfter(10 * time.Second),
		want:   all(oneRun, "a1", "b1").and(fates{"a2": {Status: done, Attempts: 2, Runs: 2}, "a3": waited}),
	},
	{
		name: "groups of a standard queue are tenants", kinds: []kind{standard}, send: named("a1", "a2", "b1", "a3"), script: only("a1", fail(errCard)),
		want: all(oneRun, "a2", "a3", "b1").and(forever("card refused")),
	},
}
