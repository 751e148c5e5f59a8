package sqstest

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var attemptCases = []testCase{
	{name: "attempt/repeated, same messages and handles", run: attemptRepeated},
	{name: "attempt/another ID, nothing", run: attemptOther},
	{name: "attempt/repeated, visibility starts anew", passes: 3 * time.Second, run: attemptRenews},
	{name: "attempt/not after a delete", run: attemptAfterDelete},
	{name: "attempt/not after a change", run: attemptAfterChange},
	{name: "attempt/not after five minutes", passes: 301 * time.Second, run: attemptLate},
	{name: "attempt/IDs refused", run: attemptIDs},
}

func attempt(id string) func(*sqs.ReceiveMessageInput) {
	return func(in *sqs.ReceiveMessageInput) { in.ReceiveRequestAttemptId = &id }
}

func (x *exam) sameHandles(got, want []types.Message) {
	var a, b []string
	for _, h := range handlesOf(got) {
		a = append(a, *h)
	}
	for _, h := range handlesOf(want) {
		b = append(b, *h)
	}
	if !slices.Equal(a, b) {
		x.fatalf("received %q with handles %q, want %q", bodiesOf(got), a, b)
	}
}

// API ReceiveMessage, ReceiveRequestAttemptId: "During a visibility timeout, subsequent calls with the same
// ReceiveRequestAttemptId return the same messages and receipt handles."
func attemptRepeated(x *exam) {
	q := x.fifo()
	x.sendAll(q, "a1", "a2", "b1")
	got := x.receive(q, 2, attempt("one"))
	x.same(q, got, "a1", "a2")
	x.sameHandles(x.receive(q, 2, attempt("one")), got)
	x.delete(q, got...)
}

// As above: another ID makes another receive.
func attemptOther(x *exam) {
	q := x.fifo()
	x.send(q, "a1")
	x.receive(q, 1, attempt("one"))
	x.none(q, attempt("two"))
}

// As above: "If a retry occurs within the deduplication interval, it resets the visibility timeout."
func attemptRenews(x *exam) {
	q := x.fifo(attrs{"VisibilityTimeout": "2"})
	x.send(q, "a1")
	x.receive(q, 1, attempt("one"))
	x.pass(time.Second)
	x.same(q, x.receive(q, 1, attempt("one")), "a1")
	x.hidden(q, 2*time.Second)
	x.one(q, "a1")
}

// As above: "It is possible to retry the ReceiveMessage action with the same ReceiveRequestAttemptId if none of the messages
// have been modified (deleted or had their visibility changes)."
func attemptAfterDelete(x *exam) {
	q := x.fifo()
	x.sendAll(q, "a1", "a2")
	got := x.receive(q, 2, attempt("one"))
	x.same(q, got, "a1", "a2")
	x.delete(q, got[0])
	x.none(q, attempt("one"))
}

// As above.
func attemptAfterChange(x *exam) {
	q := x.fifo()
	x.sendAll(q, "a1", "a2")
	got := x.receive(q, 2, attempt("one"))
	x.same(q, got, "a1", "a2")
	x.visibility(q, got[0], 600)
	x.none(q, attempt("one"))
}

// As above: "You can use ReceiveRequestAttemptId only for 5 minutes after a ReceiveMessage action."
func attemptLate(x *exam) {
	q := x.fifo(attrs{"VisibilityTimeout": "600"})
	x.send(q, "a1")
	x.same(q, x.receive(q, 1, attempt("one")), "a1")
	x.pass(301 * time.Second)
	x.none(q, attempt("one"))
}

// As above: "The maximum length of ReceiveRequestAttemptId is 128 characters", alphanumeric and punctuation.
func attemptIDs(x *exam) {
	q := x.fifo()
	x.receive(q, 1, attempt(punctuation))
	for _, id := range illegalTokens {
		_, err := x.c.ReceiveMessage(x.ctx, &sqs.ReceiveMessageInput{QueueUrl: &q.url, ReceiveRequestAttemptId: &id})
		x.fails("the attempt ID "+id, err, invalidValue)
	}
}
