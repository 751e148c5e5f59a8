package sqstest

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

var visibilityLimitCases = []testCase{
	{name: "visibility/more than 12 h refused", run: moreThanTwelveHours},
	{name: "visibility/less than 0 refused", run: lessThanZero},
	{name: "visibility/12 h of a receive accepted", run: twelveHoursOfReceive},
	{name: "visibility/more than 12 h of a receive refused", run: moreThanTwelveHoursOfReceive},
	{name: "visibility/12 h in all, counted from the receive", passes: 2 * time.Second, run: twelveHoursInAll},
	{name: "visibility/12 h are not renewed by changes", passes: 11 * time.Hour, run: twelveHoursNotRenewed},
	{name: "visibility/12 h begin anew with a receive", passes: 2 * time.Second, run: twelveHoursAnew},
	{name: "visibility/refused change changes nothing", passes: 2 * time.Second, run: refusedChange},
	{name: "visibility/change in a batch beyond 12 h fails by entry", passes: 2 * time.Second, run: twelveHoursInBatch},
}

// API ChangeMessageVisibility, VisibilityTimeout: "Values range: 0 to 43200. Maximum: 12 hours."
func moreThanTwelveHours(x *exam) {
	q := x.standard()
	x.send(q, "a")
	x.fails("43201 s", x.tryVisibility(q, x.one(q, "a").ReceiptHandle, 43201), invalidValue)
}

// API ChangeMessageVisibility, as above.
func lessThanZero(x *exam) {
	q := x.standard()
	x.send(q, "a")
	x.fails("-1 s", x.tryVisibility(q, x.one(q, "a").ReceiptHandle, -1), invalidValue)
}

// API ReceiveMessage, VisibilityTimeout: "Maximum: 12 hours."
func twelveHoursOfReceive(x *exam) {
	q := x.standard()
	x.send(q, "a")
	x.one(q, "a", visible(43200))
	x.none(q)
}

// API ReceiveMessage, as above.
func moreThanTwelveHoursOfReceive(x *exam) {
	_, err := x.c.ReceiveMessage(x.ctx, &sqs.ReceiveMessageInput{QueueUrl: &x.standard().url, VisibilityTimeout: 43201})
	x.fails("43201 s", err, invalidValue)
}

// API ChangeMessageVisibility: "If you attempt to set the VisibilityTimeout to a value greater than the maximum time left,
// Amazon SQS returns an error. Amazon SQS doesn't automatically recalculate and increase the timeout to the maximum
// remaining time." Guide sqs-visibility-timeout: 12 hours from the receive.
func twelveHoursInAll(x *exam) {
	q := x.standard()
	x.send(q, "a")
	m := x.one(q, "a")
	x.pass(2 * time.Second)
	x.visibility(q, m, 43190)
	x.fails("43200 s two seconds after the receive", x.tryVisibility(q, m.ReceiptHandle, 43200), invalidValue)
}

// Guide sqs-visibility-timeout, as above.
func twelveHoursNotRenewed(x *exam) {
	q := x.standard()
	x.send(q, "a")
	m := x.one(q, "a")
	x.visibility(q, m, 11*3600+1800)
	x.pass(11 * time.Hour)
	x.visibility(q, m, 3600-10)
	x.fails("an hour and a second, after eleven", x.tryVisibility(q, m.ReceiptHandle, 3601), invalidValue)
}

// Guide sqs-visibility-timeout: 12 hours from the time Amazon SQS receives the ReceiveMessage request.
func twelveHoursAnew(x *exam) {
	q := x.standard()
	x.send(q, "a")
	m := x.one(q, "a")
	x.pass(2 * time.Second)
	x.visibility(q, m, 0)
	// A second for the way of the two requests.
	x.visibility(q, x.one(q, "a"), 43199)
}

// API ChangeMessageVisibility: an error means that nothing was changed.
func refusedChange(x *exam) {
	q := x.standard(attrs{"VisibilityTimeout": "2"})
	x.send(q, "a")
	m := x.one(q, "a")
	if x.tryVisibility(q, m.ReceiptHandle, 43201) == nil {
		x.fatalf("43201 s were accepted")
	}
	x.pass(2 * time.Second)
	x.one(q, "a")
}

// API ChangeMessageVisibilityBatch: each entry follows the rules of ChangeMessageVisibility.
func twelveHoursInBatch(x *exam) {
	q := x.standard()
	x.send(q, "a")
	m := x.one(q, "a")
	x.pass(2 * time.Second)
	out := x.visibilityBatch(q, visibilityEntries(43200, m.ReceiptHandle))
	x.failed(out.Failed, "0", invalidValue)
}
