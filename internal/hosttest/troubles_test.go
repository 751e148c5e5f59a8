package hosttest

import (
	"context"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// holdElsewhere lets another process handle the event of a message that the host will get too. Its run counts as one of
// the event's. crash 0: it lives until it is done.
func holdElsewhere(name string, length, crash time.Duration) func(*world) {
	return func(w *world) {
		p := w.newProcess()
		h := w.guarded(p, takes(length))
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
		time.Sleep(time.Second) // it has the record
	}
}

// storeOut makes the store unreachable for d from now on.
func storeOut(d time.Duration) func(*world) {
	return func(w *world) {
		w.net.storeOutFor(d)
	}
}

// fault is a plan of SQS's for as long as d, from before the host starts.
func faults(d time.Duration, rules ...fault.Rule) func(*world) {
	return func(w *world) {
		w.sqs.Set(fault.Plan{Seed: 1, Rules: rules})
		time.AfterFunc(d, func() { w.sqs.Set(fault.Plan{}) })
	}
}

func crashAfter(d time.Duration) func(*world, running) {
	return func(_ *world, h running) {
		time.Sleep(d)
		h.crash()
	}
}

func moveBackAfter(d time.Duration) func(*world, running) {
	return func(w *world, _ running) {
		time.Sleep(d)
		w.moveBack()
	}
}

// losesStore succeeds, and leaves the store unreachable for d.
func losesStore(d time.Duration) script {
	return func(_ context.Context, r *run) error {
		r.process.w.net.storeOutFor(d)
		return nil
	}
}

// dies succeeds, and its process gets no further.
func dies(_ context.Context, r *run) error {
	r.process.kill()
	return nil
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

const heldInProcess = "the worker holds a message of a group in the same receive"

// troubles are what happens around the handler.
var troubles = []outcome{
	{
		name: "in progress elsewhere, then done there", script: succeed, before: holdElsewhere("a1", 100*time.Second, 0),
		want: fates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
	{
		name: "in progress elsewhere, and it crashes", script: succeed, before: holdElsewhere("a1", 100*time.Second, 40*time.Second),
		want: fates{"a1": {Status: done, Attempts: anyAttempts, Runs: 2}},
	},
	{
		name: "in progress elsewhere for longer than all receives", script: succeed, before: holdElsewhere("a1", 40*time.Minute, 0),
		length: 2 * time.Hour,
		want:   fates{"a1": {Status: done, Attempts: 1, Runs: 1}},
		differ: []difference{{
			hosts: []string{function, bareFunction}, want: fates{"a1": {Status: done, Attempts: 1, Dead: redriven, Runs: 1}},
			because: "Lambda cannot hold a message: each look at the record spends a receive",
		}},
	},
	{
		name: "store down for a while", script: succeed, before: storeOut(5 * time.Second),
		want: fates{"a1": {Status: done, Attempts: anyAttempts, Runs: 1}},
	},
	{
		name: "store down for longer than all receives", script: succeed, before: storeOut(30 * time.Minute),
		want: fates{"a1": {Status: none, Dead: redriven}},
	},
	{
		name: "store down when the handler has succeeded", script: first(losesStore(10 * time.Second)),
		want: fates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
	{
		// The policy is to run the handler again rather than to trust the deletion.
		name: "store down from the handler's success to the end of the lease", script: first(losesStore(time.Minute)), receives: 50,
		want: fates{"a1": {Status: done, Attempts: anyAttempts, Runs: 2}},
	},
	{
		name: "the process dies while the handler runs", script: first(takes(20 * time.Second)),
		during: crashAfter(12 * time.Second), want: fates{"a1": {Status: done, Attempts: anyAttempts, Runs: 2}},
	},
	{
		name: "the process dies between the handler and its record", script: first(dies), during: crashAfter(12 * time.Second),
		want: fates{"a1": {Status: done, Attempts: anyAttempts, Runs: 2}},
	},
	{
		name: "the dead-letter queue fails once", script: fail(sqsonce.Reject(errCard)),
		before: faults(time.Hour, fault.Rule{Op: "SendMessage", Nth: 1, Times: 3, Do: fault.Error}), // the client tries three times
		want:   fates{"a1": {Status: released, Error: rejectText, Attempts: 2, Dead: rejectText, Runs: 2}},
		differ: []difference{
			{hosts: []string{bareFunction}, want: forever(rejectText), because: bareRejects},
			{
				hosts: []string{worker}, kinds: []kind{fifo}, because: heldInProcess,
				want: fates{"a1": {Status: released, Error: rejectText, Attempts: 1, Dead: rejectText, Runs: 2}},
			},
		},
	},
	{
		name: "deletes fail for a while", script: succeed, before: faults(5*time.Minute, fault.Rule{Op: "DeleteMessageBatch", Prob: 1, Do: fault.Error}),
		want: fates{"a1": {Status: done, Attempts: 1, Runs: 1}},
	},
}

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
