package sqstest

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

var delayCases = []testCase{
	// API SendMessage, DelaySeconds: "the length of time, in seconds, for which to delay a specific message".
	{name: "delay/of the message", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard()
		x.send(q, "a", delay(2))
		x.hidden(q, 2*time.Second)
		x.received(x.one(q, "a"), 1)
	}},
	// Guide sqs-delay-queues.
	{name: "delay/of the queue", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard(attrs{"DelaySeconds": "2"})
		x.send(q, "a")
		x.hidden(q, 2*time.Second)
		x.one(q, "a")
	}},
	// Guide sqs-message-timers: Amazon SQS uses that individual message's DelaySeconds value instead of the delay queue's.
	{name: "delay/of the message instead of the queue's", passes: time.Second, run: func(x *exam) {
		q := x.standard(attrs{"DelaySeconds": "600"})
		x.send(q, "a", delay(1))
		x.hidden(q, time.Second)
		x.one(q, "a")
	}},
	// API SendMessage, DelaySeconds: "Valid values: 0 to 900. Maximum: 15 minutes."
	{name: "delay/longest accepted", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a", delay(900))
		x.none(q)
	}},
	// API SendMessage, as above.
	{name: "delay/longer or negative refused", run: func(x *exam) {
		q := x.standard()
		for _, seconds := range []int32{901, -1} {
			_, err := x.trySend(q, "a", delay(seconds))
			x.fails("a delay", err, invalidValue)
		}
	}},
	// API GetQueueAttributes, ApproximateNumberOfMessagesDelayed: "delayed and not available for reading immediately".
	{name: "delay/counted as delayed", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a", delay(600))
		x.send(q, "b")
		x.has(q, attrs{"ApproximateNumberOfMessagesDelayed": "1", "ApproximateNumberOfMessages": "1"})
	}},
	// Guide sqs-delay-queues: "For standard queues, the per-queue delay setting is not retroactive".
	{name: "delay/change spares what a standard queue has", run: func(x *exam) {
		q := x.standard(attrs{"DelaySeconds": "600"})
		x.send(q, "old")
		x.ok(x.set(q, attrs{"DelaySeconds": "0"}))
		x.send(q, "new")
		x.want(q, "new")
	}},
	// Guide sqs-delay-queues: "For FIFO queues, the per-queue delay setting is retroactive".
	{name: "delay/change moves what a FIFO queue has", passes: 2 * time.Second, run: func(x *exam) {
		q := x.fifo(attrs{"DelaySeconds": "600"})
		x.send(q, "a1")
		x.ok(x.set(q, attrs{"DelaySeconds": "1"}))
		x.pass(2 * time.Second)
		x.want(q, "a1")
	}},
	// API SendMessage: "You can set this parameter only on a queue level."
	{name: "delay/of a FIFO queue", passes: 2 * time.Second, run: func(x *exam) {
		q := x.fifo(attrs{"DelaySeconds": "2"})
		x.sendBatch(q, fifoEntries("a1", "a2")) // sent one after another, a1 would be received without a2 and lock the group
		x.hidden(q, 2*time.Second)
		x.want(q, "a1", "a2")
	}},
	// Guide sqs-delay-queues: a delay hides a message when it is added, a visibility timeout after it is received.
	{name: "delay/is not part of the visibility timeout", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "1"})
		x.send(q, "a", delay(1))
		x.hidden(q, time.Second)
		x.one(q, "a")
		x.hidden(q, time.Second)
		x.received(x.one(q, "a"), 2)
	}},
}

func delay(seconds int32) func(*sqs.SendMessageInput) {
	return func(in *sqs.SendMessageInput) { in.DelaySeconds = seconds }
}
