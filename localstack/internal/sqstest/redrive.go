package sqstest

import (
	"encoding/json"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

var redriveCases = []testCase{
	{name: "redrive/moved instead of received", run: redriveMoves},
	{name: "redrive/at the first receive", run: redriveFirst},
	{name: "redrive/keeps its identity", passes: time.Second, run: redriveKeeps},
	{name: "redrive/others are still received", run: redriveOthers},
	{name: "redrive/by expiry", passes: 2 * time.Second, run: redriveByExpiry},
	{name: "redrive/FIFO keeps the group, and takes the message ID for deduplication", run: redriveFIFO},
	{name: "redrive/FIFO group goes on", run: redriveUnblocks},
	{name: "redrive/keeps order in the group", run: redriveOrder},
	{name: "redrive/policy set later", run: redriveLater},
}

// policy is a RedrivePolicy.
func (x *exam) policy(dlq *queue, most int) string {
	b, err := json.Marshal(map[string]any{"deadLetterTargetArn": x.arn(dlq), "maxReceiveCount": most})
	x.ok(err)
	return string(b)
}

// exhaust receives the message n times, giving it back each time, and then once more, when nothing is received.
func (x *exam) exhaust(q *queue, body string, n int) {
	for i := range n {
		m := x.one(q, body)
		x.received(m, i+1)
		x.visibility(q, m, 0)
	}
	x.none(q)
}

// API SetQueueAttributes, maxReceiveCount: "When the ReceiveCount for a message exceeds the maxReceiveCount for a queue, Amazon SQS
// moves the message to the dead-letter-queue."
func redriveMoves(x *exam) {
	dlq := x.standard()
	q := x.standard(attrs{"RedrivePolicy": x.policy(dlq, 2)})
	x.send(q, "a")
	x.exhaust(q, "a", 2)
	x.one(dlq, "a")
	x.none(q)
}

// As above, with a maxReceiveCount of 1.
func redriveFirst(x *exam) {
	dlq := x.standard()
	q := x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)})
	x.send(q, "a")
	x.exhaust(q, "a", 1)
	x.one(dlq, "a")
}

// Guide setting-up-dead-letter-queue-retention: the timestamp is unchanged; and it is the same message, with its ID and
// attributes. API ReceiveMessage: DeadLetterQueueSourceArn.
func redriveKeeps(x *exam) {
	dlq := x.standard()
	q := x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)})
	sent := x.send(q, "a", named("k"))
	before := x.one(q, "a")
	x.pass(time.Second)
	x.visibility(q, before, 0)
	x.none(q)
	m := x.one(dlq, "a")
	if *m.MessageId != *sent.MessageId || str(m.MessageAttributes["k"].StringValue) != "v" {
		x.fatalf("message %s with %v, want %s with its attribute", *m.MessageId, m.MessageAttributes, *sent.MessageId)
	}
	if got, want := m.Attributes["SentTimestamp"], before.Attributes["SentTimestamp"]; got != want {
		x.fatalf("SentTimestamp %s, want %s", got, want)
	}
	if got, want := m.Attributes["DeadLetterQueueSourceArn"], x.arn(q); got != want {
		x.fatalf("DeadLetterQueueSourceArn %q, want %s", got, want)
	}
}

// As above: the receive that moves a message returns the others.
func redriveOthers(x *exam) {
	dlq := x.standard()
	q := x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)})
	x.send(q, "old")
	x.visibility(q, x.one(q, "old"), 0)
	x.sendAll(q, "new", "newer")
	x.want(q, "new", "newer")
	x.one(dlq, "old")
}

// As above: what counts are receives, however they ended.
func redriveByExpiry(x *exam) {
	dlq := x.standard()
	q := x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1), "VisibilityTimeout": "1"})
	x.send(q, "a")
	x.one(q, "a")
	x.pass(2 * time.Second)
	x.none(q)
	x.one(dlq, "a")
}

// Guide sqs-configure-dead-letter-queue-redrive: "When a message is moved from a FIFO queue to a FIFO DLQ, the original
// message's deduplication ID will be replaced with the original message's ID." Its group stays.
func redriveFIFO(x *exam) {
	dlq := x.fifo()
	q := x.fifo(attrs{"RedrivePolicy": x.policy(dlq, 1)})
	sent := x.send(q, "a1")
	x.exhaust(q, "a1", 1)
	m := x.one(dlq, "a1")
	if *m.MessageId != *sent.MessageId || m.Attributes["MessageGroupId"] != "a" {
		x.fatalf("message %s of group %q, want %s of a", *m.MessageId, m.Attributes["MessageGroupId"], *sent.MessageId)
	}
	if got := m.Attributes["MessageDeduplicationId"]; got != *sent.MessageId {
		x.fatalf("MessageDeduplicationId %s, want the message ID %s", got, *sent.MessageId)
	}
}

// Guide sqs-dead-letter-queues: what was moved is no longer in the queue, and its group no longer waits for it.
func redriveUnblocks(x *exam) {
	dlq := x.fifo()
	q := x.fifo(attrs{"RedrivePolicy": x.policy(dlq, 1)})
	x.sendAll(q, "a1", "a2")
	x.visibility(q, x.take(q, 1, "a1")[0], 0)
	x.want(q, "a2")
	x.one(dlq, "a1")
}

// Guide FIFO-queues: order is kept in a dead-letter queue by the order of moves, which is the group's.
func redriveOrder(x *exam) {
	dlq := x.fifo()
	q := x.fifo(attrs{"RedrivePolicy": x.policy(dlq, 1)})
	x.sendAll(q, "a1", "a2", "a3")
	x.visibilityBatch(q, visibilityEntries(0, handlesOf(x.want(q, "a1", "a2", "a3"))...))
	x.none(q)
	x.want(dlq, "a1", "a2", "a3")
}

// API SetQueueAttributes, RedrivePolicy: receives from before count.
func redriveLater(x *exam) {
	dlq, q := x.standard(), x.standard()
	x.send(q, "a")
	x.visibility(q, x.one(q, "a"), 0)
	x.ok(x.set(q, attrs{"RedrivePolicy": x.policy(dlq, 1)}))
	x.none(q)
	x.one(dlq, "a")
	out, err := x.c.ListDeadLetterSourceQueues(x.ctx, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dlq.url})
	x.ok(err)
	if len(out.QueueUrls) != 1 || out.QueueUrls[0] != q.url {
		x.fatalf("sources %v, want %s", out.QueueUrls, q.url)
	}
}
