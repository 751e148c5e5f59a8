package sqstest

import "time"

var deleteCases = []testCase{
	{name: "delete/ends it", passes: 2 * time.Second, run: deleteEndsIt},
	{name: "delete/twice", run: deleteTwice},
	{name: "delete/after expiry, not received again", passes: 2 * time.Second, run: deleteAfterExpiry},
	{name: "delete/one of several", run: deleteOne},
}

// API DeleteMessage: "Amazon SQS can delete a message from a queue even if a visibility timeout setting causes the message
// to be locked by another consumer."
func deleteEndsIt(x *exam) {
	q := x.standard(attrs{"VisibilityTimeout": "1"})
	x.send(q, "a")
	x.delete(q, x.one(q, "a"))
	x.pass(2 * time.Second)
	x.none(q)
}

// API DeleteMessage is idempotent: a handle whose message is gone succeeds.
func deleteTwice(x *exam) {
	q := x.standard()
	x.send(q, "a")
	m := x.one(q, "a")
	x.delete(q, m, m)
	out := x.deleteBatch(q, deleteEntries(m.ReceiptHandle))
	if len(out.Successful) != 1 {
		x.fatalf("a third delete, in a batch: failed with %s", str(out.Failed[0].Code))
	}
}

// API DeleteMessage: the handle stays the newest until the message is received again, and deletes it.
func deleteAfterExpiry(x *exam) {
	q := x.standard(attrs{"VisibilityTimeout": "1"})
	x.send(q, "a")
	m := x.one(q, "a")
	x.pass(2 * time.Second)
	x.delete(q, m)
	x.none(q)
}

// API DeleteMessage: "Deletes the specified message".
func deleteOne(x *exam) {
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
}
