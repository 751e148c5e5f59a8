package sqstest

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

var queueAttributeCases = []testCase{
	// API CreateQueue, Attributes, "Default:" of each.
	{name: "queue attributes/defaults", run: func(x *exam) {
		q := x.standard()
		x.has(q, attrs{
			"DelaySeconds": "0", "MaximumMessageSize": "1048576", "MessageRetentionPeriod": "345600", "ReceiveMessageWaitTimeSeconds": "0", "VisibilityTimeout": "30",
		})
		if v, ok := x.attributes(q)["FifoQueue"]; ok {
			x.fatalf("FifoQueue %q on a standard queue, want none", v)
		}
	}},
	// API CreateQueue: FifoQueue, ContentBasedDeduplication; DeduplicationScope and FifoThroughputLimit without high
	// throughput.
	{name: "queue attributes/defaults of a FIFO queue", run: func(x *exam) {
		x.has(x.fifo(), attrs{"FifoQueue": "true", "ContentBasedDeduplication": "false", "DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"})
	}},
	// API GetQueueAttributes: QueueArn, CreatedTimestamp and LastModifiedTimestamp "in seconds (epoch time)".
	{name: "queue attributes/identity", run: func(x *exam) {
		q := x.standard()
		got := x.attributes(q)
		if arn, suffix := got["QueueArn"], ":"+q.name; len(arn) < len(suffix) || arn[:12] != "arn:aws:sqs:" || arn[len(arn)-len(suffix):] != suffix {
			x.fatalf("QueueArn %q, want arn:aws:sqs:...%s", arn, suffix)
		}
		created := suite.Get(strconv.Atoi(got["CreatedTimestamp"]))
		modified := suite.Get(strconv.Atoi(got["LastModifiedTimestamp"]))
		if created < 946684800 || created > 1e11 || modified < created {
			x.fatalf("created %d, modified %d, want seconds", created, modified)
		}
	}},
	// API GetQueueAttributes, AttributeNames: "A list of attributes for which to retrieve information."
	{name: "queue attributes/as asked", run: func(x *exam) {
		q := x.standard()
		out := suite.Get(x.c.GetQueueAttributes(x.ctx, &sqs.GetQueueAttributesInput{QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{"VisibilityTimeout", "DelaySeconds"}}))
		if len(out.Attributes) != 2 || out.Attributes["VisibilityTimeout"] != "30" || out.Attributes["DelaySeconds"] != "0" {
			x.fatalf("got %v, want VisibilityTimeout 30 and DelaySeconds 0", out.Attributes)
		}
	}},
	// API GetQueueAttributes, AttributeNames: "if you don't specify values for this parameter, the request returns empty
	// results".
	{name: "queue attributes/none unless asked", run: func(x *exam) {
		out := suite.Get(x.c.GetQueueAttributes(x.ctx, &sqs.GetQueueAttributesInput{QueueUrl: &x.standard().url}))
		if len(out.Attributes) > 0 {
			x.fatalf("got %v, want none", out.Attributes)
		}
	}},
	// API SetQueueAttributes: an attribute that is not named does not change.
	{name: "queue attributes/set", run: func(x *exam) {
		q := x.standard(attrs{"DelaySeconds": "5", "VisibilityTimeout": "40"})
		x.ok(x.set(q, attrs{"VisibilityTimeout": "50"}))
		x.has(q, attrs{"VisibilityTimeout": "50", "DelaySeconds": "5"})
	}},
	// API SetQueueAttributes, "Valid values" of each.
	{name: "queue attributes/values out of range refused", run: func(x *exam) {
		q := x.standard()
		for _, a := range []attrs{
			{"DelaySeconds": "901"}, {"DelaySeconds": "-1"}, {"MaximumMessageSize": "1023"}, {"MaximumMessageSize": "1048577"}, {"MessageRetentionPeriod": "59"},
			{"MessageRetentionPeriod": "1209601"}, {"ReceiveMessageWaitTimeSeconds": "21"}, {"VisibilityTimeout": "43201"}, {"VisibilityTimeout": "many"},
		} {
			err := x.set(q, a)
			if err == nil {
				x.fatalf("%v was accepted", a)
			}
			x.fails("a value", err, "InvalidAttributeValue", invalidValue)
		}
	}},
	// As above.
	{name: "queue attributes/ends of the ranges accepted", run: func(x *exam) {
		q := x.standard()
		for _, a := range []attrs{
			{"DelaySeconds": "900", "MaximumMessageSize": "1048576", "MessageRetentionPeriod": "1209600", "ReceiveMessageWaitTimeSeconds": "20", "VisibilityTimeout": "43200"},
			{"DelaySeconds": "0", "MaximumMessageSize": "1024", "MessageRetentionPeriod": "60", "ReceiveMessageWaitTimeSeconds": "0", "VisibilityTimeout": "0"},
		} {
			x.ok(x.set(q, a))
			x.has(q, a)
		}
	}},
	// API SetQueueAttributes, errors: InvalidAttributeName ("The specified attribute doesn't exist").
	{name: "queue attributes/unknown name refused", run: func(x *exam) {
		x.fails("an unknown attribute", x.set(x.standard(), attrs{"Colour": "red"}), "InvalidAttributeName")
	}},
	// API CreateQueue: "The following attributes apply only to FIFO (first-in-first-out) queues".
	{name: "queue attributes/FIFO attributes refused by a standard queue", run: func(x *exam) {
		q := x.standard()
		for _, a := range []attrs{{"ContentBasedDeduplication": "true"}, {"DeduplicationScope": "messageGroup"}} {
			x.fails("a FIFO attribute", x.set(q, a), "InvalidAttributeName", "InvalidAttributeValue")
		}
	}},
	// API SetQueueAttributes: "The perMessageGroupId value is allowed only when the value for DeduplicationScope is messageGroup.".
	{name: "queue attributes/throughput per group needs scope per group", run: func(x *exam) {
		q := x.fifo()
		x.fails("throughput only", x.set(q, attrs{"FifoThroughputLimit": "perMessageGroupId"}), "InvalidAttributeValue", invalidValue)
		x.ok(x.set(q, attrs{"FifoThroughputLimit": "perMessageGroupId", "DeduplicationScope": "messageGroup"}))
	}},
	// API GetQueueAttributes: ApproximateNumberOfMessages, -NotVisible, -Delayed.
	{name: "queue attributes/counts", run: func(x *exam) {
		q := x.standard()
		x.sendAll(q, "a", "b", "c")
		x.delete(q, x.receive(q, 1)...)
		x.receive(q, 1)
		x.has(q, attrs{"ApproximateNumberOfMessages": "1", "ApproximateNumberOfMessagesNotVisible": "1", "ApproximateNumberOfMessagesDelayed": "0"})
	}},
}

var retentionCases = []testCase{
	// API SetQueueAttributes, MessageRetentionPeriod: "the length of time, in seconds, for which Amazon SQS retains a message".
	{name: "retention/ends a message", passes: time.Minute, run: func(x *exam) {
		q := x.standard(attrs{"MessageRetentionPeriod": "60"})
		x.send(q, "old")
		x.pass(30 * time.Second)
		x.send(q, "new")
		x.pass(30 * time.Second)
		x.one(q, "new")
	}},
	// As above: a receive does not renew it.
	{name: "retention/ends a message that comes back", passes: time.Minute, run: func(x *exam) {
		q := x.standard(attrs{"MessageRetentionPeriod": "60"})
		x.send(q, "a")
		x.pass(30 * time.Second)
		x.one(q, "a", visible(30))
		x.pass(30 * time.Second)
		x.none(q)
	}},
	// As above: changes "will impact existing messages in the queue potentially causing them to be expired and deleted".
	{name: "retention/shortened ends what is older", passes: 100 * time.Second, run: func(x *exam) {
		q := x.standard()
		x.send(q, "old")
		x.pass(100 * time.Second)
		x.send(q, "new")
		x.ok(x.set(q, attrs{"MessageRetentionPeriod": "60"}))
		x.one(q, "new")
	}},
	// As above: "Default: 345,600 (4 days)."
	{name: "retention/default of four days", passes: 96 * time.Hour, run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		x.pass(95 * time.Hour)
		x.visibility(q, x.one(q, "a"), 0)
		x.pass(time.Hour)
		x.none(q)
	}},
	// Guide setting-up-dead-letter-queue-retention: "For standard queues, the expiration of a message is always based on its
	// original enqueue timestamp. When a message is moved to a dead-letter queue, the enqueue timestamp is unchanged."
	{name: "retention/standard dead-letter queue counts from the sending", passes: time.Minute, run: func(x *exam) {
		dlq := x.standard(attrs{"MessageRetentionPeriod": "60"})
		q := x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)})
		x.send(q, "a")
		x.pass(50 * time.Second)
		x.exhaust(q, "a", 1)
		x.visibility(dlq, x.one(dlq, "a"), 0)
		x.pass(10 * time.Second)
		x.none(dlq)
	}},
	// Guide setting-up-dead-letter-queue-retention: "For FIFO queues, the enqueue timestamp resets when the message is moved to a
	// dead-letter queue."
	{name: "retention/FIFO dead-letter queue counts from the move", passes: 90 * time.Second, run: func(x *exam) {
		dlq := x.fifo(attrs{"MessageRetentionPeriod": "60"})
		q := x.fifo(attrs{"RedrivePolicy": x.policy(dlq, 1)})
		x.send(q, "a1")
		x.pass(50 * time.Second)
		x.exhaust(q, "a1", 1)
		x.pass(20 * time.Second)
		x.visibility(dlq, x.one(dlq, "a1"), 0)
		x.pass(20 * time.Second)
		x.one(dlq, "a1")
	}},
}
