package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/must"
)

const day = 24 * time.Hour

// letters puts messages into the dead-letter queue, the oldest of which CloudWatch says was moved so long ago.
func letters(n int, age time.Duration) func(*account) {
	return func(a *account) {
		for i := range n {
			a.send(a.dlq(), fmt.Sprint(i))
		}
		a.ages[a.dlq()] = age
	}
}

func allows(policy string) func(*account) { return with("orders-dlq", "RedriveAllowPolicy", policy) }

var deadLetterDefects = []defect{
	{
		name: "missing", id: "Q3", verdict: Fail, text: "the dead-letter queue orders-dlq of orders does not exist", spoil: deleteDLQ,
		also: []string{"Q4", "Q5", "Q6"}, before: func(*account) { time.Sleep(61 * time.Second) }, // SQS frees the name after a minute
	},
	{
		name: "missing", id: "Q3", verdict: Fail, text: "the dead-letter queue orders-dlq.fifo of orders.fifo does not exist", spoil: deleteDLQ,
		fifo: true,
		also: []string{"Q4", "Q5", "Q6"}, before: func(*account) { time.Sleep(61 * time.Second) },
	},
	{
		name: "in another account", id: "Q3", verdict: Fail, text: "in another account or Region", before: truth,
		spoil: lie("orders", "RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:111111111111:orders-dlq","maxReceiveCount":5}`),
		also:  []string{"Q6"},
	},
	{
		name: "of the other kind", id: "Q3", verdict: Fail,
		text: "orders is a standard queue and its dead-letter queue orders-dlq.fifo a FIFO one",
		spoil: all(lie("orders", "RedrivePolicy", `{"deadLetterTargetArn":"`+dlqARN+`.fifo","maxReceiveCount":5}`),
			ageAlarm("orders-dlq.fifo")), before: truth,
		also: []string{"Q4", "Q5", "Q6"},
	},
	{name: "denies all", id: "Q3", verdict: Fail, text: "is denyAll", spoil: allows(`{"redrivePermission":"denyAll"}`)},
	{
		name: "allows others", id: "Q3", verdict: Fail, text: "names 1 queues, and not orders",
		spoil: allows(`{"redrivePermission":"byQueue","sourceQueueArns":["` + queueARN("invoices") + `"]}`),
	},
	{
		name: "allows ten others", id: "Q3", verdict: Fail, text: "names 10 queues, and not orders",
		spoil: allows(`{"redrivePermission":"byQueue","sourceQueueArns":[` + strings.TrimSuffix(strings.Repeat(`"`+queueARN("o")+`",`, 10),
			",") + `]}`),
	},
	{name: "an allow policy that is none", id: "Q3", verdict: Fail, text: "the RedriveAllowPolicy of orders-dlq cannot be read",
		spoil: allows(`["it's"]`)},
	{name: "another permission", id: "Q3", verdict: Fail, text: `redrivePermission "some"`, spoil: allows(`{"redrivePermission":"some"}`)},

	{
		name: "shorter than the queue's", id: "Q4", verdict: Fail, text: "orders-dlq keeps messages for 3d 23h59m59s, and orders for 4d",
		spoil: with("orders-dlq", "MessageRetentionPeriod", "345599"),
	},
	{
		name: "four days", id: "Q4", verdict: Warn,
		text:  "orders-dlq keeps messages for 4d, counted from when they were sent to orders, which may keep them for 4d before",
		spoil: with("orders-dlq", "MessageRetentionPeriod", "345600"),
	},
	{
		name: "four days", id: "Q4", verdict: Warn, fifo: true, text: "orders-dlq.fifo keeps messages for 4d, and could for 14d",
		spoil: with("orders-dlq.fifo", "MessageRetentionPeriod", "345600"),
	},
	{
		name: "shorter than the queue's, from the move", id: "Q4", verdict: Warn, fifo: true,
		text:  "orders-dlq.fifo keeps messages for 1d, and could for 14d",
		spoil: with("orders-dlq.fifo", "MessageRetentionPeriod", "86400"),
	},
	{
		name: "lost tomorrow", id: "Q4", verdict: Warn, words: "sqsonce dlq ls", spoil: letters(2, 9*day),
		text: "2 messages in orders-dlq: the oldest may be lost in 1d; it was moved 9d ago, and may have waited for 4d in orders before",
	},
	{name: "lost a second before two days", id: "Q4", verdict: Warn, words: "sqsonce", text: "may be lost in 1d 23h59m;", spoil: letters(1,
		8*day+time.Second)},
	{
		name: "lost a second before two days, by a value of half an hour ago", id: "Q4", verdict: Warn, words: "sqsonce", text: "may be lost in 1d 23h59m;",
		spoil: all(letters(1, 8*day-30*time.Minute+time.Second), func(a *account) {
			alter(a.cloudwatch, func(out *cloudwatch.GetMetricDataOutput) {
				for i := range out.MetricDataResults[0].Timestamps {
					out.MetricDataResults[0].Timestamps[i] = out.MetricDataResults[0].Timestamps[i].Add(-30 * time.Minute)
				}
			})
		}),
	},
	{name: "overdue", id: "Q4", verdict: Warn, words: "sqsonce", text: "may be lost at any time; it was moved 10d ago", spoil: letters(1,
		10*day)},
	{name: "lost tomorrow", id: "Q4", verdict: Warn, fifo: true, words: "sqsonce", text: "may be lost in 1d; it was moved 13d ago",
		spoil: letters(1, 13*day)},
	{
		name: "lost tomorrow, and could be kept", id: "Q4", verdict: Warn, text: "may be lost in 1d; it was moved 5d ago",
		spoil: all(with("orders-dlq", "MessageRetentionPeriod", "864000"), letters(1, 5*day)),
	},

	{
		name: "a chain", id: "Q6", verdict: Fail, text: "orders-dlq has its own redrive policy",
		spoil: with("orders-dlq", "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("orders")+`","maxReceiveCount":3}`),
	},
	{
		name: "a mapping", id: "Q6", verdict: Fail,
		text: "mapping u2 (Enabled) reads orders-dlq and hands its messages to " + functionARN("retry"),
		spoil: func(a *account) {
			a.mappings = append(a.mappings, &mappingConfiguration{
				UUID: aws.String("u2"), State: aws.String("Enabled"), EventSourceArn: aws.String(dlqARN), FunctionArn: aws.String(functionARN("retry")),
			})
		},
	},
	{
		name: "a move task", id: "Q6", verdict: Warn, text: "a message move task moves messages out of orders-dlq, 0 of 3 so far",
		spoil: all(letters(3, time.Hour), func(a *account) {
			must.Get(a.stack.SQS.StartMessageMoveTask(context.Background(), &sqs.StartMessageMoveTaskInput{
				SourceArn: aws.String(dlqARN), DestinationArn: aws.String(queueARN("orders")), MaxNumberOfMessagesPerSecond: aws.Int32(1),
			}))(a)
			time.Sleep(500 * time.Millisecond)
		}),
	},
}

func silence(name string) func(*account) {
	return func(a *account) { a.metric[name].AlarmActions = nil }
}

func without(names ...string) func(*account) {
	return func(a *account) {
		for _, name := range names {
			delete(a.metric, name)
		}
	}
}

// visibleAlone makes the alarm on dead letters one on a metric.
func visibleAlone(a *account) {
	m := a.metric["dead letters"]
	m.Metrics, m.Namespace, m.MetricName, m.Dimensions = nil, aws.String("AWS/SQS"), aws.String("ApproximateNumberOfMessagesVisible"),
		ofQueue(a.dlq())
	m.ExtendedStatistic, m.Period, m.Threshold, m.AlarmDescription = aws.String("p100"), aws.Int32(300), aws.Float64(7),
		aws.String("it's the pager")
	m.OKActions = []string{topic}
}

var alarmDefects = []defect{
	{name: "none", id: "A1", verdict: Warn,
		text: "no alarm fires when orders-dlq has messages; no alarm fires when messages in orders wait", spoil: without("dead letters",
			"age")},
	{name: "none", id: "A1", verdict: Warn, fifo: true, text: "no alarm fires when orders-dlq.fifo has messages",
		spoil: without("dead letters", "age")},
	{name: "none on dead letters", id: "A1", verdict: Warn, text: "no alarm fires when orders-dlq has messages",
		spoil: without("dead letters")},
	{name: "none on age", id: "A1", verdict: Warn, text: "no alarm fires when messages in orders wait", spoil: without("age")},
	{
		name: "on another queue", id: "A1", verdict: Warn, text: "no alarm fires when messages in orders wait",
		spoil: func(a *account) { a.metric["age"].Dimensions = ofQueue("orders2") },
	},
	{name: "visible alone", id: "A1", verdict: Warn, text: `alarm "dead letters" counts the visible messages of orders-dlq alone`,
		spoil: visibleAlone},
	{
		name: "visible alone in an expression", id: "A1", verdict: Warn, text: "counts the visible messages",
		words: "add ApproximateNumberOfMessagesNotVisible",
		spoil: func(a *account) { a.metric["dead letters"].Metrics = a.metric["dead letters"].Metrics[:2] },
	},
	{name: "dead letters tell nobody", id: "A1", verdict: Warn, text: `alarm "dead letters" on the messages in orders-dlq sends no notification`,
		spoil: silence("dead letters")},
	{name: "age tells nobody", id: "A1", verdict: Warn, text: `alarm "age" on the age of messages in orders sends no notification`,
		spoil: silence("age")},
	{name: "visible alone, and tells nobody", id: "A1", verdict: Warn, text: "sends no notification", spoil: all(visibleAlone,
		silence("dead letters"))},
	{
		name: "switched off", id: "A1", verdict: Warn, text: `alarm "age" on the age of messages in orders sends no notification`,
		spoil: func(a *account) { a.metric["age"].ActionsEnabled = aws.Bool(false) },
	},
	{
		name: "a composite alarm that tells of another one", id: "A1", verdict: Warn, text: `alarm "age" on the age`,
		spoil: all(silence("age"), composite(`ALARM("age2") OR ALARM("the age") OR ALARM(ages)`, true)),
	},
	{
		name: "a composite alarm that tells nobody", id: "A1", verdict: Warn, text: `alarm "age" on the age`, spoil: all(silence("age"),
			composite(`ALARM("age")`, false)),
	},
}

func composite(rule string, enabled bool) func(*account) {
	return func(a *account) {
		a.composite = []cwtypes.CompositeAlarm{{AlarmName: aws.String("both"), AlarmRule: &rule, ActionsEnabled: &enabled,
			AlarmActions: []string{topic}}}
	}
}

// ageAlarm adds an alarm on the age of the messages in a queue.
func ageAlarm(queue string) func(*account) {
	return func(a *account) {
		m := *a.metric["age"]
		m.AlarmName, m.Dimensions = aws.String("age of "+queue), ofQueue(queue)
		a.metric[*m.AlarmName] = &m
	}
}
