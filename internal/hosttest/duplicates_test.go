package hosttest

import (
	"context"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func redriveAfter(d time.Duration) func(*fixture, running) {
	return func(w *fixture, _ running) {
		time.Sleep(d)
		w.redrive()
	}
}

// rejectsFor rejects until d after its first run, then succeeds.
func rejectsFor(d time.Duration) script {
	var begin sync.Once
	var from time.Time
	return func(context.Context, *run) error {
		begin.Do(func() { from = time.Now() })
		if time.Since(from) < d {
			return sqsonce.Reject(errCard)
		}
		return nil
	}
}

// wantDeadLettered succeeds, and wants the rejected copy in the dead-letter queue, if the host sends it there.
func wantDeadLettered(_ context.Context, r *run) error {
	w := r.process.w
	if w.rejects && len(w.sqs.Messages(w.dlq)) == 0 {
		w.Errorf("run %d of %s started before the dead-letter queue had the rejected copy", r.n, r.event)
	}
	return nil
}

// duplicateScenarios have an event that is delivered more than once.
var duplicateScenarios = []scenario{
	{
		name: "the producer sends it twice", script: takes(5 * time.Second),
		send: []message{{name: "a1"}, {name: "a1", copy: 1}},
		want: endStates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
	{
		name: "the producer sends it ten times", script: takes(5 * time.Second),
		send: copies("a1", 10), want: endStates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
	{
		name: "the producer sends it again later", script: succeed,
		during: func(w *fixture, _ running) {
			time.Sleep(20 * time.Minute)
			w.send(message{name: "a1", copy: 1})
		},
		want: endStates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
	{
		name: "SQS delivers it twice", script: takes(5 * time.Second), kinds: []kind{standard},
		before: faults(time.Minute, fault.Rule{Op: "ReceiveMessage", Nth: 1, Do: fault.Duplicate}),
		want:   endStates{"a1": {Status: done, Attempts: anyAttempts, Runs: 1}},
	},
	{
		name: "its visibility timeout ends while the handler runs", script: takes(20 * time.Second),
		before: faults(time.Minute, fault.Rule{Op: "ReceiveMessage", Nth: 1, Do: fault.ExpireEarly}),
		want:   endStates{"a1": {Status: done, Attempts: anyAttempts, Runs: 1}},
	},
	{
		name: "a copy is delivered while the first is being sent to the dead-letter queue", send: copies("a1", 2), script: fail(sqsonce.Reject(errCard)).then(wantDeadLettered),
		before: faults(time.Hour, fault.Rule{Op: "SendMessage", Nth: 1, Do: fault.Delay, Delay: 4 * time.Second}),
		want:   endStates{"a1": {Status: done, Error: rejectText, Attempts: anyAttempts, Dead: rejectText, Runs: 2}},
		differ: []difference{{
			hosts: []string{bareFunction}, want: endStates{"a1": {Status: done, Error: rejectText, Attempts: anyAttempts, Runs: 2}}, because: bareRejects,
		}},
	},
	{
		name: "an operator redrives it", script: rejectsFor(20 * time.Minute), during: redriveAfter(30 * time.Minute),
		want: endStates{"a1": {Status: done, Error: rejectText, Attempts: 1, Runs: 2}},
		differ: []difference{{
			hosts: []string{bareFunction}, want: endStates{"a1": {Status: done, Error: rejectText, Attempts: 1, Runs: 6}},
			because: bareRejects,
		}},
	},
	{
		name: "an operator redrives it although it is done", script: succeed, before: runElsewhere("a1", 40*time.Minute, 0),
		during: redriveAfter(time.Hour), length: 2 * time.Hour,
		want: endStates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
}

func copies(name string, n int) []message {
	ms := make([]message, n)
	for i := range ms {
		ms[i] = message{name: name, copy: i}
	}
	return ms
}
