package sqstest

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

var purgeCases = []testCase{
	{name: "purge/everything", passes: 2 * time.Second, run: purgeEverything},
	{name: "purge/again within 60 s refused", run: purgeAgain},
	{name: "purge/again after 60 s", passes: time.Minute, run: purgeLater},
	{name: "purge/forgets deduplication", run: purgeForgets},
}

func (x *exam) purge(q *queue) error {
	_, err := x.c.PurgeQueue(x.ctx, &sqs.PurgeQueueInput{QueueUrl: &q.url})
	return err
}

// API PurgeQueue: "Deletes available messages in a queue (including in-flight messages)". It may take 60 s; no server here
// takes any.
func purgeEverything(x *exam) {
	q := x.standard(attrs{"VisibilityTimeout": "1"})
	x.sendAll(q, "a", "b")
	x.receive(q, 1)
	x.send(q, "c", delay(1))
	x.ok(x.purge(q))
	x.pass(2 * time.Second)
	x.none(q)
	x.send(q, "d")
	x.one(q, "d")
}

// Recorded: test_successive_purge_calls_fail. API PurgeQueue, errors: PurgeQueueInProgress ("Indicates that the specified queue previously received a PurgeQueue
// request within the last 60 seconds").
func purgeAgain(x *exam) {
	q := x.standard()
	x.ok(x.purge(q))
	x.fails("a second purge", x.purge(q), "PurgeQueueInProgress")
}

// As above.
func purgeLater(x *exam) {
	q := x.standard()
	x.ok(x.purge(q))
	x.pass(50 * time.Second)
	x.fails("a purge after 50 s", x.purge(q), "PurgeQueueInProgress")
	x.pass(10 * time.Second)
	x.ok(x.purge(q))
}

// Recorded: test_purge_queue_clears_fifo_deduplication_cache.
func purgeForgets(x *exam) {
	q := x.fifo()
	x.send(q, "a1")
	x.ok(x.purge(q))
	x.send(q, "a1")
	x.want(q, "a1")
}
