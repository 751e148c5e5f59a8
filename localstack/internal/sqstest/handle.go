package sqstest

import (
	"time"
)

var handleCases = []testCase{
	// API ChangeMessageVisibility, errors: ReceiptHandleIsInvalid ("The specified receipt handle isn't valid").
	{name: "handle/change with garbage", run: func(x *exam) {
		x.fails("garbage", x.tryVisibility(x.standard(), ptr("garbage"), 0), invalidHandle)
	}},
	// API ChangeMessageVisibility: the handle is "associated with the message" of the queue. AWS does not say which of the two
	// errors for a handle it returns.
	{name: "handle/change with another queue's", run: func(x *exam) {
		q, other := x.standard(), x.standard()
		m := x.sendOne(q, "a")
		x.fails("another queue's handle", x.tryVisibility(other, m.ReceiptHandle, 0), invalidHandle, invalidValue)
		x.none(q)
	}},
	// The API's text does not say: a handle belongs to one receive, but only a delete asks for the newest. AWS was seen to
	// perform such a change (test_terminate_visibility_timeout_after_receive of LocalStack, which passes on AWS). So the change
	// is refused and changes nothing, or it is performed.
	{name: "handle/change with a superseded one", run: func(x *exam) { x.changeSuperseded(x.standard()) }},
	// API DeleteMessage: ReceiptHandle is required.
	{name: "handle/delete without one", run: func(x *exam) {
		x.fails("no handle", x.tryDelete(x.standard(), ptr("")), missing, invalidHandle)
	}},
	// API DeleteMessage: a handle is of a message of the queue. AWS does not say which of the two errors for a handle it returns.
	{name: "handle/delete with another queue's", run: func(x *exam) {
		q, other := x.standard(), x.standard()
		m := x.sendOne(q, "a")
		x.fails("another queue's handle", x.tryDelete(other, m.ReceiptHandle), invalidHandle, invalidValue)
		x.delete(q, m)
	}},
	// API DeleteMessage: "If you use an old ReceiptHandle, the request will succeed, but the message might not be deleted."
	{name: "handle/delete with a superseded one succeeds", run: func(x *exam) {
		q := x.standard()
		first := x.sendOne(q, "a")
		x.visibility(q, first, 0)
		second := x.one(q, "a")
		x.delete(q, first)
		x.delete(q, second)
	}},
	// As above: "might not be" is all that AWS says. Here the message is in flight at another consumer, and must become visible
	// again if that consumer ends: a server for tests has to show this case.
	{name: "handle/delete with a superseded one deletes nothing", passes: time.Second, run: func(x *exam) {
		q := x.standard()
		first := x.sendOne(q, "a")
		x.visibility(q, first, 0)
		x.one(q, "a", visible(1))
		if err := x.tryDelete(q, first.ReceiptHandle); err != nil {
			x.fails("a delete with a superseded handle", err, invalidHandle)
		}
		x.pass(time.Second)
		x.one(q, "a")
	}},
}

func (x *exam) changeSuperseded(q *queue) {
	first := x.sendOne(q, "a1")
	x.visibility(q, first, 0)
	x.one(q, "a1")
	if err := x.tryVisibility(q, first.ReceiptHandle, 0); err != nil {
		x.fails("a superseded handle", err, invalidValue, invalidHandle, notInFlight)
		x.none(q)
		return
	}
	x.one(q, "a1")
}

var deleteCases = []testCase{
	// API DeleteMessage: "Amazon SQS can delete a message from a queue even if a visibility timeout setting causes the message
	// to be locked by another consumer."
	{name: "delete/ends it", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "1"})
		x.send(q, "a")
		x.delete(q, x.one(q, "a"))
		x.pass(2 * time.Second)
		x.none(q)
	}},
	// API DeleteMessage is idempotent: a handle whose message is gone succeeds.
	{name: "delete/twice", run: func(x *exam) {
		q := x.standard()
		m := x.sendOne(q, "a")
		x.delete(q, m, m)
		out := x.deleteBatch(q, deleteEntries(m.ReceiptHandle))
		if len(out.Successful) != 1 {
			x.fatalf("a third delete, in a batch: failed with %s", str(out.Failed[0].Code))
		}
	}},
	// API DeleteMessage: the handle stays the newest until the message is received again, and deletes it.
	{name: "delete/after expiry, not received again", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "1"})
		m := x.sendOne(q, "a")
		x.pass(2 * time.Second)
		x.delete(q, m)
		x.none(q)
	}},
	// API DeleteMessage: "Deletes the specified message".
	{name: "delete/one of several", run: func(x *exam) {
		q := x.standard()
		x.sendAll(q, "a", "b")
		got := x.want(q, "a", "b")
		for _, m := range got {
			x.visibility(q, m, 0)
		}
		got = x.want(q, "a", "b")
		x.delete(q, got[0])
		x.visibility(q, got[1], 0)
		x.one(q, *got[1].Body)
	}},
}
