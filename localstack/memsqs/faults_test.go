package memsqs_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

func faults(rules ...fault.Rule) func(*memsqs.Options) {
	return func(o *memsqs.Options) { o.Faults = fault.Plan{Rules: rules} }
}

func TestFailEntries(t *testing.T) {
	standard(t, func(x *fixture) {
		out := must.Get(x.sendBatch(entries("a", "b", "c")))(x)
		x.failures(out.Failed, failure("1", "InternalError", false))
		x.want("a", "c")
		out = must.Get(x.sendBatch(entries("d", "e")))(x)
		x.failures(out.Failed, failure("0", "RequestThrottled", true), failure("1", "RequestThrottled", true))
		x.want()
	}, faults(
		fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.FailEntries, Entries: []int{1}},
		fault.Rule{Op: "SendMessageBatch", Nth: 2, Do: fault.FailEntries, Code: "RequestThrottled"},
	))
}

func TestDropEntries(t *testing.T) {
	standard(t, func(x *fixture) {
		out := must.Get(x.sendBatch(entries("a", "b", "c")))(x)
		x.failures(out.Failed)
		if len(out.Successful) != 2 || *out.Successful[0].Id != "0" || *out.Successful[1].Id != "2" {
			x.Errorf("successful %v, want 0 and 2", out.Successful)
		}
		x.want("a", "b", "c") // the dropped entry had its effect
	}, faults(fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.DropEntries, Entries: []int{1}}))
}

func TestDuplicate(t *testing.T) {
	rule := faults(fault.Rule{Op: "ReceiveMessage", Nth: 1, Do: fault.Duplicate, Entries: []int{0}})
	onStandard(t, "standard", func(x *fixture) {
		x.send("a")
		x.send("b")
		first := x.want("a", "b")[0]
		second := x.want("a")[0]
		if *first.MessageId != *second.MessageId || count(second) != 2 {
			x.Errorf("the copy has ID %s, count %d, want %s, 2", *second.MessageId, count(second), *first.MessageId)
		}
		x.ok(x.visibility(first, 100)) // both deliveries are in flight
		x.ok(x.visibility(second, 100))
		x.ok(x.delete(first))
		x.ok(x.delete(second))
	}, rule)
	onFIFO(t, "FIFO", func(x *fixture) {
		for _, b := range []string{"a1", "a2", "b1"} {
			x.send(b, b[:1])
		}
		x.same(x.receive(2), "a1", "a2")
		second := x.want("a1", "b1")[0] // the first delivery of a1 blocks a2
		x.ok(x.delete(second))
		x.want()
	}, rule)
	onStandard(t, "has the position of its original", func(x *fixture) {
		x.send("a")
		x.send("b")
		x.same(x.receive(1), "a")
		x.want("a", "b")
	}, rule)
	onStandard(t, "of a poll that waited", func(x *fixture) {
		x.after(time.Second, func() { x.send("a") })
		x.same(x.receive(1, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 5 }), "a")
		x.want("a")
		x.want()
	}, rule)
}

func TestExpireEarly(t *testing.T) {
	standard(t, func(x *fixture) {
		x.send("a")
		m := x.want("a")[0]
		x.code(x.visibility(m, 30), notInFlight)
		x.want("a")
		x.want()
	}, strictHandles, faults(fault.Rule{Op: "ReceiveMessage", Nth: 1, Do: fault.ExpireEarly}))
}

func TestInjectedCodes(t *testing.T) {
	standard(t, func(x *fixture) {
		x.code(x.try("a"), noQueue)
		x.code(x.try("a"), "ServiceUnavailable")
		x.code(x.try("a"), "InternalFailure")
		x.ok(x.try("a"))
	}, faults(
		fault.Rule{Op: "SendMessage", Nth: 1, Do: fault.Error, Code: "QueueDoesNotExist"},
		fault.Rule{Op: "SendMessage", Nth: 2, Do: fault.Error, Code: "ServiceUnavailable"},
		fault.Rule{Op: "SendMessage", Nth: 3, Do: fault.Error},
	))
}

func TestCancelledPollHidesMessages(t *testing.T) {
	standard(t, func(x *fixture) {
		ctx, cancel := context.WithTimeout(x.Context(), time.Second)
		defer cancel()
		if _, err := x.c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &x.url, WaitTimeSeconds: 20}); err == nil {
			x.Fatal("the poll was not cancelled")
		}
		time.Sleep(time.Second)
		x.send("a")
		x.want()
		if m := x.srv.Messages("jobs"); len(m) != 1 || !m[0].InFlight {
			x.Errorf("got %+v, want one message in flight", m)
		}
		time.Sleep(30 * time.Second)
		x.want("a")
	})
}

func TestCallsAreRecorded(t *testing.T) {
	standard(t, func(x *fixture) {
		must.Get(x.sendBatch(entries("a", "b", "c")))(x)
		x.want("a", "b", "c")
		x.want()
		var ops []string
		var n []int
		for _, c := range x.srv.Calls() {
			ops, n = append(ops, c.Op), append(n, c.Entries)
		}
		if !slices.Equal(ops, []string{"CreateQueue", "SendMessageBatch", "ReceiveMessage", "ReceiveMessage"}) || !slices.Equal(n, []int{1, 3, 3, 0}) {
			x.Errorf("recorded %v with %v entries", ops, n)
		}
	})
}
