package sqstest

import "time"

var retentionCases = []testCase{
	{name: "retention/ends a message", passes: time.Minute, run: retentionEnds},
	{name: "retention/ends a message that comes back", passes: time.Minute, run: retentionInFlight},
	{name: "retention/shortened ends what is older", passes: 100 * time.Second, run: retentionShortened},
	{name: "retention/default of four days", passes: 96 * time.Hour, run: retentionDefault},
	{name: "retention/standard dead-letter queue counts from the sending", passes: time.Minute, run: retentionStandardDLQ},
	{name: "retention/FIFO dead-letter queue counts from the move", passes: 90 * time.Second, run: retentionFIFODLQ},
}

// API SetQueueAttributes, MessageRetentionPeriod: "the length of time, in seconds, for which Amazon SQS retains a message".
func retentionEnds(x *exam) {
	q := x.standard(attrs{"MessageRetentionPeriod": "60"})
	x.send(q, "old")
	x.pass(30 * time.Second)
	x.send(q, "new")
	x.pass(30 * time.Second)
	x.one(q, "new")
}

// As above: a receive does not renew it.
func retentionInFlight(x *exam) {
	q := x.standard(attrs{"MessageRetentionPeriod": "60"})
	x.send(q, "a")
	x.pass(30 * time.Second)
	x.one(q, "a", visible(30))
	x.pass(30 * time.Second)
	x.none(q)
}

// As above: changes "will impact existing messages in the queue potentially causing them to be expired and deleted".
func retentionShortened(x *exam) {
	q := x.standard()
	x.send(q, "old")
	x.pass(100 * time.Second)
	x.send(q, "new")
	x.ok(x.set(q, attrs{"MessageRetentionPeriod": "60"}))
	x.one(q, "new")
}

// As above: "Default: 345,600 (4 days)."
func retentionDefault(x *exam) {
	q := x.standard()
	x.send(q, "a")
	x.pass(95 * time.Hour)
	x.visibility(q, x.one(q, "a"), 0)
	x.pass(time.Hour)
	x.none(q)
}

// Guide setting-up-dead-letter-queue-retention: "For standard queues, the expiration of a message is always based on its
// original enqueue timestamp. When a message is moved to a dead-letter queue, the enqueue timestamp is unchanged."
func retentionStandardDLQ(x *exam) {
	dlq := x.standard(attrs{"MessageRetentionPeriod": "60"})
	q := x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)})
	x.send(q, "a")
	x.pass(50 * time.Second)
	x.exhaust(q, "a", 1)
	x.visibility(dlq, x.one(dlq, "a"), 0)
	x.pass(10 * time.Second)
	x.none(dlq)
}

// Guide setting-up-dead-letter-queue-retention: "For FIFO queues, the enqueue timestamp resets when the message is moved to a
// dead-letter queue."
func retentionFIFODLQ(x *exam) {
	dlq := x.fifo(attrs{"MessageRetentionPeriod": "60"})
	q := x.fifo(attrs{"RedrivePolicy": x.policy(dlq, 1)})
	x.send(q, "a1")
	x.pass(50 * time.Second)
	x.exhaust(q, "a1", 1)
	x.pass(20 * time.Second)
	x.visibility(dlq, x.one(dlq, "a1"), 0)
	x.pass(20 * time.Second)
	x.one(dlq, "a1")
}
