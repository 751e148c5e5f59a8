package sqstest

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var pollCases = []testCase{
	// Guide sqs-short-and-long-polling: an empty long poll returns when the polling wait time expires.
	{name: "poll/ends after its wait", run: func(x *exam) {
		q := x.standard()
		x.lasts("an empty poll of 1 s", time.Second, func() { x.none(q, wait(1)) })
	}},
	// API ReceiveMessage, WaitTimeSeconds: "If a message is available, the call returns sooner than WaitTimeSeconds."
	{name: "poll/returns at once what is there", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		x.pollFor(q, 0, "a")
	}},
	// API ReceiveMessage, WaitTimeSeconds: "the call waits for a message to arrive".
	{name: "poll/wakes on send", run: func(x *exam) {
		q := x.standard()
		sent := x.after(time.Second, func() error { _, err := x.trySend(q, "a"); return err })
		x.pollFor(q, time.Second, "a")
		sent()
	}},
	// As above: a message that becomes visible counts as arrived.
	{name: "poll/wakes on expiry", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		x.one(q, "a", visible(1))
		x.pollFor(q, time.Second, "a")
	}},
	// As above, and API SendMessage, DelaySeconds.
	{name: "poll/wakes on the end of a delay", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a", func(in *sqs.SendMessageInput) { in.DelaySeconds = 1 })
		x.pollFor(q, time.Second, "a")
	}},
	// As above, and Guide sqs-visibility-timeout: a timeout of 0 ends it at once.
	{name: "poll/wakes on a change to 0", run: func(x *exam) {
		q := x.standard()
		m := x.sendOne(q, "a")
		changed := x.after(time.Second, func() error { return x.tryVisibility(q, m.ReceiptHandle, 0) })
		x.pollFor(q, time.Second, "a")
		changed()
	}},
	// Guide FIFO-queues-understanding-logic: no more of a group until you delete the message or it becomes visible.
	{name: "poll/wakes on a delete in the group", run: func(x *exam) {
		q := x.fifo()
		x.sendAll(q, "a1", "a2")
		m := x.take(q, 1, "a1")[0]
		deleted := x.after(time.Second, func() error { return x.tryDelete(q, m.ReceiptHandle) })
		x.pollFor(q, time.Second, "a2")
		deleted()
	}},
	// API SetQueueAttributes, ReceiveMessageWaitTimeSeconds: "the length of time ... for which a ReceiveMessage action waits".
	{name: "poll/wait of the queue", run: func(x *exam) {
		q := x.standard(attrs{"ReceiveMessageWaitTimeSeconds": "1"})
		x.lasts("an empty receive", time.Second, func() { x.none(q) })
	}},
	// Guide sqs-visibility-timeout: a received message is hidden from other consumers.
	{name: "poll/one message, one of two polls", run: func(x *exam) {
		q := x.standard()
		got := make(chan int, 2)
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				out, err := x.c.ReceiveMessage(x.ctx, &sqs.ReceiveMessageInput{QueueUrl: &q.url, WaitTimeSeconds: 2})
				if err == nil {
					got <- len(out.Messages)
				}
				errs <- err
			}()
		}
		sent := x.after(time.Second, func() error { _, err := x.trySend(q, "a"); return err })
		for range 2 {
			x.ok(<-errs)
		}
		sent()
		if n := <-got + <-got; n != 1 {
			x.fatalf("two polls received %d messages, want 1", n)
		}
	}},
	// Guide sqs-visibility-timeout: a message that was returned to a poll whose client has left is received again after its
	// visibility timeout. One that was not returned is received at once.
	{name: "poll/cancelled, nothing lost", run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "1"})
		ctx, cancel := context.WithTimeout(x.ctx, 500*time.Millisecond)
		defer cancel()
		if _, err := x.c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &q.url, WaitTimeSeconds: 5}); err == nil {
			x.fatalf("the poll was not cancelled")
		}
		x.send(q, "a")
		x.same(q, x.receive(q, 10, wait(5)), "a")
	}},
}

// pollFor expects a long poll to return the bodies after d.
func (x *exam) pollFor(q *queue, d time.Duration, bodies ...string) []types.Message {
	var got []types.Message
	x.lasts("the poll", d, func() { got = x.receive(q, 10, wait(10)) })
	x.same(q, got, bodies...)
	return got
}

var attemptCases = []testCase{
	// API ReceiveMessage, ReceiveRequestAttemptId: "During a visibility timeout, subsequent calls with the same
	// ReceiveRequestAttemptId return the same messages and receipt handles."
	{name: "attempt/repeated, same messages and handles", run: func(x *exam) {
		q := x.fifo()
		x.sendAll(q, "a1", "a2", "b1")
		got := x.receive(q, 2, attempt("one"))
		x.same(q, got, "a1", "a2")
		x.sameHandles(x.receive(q, 2, attempt("one")), got)
		x.delete(q, got...)
	}},
	// As above: another ID makes another receive.
	{name: "attempt/another ID, nothing", run: func(x *exam) {
		q := x.fifo()
		x.send(q, "a1")
		x.receive(q, 1, attempt("one"))
		x.none(q, attempt("two"))
	}},
	// As above: "If a retry occurs within the deduplication interval, it resets the visibility timeout."
	{name: "attempt/repeated, visibility starts anew", passes: 3 * time.Second, run: func(x *exam) {
		q := x.fifo(attrs{"VisibilityTimeout": "2"})
		x.send(q, "a1")
		x.receive(q, 1, attempt("one"))
		x.pass(time.Second)
		x.same(q, x.receive(q, 1, attempt("one")), "a1")
		x.hidden(q, 2*time.Second)
		x.one(q, "a1")
	}},
	// As above: "It is possible to retry the ReceiveMessage action with the same ReceiveRequestAttemptId if none of the messages
	// have been modified (deleted or had their visibility changes)."
	{name: "attempt/not after a delete", run: func(x *exam) {
		q := x.fifo()
		x.sendAll(q, "a1", "a2")
		got := x.receive(q, 2, attempt("one"))
		x.same(q, got, "a1", "a2")
		x.delete(q, got[0])
		x.none(q, attempt("one"))
	}},
	// As above.
	{name: "attempt/not after a change", run: func(x *exam) {
		q := x.fifo()
		x.sendAll(q, "a1", "a2")
		got := x.receive(q, 2, attempt("one"))
		x.same(q, got, "a1", "a2")
		x.visibility(q, got[0], 600)
		x.none(q, attempt("one"))
	}},
	// As above: "You can use ReceiveRequestAttemptId only for 5 minutes after a ReceiveMessage action."
	{name: "attempt/not after five minutes", passes: 301 * time.Second, run: func(x *exam) {
		q := x.fifo(attrs{"VisibilityTimeout": "600"})
		x.send(q, "a1")
		x.same(q, x.receive(q, 1, attempt("one")), "a1")
		x.pass(301 * time.Second)
		x.none(q, attempt("one"))
	}},
	// As above: "The maximum length of ReceiveRequestAttemptId is 128 characters", alphanumeric and punctuation.
	{name: "attempt/IDs refused", run: func(x *exam) {
		q := x.fifo()
		x.receive(q, 1, attempt(punctuation))
		for _, id := range illegalTokens {
			_, err := x.c.ReceiveMessage(x.ctx, &sqs.ReceiveMessageInput{QueueUrl: &q.url, ReceiveRequestAttemptId: &id})
			x.fails("the attempt ID "+id, err, invalidValue)
		}
	}},
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
