package sqstest

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

var visibilityCases = []testCase{
	// Guide sqs-visibility-timeout: the timeout begins when SQS delivers the message; after it the message can be received
	// again.
	{name: "visibility/of the queue", passes: time.Second, run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "1"})
		x.send(q, "a")
		x.one(q, "a")
		x.hidden(q, time.Second)
		x.received(x.one(q, "a"), 2)
	}},
	// API ReceiveMessage, VisibilityTimeout: "If not specified, the default visibility timeout for the queue is used".
	{name: "visibility/of the receive", passes: time.Second, run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		x.one(q, "a", visible(1))
		x.hidden(q, time.Second)
		x.one(q, "a")
	}},
	// API SetQueueAttributes, VisibilityTimeout: "an integer from 0 to 43,200".
	{name: "visibility/of the queue is 0", run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "0"})
		x.send(q, "a")
		for n := 1; n <= 3; n++ {
			x.received(x.one(q, "a"), n)
		}
	}},
	// Guide sqs-visibility-timeout: The default visibility timeout for a queue is 30 seconds.
	{name: "visibility/default of thirty seconds", passes: 30 * time.Second, run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		x.one(q, "a")
		x.hidden(q, 30*time.Second)
		x.one(q, "a")
	}},
	// Guide sqs-visibility-timeout, terminating it: the message will immediately become available.
	{name: "visibility/change to 0", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		x.visibility(q, x.one(q, "a"), 0)
		x.received(x.one(q, "a"), 2)
	}},
	// API ChangeMessageVisibility: "Changes the visibility timeout of a specified message in a queue to a new value."
	{name: "visibility/change to less", passes: time.Second, run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		x.visibility(q, x.one(q, "a"), 1)
		x.hidden(q, time.Second)
		x.one(q, "a")
	}},
	// Guide sqs-visibility-timeout: the new timeout period begins from the time you make the call.
	{name: "visibility/change counts from the change", passes: 3 * time.Second, run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "2"})
		m := x.sendOne(q, "a")
		x.pass(time.Second)
		x.visibility(q, m, 2)
		x.hidden(q, 2*time.Second)
		x.one(q, "a")
	}},
	// API ChangeMessageVisibility: the new value "isn't saved in memory for that message": the next receive has
	// the queue's.
	{name: "visibility/change lasts for one receive", passes: time.Second, run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "1"})
		m := x.sendOne(q, "a")
		x.visibility(q, m, 100)
		x.visibility(q, m, 0)
		x.one(q, "a")
		x.hidden(q, time.Second)
		x.received(x.one(q, "a"), 3)
	}},
	// API ChangeMessageVisibility: such a change "might result in an error": MessageNotInflight, "The specified message isn't in
	// flight." Recorded: test_change_message_visibility_after_visibility_timeout_expiration: AWS answered success. Either way
	// the message is not hidden again: its next receive may already be under way.
	{name: "visibility/change after expiry has no effect", passes: 2 * time.Second, run: func(x *exam) { x.changeExpired(x.standard(attrs{"VisibilityTimeout": "1"})) }},
	// API SetQueueAttributes: the timeout of a queue is for messages received from then on.
	{name: "visibility/change of the queue's timeout", passes: time.Second, run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		x.ok(x.set(q, attrs{"VisibilityTimeout": "1"}))
		x.one(q, "a")
		x.hidden(q, time.Second)
		x.one(q, "a", func(in *sqs.ReceiveMessageInput) { in.VisibilityTimeout = 600 })
	}},
}

func (x *exam) changeExpired(q *queue) {
	m := x.sendOne(q, "a1")
	x.pass(2 * time.Second) // some servers round to a second
	if err := x.tryVisibility(q, m.ReceiptHandle, 100); err != nil {
		x.fails("a change after expiry", err, notInFlight, invalidValue)
	}
	x.one(q, "a1")
}

var visibilityLimitCases = []testCase{
	// API ChangeMessageVisibility, VisibilityTimeout: "Values range: 0 to 43200. Maximum: 12 hours."
	{name: "visibility/less than 0 refused", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		x.fails("-1 s", x.tryVisibility(q, x.one(q, "a").ReceiptHandle, -1), invalidValue)
	}},
	// API ReceiveMessage, VisibilityTimeout: "Maximum: 12 hours."
	{name: "visibility/12 h of a receive accepted", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		x.one(q, "a", visible(43200))
		x.none(q)
	}},
	// API ReceiveMessage, as above.
	{name: "visibility/more than 12 h of a receive refused", run: func(x *exam) {
		_, err := x.c.ReceiveMessage(x.ctx, &sqs.ReceiveMessageInput{QueueUrl: &x.standard().url, VisibilityTimeout: 43201})
		x.fails("43201 s", err, invalidValue)
	}},
	// API ChangeMessageVisibility: "If you attempt to set the VisibilityTimeout to a value greater than the maximum time left,
	// Amazon SQS returns an error. Amazon SQS doesn't automatically recalculate and increase the timeout to the maximum
	// remaining time." Guide sqs-visibility-timeout: 12 hours from the receive.
	{name: "visibility/12 h in all, counted from the receive", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard()
		m := x.sendOne(q, "a")
		x.pass(2 * time.Second)
		x.visibility(q, m, 43190)
		x.fails("43200 s two seconds after the receive", x.tryVisibility(q, m.ReceiptHandle, 43200), invalidValue)
	}},
	// Guide sqs-visibility-timeout, as above.
	{name: "visibility/12 h are not renewed by changes", passes: 11 * time.Hour, run: func(x *exam) {
		q := x.standard()
		m := x.sendOne(q, "a")
		x.visibility(q, m, 11*3600+1800)
		x.pass(11 * time.Hour)
		x.visibility(q, m, 3600-10)
		x.fails("an hour and a second, after eleven", x.tryVisibility(q, m.ReceiptHandle, 3601), invalidValue)
	}},
	// Guide sqs-visibility-timeout: 12 hours from the time Amazon SQS receives the ReceiveMessage request.
	{name: "visibility/12 h begin anew with a receive", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard()
		m := x.sendOne(q, "a")
		x.pass(2 * time.Second)
		x.visibility(q, m, 0)
		// One second less: the two requests take time.
		x.visibility(q, x.one(q, "a"), 43199)
	}},
	// API ChangeMessageVisibility, as above: an error means that nothing was changed.
	{name: "visibility/more than 12 h refused, changes nothing", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "2"})
		m := x.sendOne(q, "a")
		x.fails("43201 s", x.tryVisibility(q, m.ReceiptHandle, 43201), invalidValue)
		x.pass(2 * time.Second)
		x.one(q, "a")
	}},
	// API ChangeMessageVisibilityBatch: each entry follows the rules of ChangeMessageVisibility.
	{name: "visibility/change in a batch beyond 12 h fails by entry", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard()
		m := x.sendOne(q, "a")
		x.pass(2 * time.Second)
		out := x.visibilityBatch(q, visibilityEntries(43200, m.ReceiptHandle))
		x.failed(out.Failed, "0", invalidValue)
	}},
}
