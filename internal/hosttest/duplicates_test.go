package hosttest

import (
	"context"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func moveBackAfter(d time.Duration) func(*world, running) {
	return func(w *world, _ running) {
		time.Sleep(d)
		w.moveBack()
	}
}

// rejectsFor rejects as long as d from now on.
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

// mustBeDead succeeds, and wants the rejected copy to be in the dead-letter queue by now, if ever.
func mustBeDead(_ context.Context, r *run) error {
	w := r.process.w
	if w.rejects && len(w.sqs.Messages(w.dlq)) == 0 {
		w.Errorf("run %d of %s started before the dead-letter queue had the rejected copy", r.n, r.event)
	}
	return nil
}

// duplicates are what happens to an event that comes more than once.
var duplicates = []outcome{
	{
		name: "the producer sends it twice", script: takes(5 * time.Second),
		send: []message{{name: "a1"}, {name: "a1", copy: 1}},
		want: fates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
	{
		name: "the producer sends it ten times", script: takes(5 * time.Second),
		send: copies("a1", 10), want: fates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
	{
		name: "the producer sends it again later", script: succeed,
		during: func(w *world, _ running) {
			time.Sleep(20 * time.Minute)
			w.send(message{name: "a1", copy: 1})
		},
		want: fates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
	{
		name: "SQS delivers it twice", script: takes(5 * time.Second), kinds: []kind{standard},
		before: faults(time.Minute, fault.Rule{Op: "ReceiveMessage", Nth: 1, Do: fault.Duplicate}),
		want:   fates{"a1": {Status: done, Attempts: anyAttempts, Runs: 1}},
	},
	{
		name: "its visibility ends while the handler runs", script: takes(20 * time.Second),
		before: faults(time.Minute, fault.Rule{Op: "ReceiveMessage", Nth: 1, Do: fault.ExpireEarly}),
		want:   fates{"a1": {Status: done, Attempts: anyAttempts, Runs: 1}},
	},
	{
		name: "a copy comes while the first is on its way to the dead-letter queue", send: copies("a1", 2), script: fail(sqsonce.Reject(errCard)).then(mustBeDead),
		before: faults(time.Hour, fault.Rule{Op: "SendMessage", Nth: 1, Do: fault.Delay, Delay: 4 * time.Second}),
		want:   fates{"a1": {Status: done, Error: rejectText, Attempts: anyAttempts, Dead: rejectText, Runs: 2}},
		differ: []difference{{
			hosts: []string{bareFunction}, want: fates{"a1": {Status: done, Error: rejectText, Attempts: anyAttempts, Runs: 2}}, because: bareRejects,
		}},
	},
	{
		name: "an operator moves it back from the dead-letter queue", script: rejectsFor(20 * time.Minute), during: moveBackAfter(30 * time.Minute),
		want: fates{"a1": {Status: done, Error: rejectText, Attempts: 1, Runs: 2}},
		differ: []difference{{
			hosts: []string{bareFunction}, want: fates{"a1": {Status: done, Error: rejectText, Attempts: 1, Runs: 6}},
			because: bareRejects,
		}},
	},
	{
		name: "an operator moves it back although it is done", script: succeed, before: holdElsewhere("a1", 40*time.Minute, 0),
		during: moveBackAfter(time.Hour), length: 2 * time.Hour,
		want: fates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
}

func copies(name string, n int) []message {
	ms := make([]message, n)
	for i := range ms {
		ms[i] = message{name: name, copy: i}
	}
	return ms
}
