package fifo_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// transientFault returns a fault that ends within the window of every event.
func transientFault(rt *rapid.T) fault.Rule {
	r := fault.Rule{
		Op:    "SendMessageBatch",
		Nth:   rapid.IntRange(1, 30).Draw(rt, "nth"),
		Times: rapid.IntRange(1, 3).Draw(rt, "times"),
		Do: rapid.SampledFrom([]fault.Kind{
			fault.Error, fault.LoseReply, fault.Reset, fault.Delay, fault.FailEntries, fault.DropEntries, fault.Replay,
		}).Draw(rt, "kind"),
	}
	switch r.Do {
	case fault.Error:
		r.After = rapid.Bool().Draw(rt, "after")
		if !r.After { // SQS does not refuse a request after its effect
			r.Code = rapid.SampledFrom([]string{"", "ServiceUnavailable", "RequestThrottled", "ThrottlingException"}).Draw(rt, "code")
		}
	case fault.Delay: // after 5 s the attempt is cancelled; its effect comes within the 10 s that the window leaves for it
		r.Delay = rapid.SampledFrom([]time.Duration{time.Second, 4 * time.Second, 14 * time.Second}).Draw(rt, "delay")
	case fault.Replay:
		r.Delay = rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(rt, "delay")
	case fault.FailEntries, fault.DropEntries:
		r.Entries = rapid.SliceOfN(rapid.IntRange(0, 9), 0, 3).Draw(rt, "entries")
	}
	if r.Do == fault.FailEntries {
		r.Code = rapid.SampledFrom([]string{"InternalError", "RequestThrottled", "KMS.ThrottlingException"}).Draw(rt, "code")
	}
	return r
}

// lastingFault returns a fault that may last longer than a window, or a refusal.
func lastingFault(rt *rapid.T) fault.Rule {
	r := transientFault(rt)
	switch r.Do {
	case fault.Replay:
		r.Delay = min(r.Delay, 9*time.Second) // a later copy could come after the deduplication interval
	case fault.Reset, fault.LoseReply, fault.DropEntries:
		r.Times = rapid.IntRange(1, 200).Draw(rt, "many times")
	case fault.FailEntries:
		r.Code = rapid.SampledFrom([]string{"InternalError", "InvalidMessageContents"}).Draw(rt, "code")
	case fault.Error:
		if !r.After {
			r.Code = rapid.SampledFrom([]string{"RequestThrottled", "AccessDenied"}).Draw(rt, "code")
		}
	}
	return r
}

// TestLastingFaults: with any faults, every event in the queue is there once and in order, and the results match the queue.
func TestLastingFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) { drawStorm(rt, t, lastingFault, &storm{once: true}) })
}

// split returns the errors that PublishAll joins.
func split(err error) []*fifo.PublishError {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var all []*fifo.PublishError
	for _, err := range joined.Unwrap() {
		if pe, ok := errors.AsType[*fifo.PublishError](err); ok {
			all = append(all, pe)
		}
	}
	return all
}
