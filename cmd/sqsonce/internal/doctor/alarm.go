package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func alarmChecks() []check { return []check{{[]string{"A1"}, checkAlarms}} }

// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
const (
	namespace     = "AWS/SQS"
	dimension     = "QueueName"
	metricVisible = "ApproximateNumberOfMessagesVisible"
	metricHidden  = "ApproximateNumberOfMessagesNotVisible"
	metricAge     = "ApproximateAgeOfOldestMessage"
)

// alarms are those of the account in the Region.
type alarms struct {
	metric    []cwtypes.MetricAlarm
	composite []cwtypes.CompositeAlarm
}

// checkAlarms is A1: that somebody is told of dead letters, and of messages that wait. Neither alarm sees what the other one does.
func checkAlarms(ctx context.Context, e *examination) []Finding {
	r := report{id: "A1"}
	q, err := e.queue(ctx)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	if foreign := e.foreign(ctx, "alarms on "+q.name, q.account()); foreign != nil {
		return []Finding{unseen(r.id, foreign)} // those of this account are on other queues, which may have the same names
	}
	arn, most, redriveErr := e.redrive(ctx)
	if redriveErr != nil && !errors.Is(redriveErr, errNoDLQ) {
		r.miss(redriveErr)
	}
	all, err := e.alarms(ctx)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	if redriveErr == nil {
		all.checkDepth(&r, arn.Name)
	}
	all.checkAge(&r, q, most)
	return []Finding{r.finding("alarms on the messages in %s and on the age of those in %s", arn.Name, q.name)}
}

// checkDepth looks for an alarm on what is in the dead-letter queue: visible and in flight, or the oldest message's age. Whoever lists a
// dead-letter queue hides its messages for a while: an alarm on visible ones alone turns to OK and rings again.
func (all *alarms) checkDepth(r *report, dlq string) {
	var silent *cwtypes.MetricAlarm
	heard := false
	for i := range all.metric {
		a := &all.metric[i]
		visible, lasting := watches(a, metricVisible, dlq), watches(a, metricHidden, dlq) || watches(a, metricAge, dlq)
		switch {
		case !visible && !watches(a, metricAge, dlq):
		case !all.act(a):
			silent = a
		case visible && !lasting:
			heard = true
			r.warn(putAlarm(withHidden(a, dlq)),
				"alarm %q counts the visible messages of %s alone: who lists them hides them, so that it turns to OK and rings again",
				aws.ToString(a.AlarmName), dlq)
		default:
			heard = true
		}
	}
	switch {
	case heard:
	case silent != nil:
		mended := silent
		if watches(silent, metricVisible, dlq) && !watches(silent, metricHidden, dlq) {
			mended = withHidden(silent, dlq)
		}
		r.warn(voice(mended), "alarm %q on the messages in %s sends no notification: it has no actions, or they are switched off",
			aws.ToString(silent.AlarmName), dlq)
	default:
		name := "sqsonce-" + dlq + "-messages"
		r.warn(voice(withHidden(&cwtypes.MetricAlarm{
			AlarmName: &name, EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0), Period: aws.Int32(60),
			ComparisonOperator: cwtypes.ComparisonOperatorGreaterThanThreshold, TreatMissingData: aws.String("notBreaching"),
		}, dlq)), "no alarm fires when %s has messages", dlq)
	}
}

// checkAge looks for an alarm on the age of the oldest message in the source queue.
func (all *alarms) checkAge(r *report, q *queue, most int) {
	var silent *cwtypes.MetricAlarm
	for i := range all.metric {
		switch a := &all.metric[i]; {
		case !watches(a, metricAge, q.name):
		case all.act(a):
			return
		default:
			silent = a
		}
	}
	if silent != nil {
		r.warn(voice(silent), "alarm %q on the age of messages in %s sends no notification: it has no actions, or they are switched off",
			aws.ToString(silent.AlarmName), q.name)
		return
	}
	visibility, err := q.seconds(sqstypes.QueueAttributeNameVisibilityTimeout)
	if err != nil || visibility == 0 {
		visibility = time.Minute
	}
	if most == 0 {
		most = fewReceives
	}
	// Older than all receives of a message take together: it is not tried again and again, it is not received.
	name := "sqsonce-" + q.name + "-age"
	r.warn(voice(&cwtypes.MetricAlarm{
		AlarmName: &name, Namespace: aws.String(namespace), MetricName: aws.String(metricAge), Dimensions: ofQueue(q.name),
		Statistic: cwtypes.StatisticMaximum, Period: aws.Int32(60), DatapointsToAlarm: aws.Int32(3), EvaluationPeriods: aws.Int32(5),
		Threshold:          aws.Float64(visibility.Seconds() * float64(most)),
		ComparisonOperator: cwtypes.ComparisonOperatorGreaterThanThreshold, TreatMissingData: aws.String("notBreaching"),
	}), "no alarm fires when messages in %s wait for long", q.name)
}

// alarms reads all of them: DescribeAlarmsForMetric leaves out those with an expression, and composite ones.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarmsForMetric.html
func (e *examination) alarms(ctx context.Context) (*alarms, error) {
	if e.CloudWatch == nil {
		return nil, errNoClient
	}
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	in := &cloudwatch.DescribeAlarmsInput{
		MaxRecords: aws.Int32(100), AlarmTypes: []cwtypes.AlarmType{cwtypes.AlarmTypeMetricAlarm, cwtypes.AlarmTypeCompositeAlarm},
	}
	all := &alarms{}
	for range mostPages {
		out, err := e.CloudWatch.DescribeAlarms(ctx, in)
		if err != nil {
			return nil, err
		}
		all.metric, all.composite = append(all.metric, out.MetricAlarms...), append(all.composite, out.CompositeAlarms...)
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("cloudwatch:DescribeAlarms: more than %d pages", mostPages)
}

// watches reports whether an alarm is on a metric of a queue, alone or in an expression. One that selects metrics by a query is not
// recognised.
func watches(a *cwtypes.MetricAlarm, metric, queue string) bool {
	all := []cwtypes.Metric{{Namespace: a.Namespace, MetricName: a.MetricName, Dimensions: a.Dimensions}}
	for _, m := range a.Metrics {
		if m.MetricStat != nil && m.MetricStat.Metric != nil {
			all = append(all, *m.MetricStat.Metric)
		}
	}
	return slices.ContainsFunc(all, func(m cwtypes.Metric) bool {
		return aws.ToString(m.Namespace) == namespace && aws.ToString(m.MetricName) == metric &&
			slices.ContainsFunc(m.Dimensions, func(d cwtypes.Dimension) bool {
				return aws.ToString(d.Name) == dimension && aws.ToString(d.Value) == queue
			})
	})
}

// act reports whether an alarm tells somebody: itself, or through a composite alarm.
func (all *alarms) act(a *cwtypes.MetricAlarm) bool {
	if acts(a.ActionsEnabled, a.AlarmActions) {
		return true
	}
	name := regexp.QuoteMeta(aws.ToString(a.AlarmName))
	named := regexp.MustCompile(`\(\s*["']?(arn:[^()"']*:alarm:)?` + name + `["']?\s*\)`)
	return slices.ContainsFunc(all.composite, func(c cwtypes.CompositeAlarm) bool {
		return acts(c.ActionsEnabled, c.AlarmActions) && named.MatchString(aws.ToString(c.AlarmRule))
	})
}

func acts(enabled *bool, actions []string) bool { return aws.ToBool(enabled) && len(actions) > 0 }

// putAlarm is the command that sets an alarm. PutMetricAlarm replaces all settings of one that exists: those that stay are given again.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
func putAlarm(a *cwtypes.MetricAlarm) string {
	if a == nil {
		return addHidden
	}
	// The input's members are those of the alarm that can be set.
	in := &cloudwatch.PutMetricAlarmInput{}
	if err := json.Unmarshal([]byte(asJSON(a)), in); err != nil {
		return "set the alarm's actions and metrics in the console" // it has settings that JSON does not carry
	}
	return awsCommand("cloudwatch", "put-metric-alarm", "--cli-input-json", asJSON(withoutEmpty(in)))
}

const addHidden = "add " + metricHidden + " to the alarm's expression"

// voice is the command that makes an alarm tell somebody. Where it has no action it gets a topic's, which only a person knows.
func voice(a *cwtypes.MetricAlarm) string {
	if a == nil {
		return addHidden
	}
	loud := *a
	loud.ActionsEnabled = nil // the default is true
	if len(a.AlarmActions) > 0 {
		return putAlarm(&loud)
	}
	return putAlarm(&loud) + ` --alarm-actions "${ALARM_TOPIC:?set it to the ARN of an SNS topic}"`
}

// withHidden is an alarm that counts messages in flight too. It is nil for one that has an expression already, which a person must change.
func withHidden(a *cwtypes.MetricAlarm, queue string) *cwtypes.MetricAlarm {
	if len(a.Metrics) > 0 {
		return nil
	}
	stat := cmp.Or(string(a.Statistic), aws.ToString(a.ExtendedStatistic), string(cwtypes.StatisticMaximum))
	query := func(id, metric string) cwtypes.MetricDataQuery {
		return cwtypes.MetricDataQuery{Id: &id, ReturnData: aws.Bool(false), MetricStat: &cwtypes.MetricStat{
			Stat: &stat, Period: a.Period, Metric: &cwtypes.Metric{Namespace: aws.String(namespace), MetricName: &metric,
				Dimensions: ofQueue(queue)},
		}}
	}
	sum := *a
	sum.Namespace, sum.MetricName, sum.Dimensions, sum.Statistic, sum.ExtendedStatistic, sum.Period, sum.Unit = nil, nil, nil, "", nil, nil, ""
	sum.Metrics = []cwtypes.MetricDataQuery{
		{Id: aws.String("messages"), Expression: aws.String("visible + hidden"), ReturnData: aws.Bool(true)},
		query("visible", metricVisible), query("hidden", metricHidden),
	}
	return &sum
}

func ofQueue(name string) []cwtypes.Dimension {
	return []cwtypes.Dimension{{Name: aws.String(dimension), Value: &name}}
}

// withoutEmpty is a value for JSON without what is not set.
func withoutEmpty(v any) any {
	var plain any
	if err := json.Unmarshal([]byte(asJSON(v)), &plain); err != nil {
		panic(err) // it was just written
	}
	return prune(plain)
}

func prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if member = prune(member); member == nil || member == "" || isEmpty(member) {
				delete(v, name)
			} else {
				v[name] = member
			}
		}
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
	}
	return v
}

func isEmpty(v any) bool {
	r := reflect.ValueOf(v)
	return (r.Kind() == reflect.Map || r.Kind() == reflect.Slice) && r.Len() == 0
}
