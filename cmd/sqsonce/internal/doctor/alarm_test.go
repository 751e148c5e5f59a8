package doctor

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

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
		text: "no alarm says that there are messages in orders-dlq; no alarm says that messages in orders wait", spoil: without("dead letters",
			"age")},
	{name: "none", id: "A1", verdict: Warn, fifo: true, text: "no alarm says that there are messages in orders-dlq.fifo",
		spoil: without("dead letters", "age")},
	{name: "none on dead letters", id: "A1", verdict: Warn, text: "no alarm says that there are messages in orders-dlq",
		spoil: without("dead letters")},
	{name: "none on age", id: "A1", verdict: Warn, text: "no alarm says that messages in orders wait", spoil: without("age")},
	{
		name: "on another queue", id: "A1", verdict: Warn, text: "no alarm says that messages in orders wait",
		spoil: func(a *account) { a.metric["age"].Dimensions = ofQueue("orders2") },
	},
	{name: "visible alone", id: "A1", verdict: Warn, text: `alarm "dead letters" counts the visible messages of orders-dlq alone`,
		spoil: visibleAlone},
	{
		name: "visible alone in an expression", id: "A1", verdict: Warn, text: "counts the visible messages",
		words: "add ApproximateNumberOfMessagesNotVisible",
		spoil: func(a *account) { a.metric["dead letters"].Metrics = a.metric["dead letters"].Metrics[:2] },
	},
	{name: "dead letters tell nobody", id: "A1", verdict: Warn, text: `alarm "dead letters" on the messages in orders-dlq tells nobody`,
		spoil: silence("dead letters")},
	{name: "age tells nobody", id: "A1", verdict: Warn, text: `alarm "age" on the age of messages in orders tells nobody`,
		spoil: silence("age")},
	{name: "visible alone, and tells nobody", id: "A1", verdict: Warn, text: "tells nobody", spoil: all(visibleAlone,
		silence("dead letters"))},
	{
		name: "switched off", id: "A1", verdict: Warn, text: `alarm "age" on the age of messages in orders tells nobody`,
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
