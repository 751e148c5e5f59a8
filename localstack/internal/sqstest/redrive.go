package sqstest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

var redriveCases = []testCase{
	// API SetQueueAttributes, maxReceiveCount: "When the ReceiveCount for a message exceeds the maxReceiveCount for a queue, Amazon SQS
	// moves the message to the dead-letter-queue."
	{name: "redrive/moved instead of received", run: func(x *exam) {
		dlq := x.standard()
		q := x.standard(attrs{"RedrivePolicy": x.policy(dlq, 2)})
		x.send(q, "a")
		x.exhaust(q, "a", 2)
		x.one(dlq, "a")
		x.none(q)
	}},
	// Guide setting-up-dead-letter-queue-retention: the timestamp is unchanged; and it is the same message, with its ID and
	// attributes.
	{name: "redrive/keeps its identity", passes: time.Second, run: func(x *exam) {
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
	}},
	// API ReceiveMessage: DeadLetterQueueSourceArn.
	{name: "redrive/names its source", run: func(x *exam) {
		dlq := x.standard()
		x.namesSource(x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)}), dlq)
	}},
	// As above: the attribute is of a message that SQS has moved, not of each one in a dead-letter queue.
	{name: "redrive/a message that was sent names no source", run: func(x *exam) {
		dlq := x.standard()
		x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)})
		x.namesNone(dlq)
	}},
	// As above: the receive that moves a message returns the other messages.
	{name: "redrive/others are still received", run: func(x *exam) {
		dlq := x.standard()
		q := x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)})
		x.send(q, "old")
		x.visibility(q, x.one(q, "old"), 0)
		x.sendAll(q, "new", "newer")
		x.want(q, "new", "newer")
		x.one(dlq, "old")
	}},
	// As above: a receive counts, however it ended.
	{name: "redrive/by expiry", passes: 2 * time.Second, run: func(x *exam) {
		dlq := x.standard()
		q := x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1), "VisibilityTimeout": "1"})
		x.send(q, "a")
		x.one(q, "a")
		x.pass(2 * time.Second)
		x.none(q)
		x.one(dlq, "a")
	}},
	// Guide sqs-configure-dead-letter-queue-redrive: the original message's deduplication ID is replaced, and nothing else is: it is
	// the same message, with its ID and its group.
	{name: "redrive/FIFO keeps its identity and its group", run: func(x *exam) {
		sent, m := x.movedFIFO()
		if *m.MessageId != sent || m.Attributes["MessageGroupId"] != "a" {
			x.fatalf("message %s of group %q, want %s of a", *m.MessageId, m.Attributes["MessageGroupId"], sent)
		}
	}},
	// Guide sqs-configure-dead-letter-queue-redrive: "When a message is moved from a FIFO queue to a FIFO DLQ, the original
	// message's deduplication ID will be replaced with the original message's ID."
	{name: "redrive/FIFO takes the message ID for deduplication", run: func(x *exam) {
		sent, m := x.movedFIFO()
		if got := m.Attributes["MessageDeduplicationId"]; got != sent {
			x.fatalf("MessageDeduplicationId %s, want the message ID %s", got, sent)
		}
	}},
	// API ReceiveMessage: DeadLetterQueueSourceArn.
	{name: "redrive/FIFO names its source", run: func(x *exam) {
		dlq := x.fifo()
		x.namesSource(x.fifo(attrs{"RedrivePolicy": x.policy(dlq, 1)}), dlq)
	}},
	// As above, of a FIFO queue.
	{name: "redrive/FIFO message that was sent names no source", run: func(x *exam) {
		dlq := x.fifo()
		x.fifo(attrs{"RedrivePolicy": x.policy(dlq, 1)})
		x.namesNone(dlq)
	}},
	// Guide sqs-dead-letter-queues: a moved message is no longer in the queue, and no longer locks its group.
	{name: "redrive/FIFO group goes on", run: func(x *exam) {
		dlq := x.fifo()
		q := x.fifo(attrs{"RedrivePolicy": x.policy(dlq, 1)})
		x.sendAll(q, "a1", "a2")
		x.visibility(q, x.take(q, 1, "a1")[0], 0)
		x.want(q, "a2")
		x.one(dlq, "a1")
	}},
	// Guide FIFO-queues: the order of a dead-letter queue is the order of moves, which is the order of the group.
	{name: "redrive/keeps order in the group", run: func(x *exam) {
		dlq := x.fifo()
		q := x.fifo(attrs{"RedrivePolicy": x.policy(dlq, 1)})
		x.sendAll(q, "a1", "a2", "a3")
		x.visibilityBatch(q, visibilityEntries(0, handlesOf(x.want(q, "a1", "a2", "a3"))...))
		x.none(q)
		x.want(dlq, "a1", "a2", "a3")
	}},
	// API SetQueueAttributes, RedrivePolicy: receives before the policy was set count.
	{name: "redrive/policy set later", run: func(x *exam) {
		dlq, q := x.standard(), x.standard()
		x.send(q, "a")
		x.visibility(q, x.one(q, "a"), 0)
		x.ok(x.set(q, attrs{"RedrivePolicy": x.policy(dlq, 1)}))
		x.none(q)
		x.one(dlq, "a")
	}},
}

// policy returns a RedrivePolicy.
func (x *exam) policy(dlq *queue, most int) string {
	b := suite.Get(json.Marshal(map[string]any{"deadLetterTargetArn": x.arn(dlq), "maxReceiveCount": most}))
	return string(b)
}

// exhaust receives the message n times, with a change of its visibility to 0 after each, and then expects to receive nothing.
func (x *exam) exhaust(q *queue, body string, n int) {
	for i := range n {
		m := x.one(q, body)
		x.received(m, i+1)
		x.visibility(q, m, 0)
	}
	x.none(q)
}

func (x *exam) namesSource(q, dlq *queue) {
	x.send(q, "a1")
	x.exhaust(q, "a1", 1)
	if got, want := x.one(dlq, "a1").Attributes["DeadLetterQueueSourceArn"], x.arn(q); got != want {
		x.fatalf("DeadLetterQueueSourceArn %q, want %s", got, want)
	}
}

func (x *exam) namesNone(dlq *queue) {
	x.send(dlq, "a1")
	if got, there := x.one(dlq, "a1").Attributes["DeadLetterQueueSourceArn"]; there {
		x.fatalf("DeadLetterQueueSourceArn %q of a message that was sent, want none", got)
	}
}

// movedFIFO returns the ID that a message got when it was sent, and the message in the dead-letter queue.
func (x *exam) movedFIFO() (sent string, m types.Message) {
	dlq := x.fifo()
	q := x.fifo(attrs{"RedrivePolicy": x.policy(dlq, 1)})
	sent = *x.send(q, "a1").MessageId
	x.exhaust(q, "a1", 1)
	return sent, x.one(dlq, "a1")
}

var redrivePolicyCases = []testCase{
	// API CreateQueue, RedrivePolicy: maxReceiveCount is written as a string in AWS's own examples.
	{name: "redrive policy/count as a string", run: func(x *exam) {
		dlq := x.standard()
		q := x.standard(attrs{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":"%s","maxReceiveCount":"1"}`, x.arn(dlq))})
		x.send(q, "a")
		x.exhaust(q, "a", 1)
		x.one(dlq, "a")
	}},
	// API ListDeadLetterSourceQueues.
	{name: "redrive policy/sources of a dead-letter queue", run: func(x *exam) {
		dlq := x.standard()
		q := x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)})
		x.standard()
		out := suite.Get(x.c.ListDeadLetterSourceQueues(x.ctx, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dlq.url}))
		if len(out.QueueUrls) != 1 || out.QueueUrls[0] != q.url {
			x.fatalf("sources %v, want %s", out.QueueUrls, q.url)
		}
	}},
	// Recorded: test_set_empty_redrive_policy: an empty value removes it.
	{name: "redrive policy/removed", run: func(x *exam) {
		dlq := x.standard()
		q := x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)})
		x.ok(x.set(q, attrs{"RedrivePolicy": ""}))
		x.send(q, "a")
		for range 3 {
			x.visibility(q, x.one(q, "a"), 0)
		}
		if v, ok := x.attributes(q)["RedrivePolicy"]; ok {
			x.fatalf("RedrivePolicy %q, want none", v)
		}
	}},
	// API SetQueueAttributes, RedrivePolicy: "as a JSON object". A server that stores it may fail at it later, for every queue.
	{name: "redrive policy/not JSON refused", serial: true, run: func(x *exam) { x.refusesPolicy("not JSON", "maxReceiveCount=1") }},
	// API SetQueueAttributes, RedrivePolicy: it "includes the parameters" deadLetterTargetArn and maxReceiveCount.
	{name: "redrive policy/without count or target refused", run: func(x *exam) {
		x.refusesPolicy("no target", `{"maxReceiveCount":1}`)
		x.refusesPolicy("no count", fmt.Sprintf(`{"deadLetterTargetArn":"%s"}`, x.arn(x.standard())))
	}},
	// Recorded: test_redrive_policy_attribute_validity. Valid counts are "from 1 to 1000 both inclusive".
	{name: "redrive policy/count of 0 or 1001 refused", run: func(x *exam) {
		dlq := x.standard()
		for _, n := range []int{0, 1001} {
			x.refusesPolicy(fmt.Sprint("a count of ", n), x.policy(dlq, n))
		}
	}},
	// The error that users of infrastructure tools report: "Dead letter target does not exist."
	{name: "redrive policy/unknown target refused", run: func(x *exam) {
		dlq := x.standard()
		x.refusesPolicy("no such queue", strings.ReplaceAll(x.policy(dlq, 1), dlq.name, x.name()))
	}},
	// API CreateQueue, RedrivePolicy: "The dead-letter queue of a FIFO queue must also be a FIFO queue."
	{name: "redrive policy/target of the other type refused", run: func(x *exam) {
		x.refusesPolicy("a FIFO target", x.policy(x.fifo(), 1))
		err := x.set(x.fifo(), attrs{"RedrivePolicy": x.policy(x.standard(), 1)})
		x.fails("a standard target", err, invalidValue, "InvalidAttributeValue")
	}},
}

// refusesPolicy expects a policy to be refused.
func (x *exam) refusesPolicy(what, policy string) {
	err := x.set(x.standard(), attrs{"RedrivePolicy": policy})
	x.fails(what, err, invalidValue, "InvalidAttributeValue")
}
