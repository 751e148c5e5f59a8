package hosttest

import (
	"context"
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

// faults is a plan of SQS's for as long as d, from before the host starts.
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
