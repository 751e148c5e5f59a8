package doctor

import (
	"cmp"
	"encoding/json"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

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
