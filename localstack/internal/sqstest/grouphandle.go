package sqstest

import "time"

var groupHandleCases = []testCase{
	{name: "FIFO handle/delete after expiry refused", passes: 2 * time.Second, run: fifoDeleteExpired},
	{name: "FIFO handle/delete with a superseded one refused", run: fifoDeleteSuperseded},
	{name: "FIFO handle/delete in a batch after expiry fails by entry", passes: 2 * time.Second, run: fifoDeleteExpiredBatch},
	{name: "FIFO handle/delete twice", run: fifoDeleteTwice},
	{name: "FIFO handle/change after expiry has no effect", passes: 2 * time.Second, run: fifoChangeExpired},
	{name: "FIFO handle/change with a superseded one", run: fifoChangeSuperseded},
}

// Recorded: test_fifo_delete_message_with_expired_receipt_handle: InvalidParameterValue, "The receipt handle has expired."
// API ReceiveMessage: "if a consumer whose message processing time is longer than the visibility timeout tries to delete
// the processed messages, the action fails with an error".
func fifoDeleteExpired(x *exam) {
	q := x.fifo(attrs{"VisibilityTimeout": "1"})
	x.send(q, "a1")
	m := x.one(q, "a1")
	x.pass(2 * time.Second)
	x.fails("a delete after expiry", x.tryDelete(q, m.ReceiptHandle), invalidValue)
	x.one(q, "a1")
}

// As above: the receive that the handle is of has ended, or another would not have the message. Which of the two errors for
// a handle comes is not said.
func fifoDeleteSuperseded(x *exam) {
	q := x.fifo()
	x.send(q, "a1")
	first := x.one(q, "a1")
	x.visibility(q, first, 0)
	second := x.one(q, "a1")
	x.fails("a delete with a superseded handle", x.tryDelete(q, first.ReceiptHandle), invalidValue, invalidHandle)
	x.visibility(q, second, 0)
	x.one(q, "a1")
}

// As above, API DeleteMessageBatch: "reported individually".
func fifoDeleteExpiredBatch(x *exam) {
	q := x.fifo(attrs{"VisibilityTimeout": "1"})
	x.sendAll(q, "a1", "b1")
	got := x.want(q, "a1", "b1")
	x.visibility(q, got[1], 600)
	x.pass(2 * time.Second)
	out := x.deleteBatch(q, deleteEntries(got[0].ReceiptHandle, got[1].ReceiptHandle))
	x.failed(out.Failed, "0", invalidValue)
	if len(out.Successful) != 1 {
		x.fatalf("%d deleted, want 1", len(out.Successful))
	}
}

// API DeleteMessage is idempotent on every queue: a message that is gone was deleted.
func fifoDeleteTwice(x *exam) {
	q := x.fifo()
	x.send(q, "a1")
	m := x.one(q, "a1")
	x.delete(q, m, m)
}

// As on a standard queue.
func fifoChangeExpired(x *exam) { x.changeExpired(x.fifo(attrs{"VisibilityTimeout": "1"})) }

// As on a standard queue.
func fifoChangeSuperseded(x *exam) { x.changeSuperseded(x.fifo()) }
