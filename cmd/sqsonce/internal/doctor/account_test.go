package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/mappings"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/testworld"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
)

// account is an AWS account in memory: SQS and DynamoDB as servers, the others as fakes.
type account struct {
	testing.TB
	stack      *localstack.Stack
	clients    Clients
	deployment Deployment

	sqs, dynamodb, lambda, iam, cloudwatch, sts *fake

	functions map[string]*lambda.GetFunctionConfigurationOutput // by name, or name:alias
	reserved  map[string]int32                                  // concurrency, by name of the function
	mappings  []*mappingConfiguration
	role      *role                           // the function's
	metric    map[string]*cwtypes.MetricAlarm // by name
	composite []cwtypes.CompositeAlarm
	ages      map[string]time.Duration // ApproximateAgeOfOldestMessage, by the queue's name
}

const (
	uuid    = "1f0c2f6e-0000-4000-8000-000000000001"
	timeout = 30 // s, of the function
)

// healthy is a deployment in which every check is ok: a queue, its dead-letter queue, a function behind a mapping, alarms, and the table
// "dedup".
func healthy(t testing.TB, queue string) *account {
	t.Helper()
	a := newAccount(t, localstack.Queue{Name: queue, Attributes: map[string]string{"VisibilityTimeout": "180"}})
	a.functions["billing"] = &lambda.GetFunctionConfigurationOutput{
		FunctionName: aws.String("billing"), FunctionArn: aws.String(functionARN("billing")), Timeout: aws.Int32(timeout),
		Role: aws.String(roleARN),
	}
	dlq := a.dlq()
	a.setQueue(dlq, map[string]string{
		"MessageRetentionPeriod": "1209600",
		"RedriveAllowPolicy":     `{"redrivePermission":"byQueue","sourceQueueArns":["` + queueARN(queue) + `"]}`,
	})
	mapping := testworld.Mapping(queue)
	a.mappings = []*mappingConfiguration{&mapping}
	for _, alarm := range testworld.Alarms(queue, dlq) {
		a.metric[*alarm.AlarmName] = &alarm
	}
	a.fakeIAM(queue)
	testworld.ProtectTable(t, a.stack)
	a.deployment = Deployment{
		QueueURL: a.stack.QueueURL[queue], Function: "billing", Table: "dedup", Consumer: "billing",
		Retention: 29 * 24 * time.Hour, LongestHandler: 10 * time.Minute, Look: "sqsonce dlq ls",
	}
	return a
}

// run runs a subtest of a healthy deployment beside the others.
func run(t *testing.T, name string, f func(a *account)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		f(healthy(t, "orders"))
	})
}

func newAccount(t testing.TB, queues ...localstack.Queue) *account {
	t.Helper()
	stack := testworld.Start(t, func(o *localstack.Options) { o.InMemory, o.Queues = true, queues })
	a := &account{
		TB: t, stack: stack, sqs: newFake(true), dynamodb: newFake(true), lambda: newFake(false), iam: newFake(false), cloudwatch: newFake(false),
		sts:       newFake(false),
		functions: map[string]*lambda.GetFunctionConfigurationOutput{}, reserved: map[string]int32{},
		metric: map[string]*cwtypes.MetricAlarm{}, ages: map[string]time.Duration{},
	}
	a.clients = Clients{
		SQS:        sqs.New(stack.SQS.Options(), func(o *sqs.Options) { o.APIOptions = append(o.APIOptions, a.sqs.add) }),
		DynamoDB:   dynamodb.New(stack.DynamoDB.Options(), func(o *dynamodb.Options) { o.APIOptions = append(o.APIOptions, a.dynamodb.add) }),
		Lambda:     lambda.NewFromConfig(a.lambda.config()),
		IAM:        iam.NewFromConfig(a.iam.config()),
		CloudWatch: cloudwatch.NewFromConfig(a.cloudwatch.config()),
		STS:        sts.NewFromConfig(a.sts.config()),
	}
	a.sqs.refuse("SetQueueAttributes", func(in any) error { // a rule that the server does not have
		var p redriveAllow
		if text := in.(*sqs.SetQueueAttributesInput).Attributes["RedriveAllowPolicy"]; text != "" {
			if err := json.Unmarshal([]byte(text), &p); err != nil || len(p.Sources) > 10 {
				return fmt.Errorf("RedriveAllowPolicy with %d sources: %w", len(p.Sources), err)
			}
		}
		return nil
	})
	a.fakeLambda()
	a.fakeCloudWatch()
	return a
}

func queueARN(name string) string    { return "arn:aws:sqs:us-east-1:000000000000:" + name }
func functionARN(name string) string { return "arn:aws:lambda:us-east-1:000000000000:function:" + name }

// dlq is the name of the dead-letter queue.
func (a *account) dlq() string {
	for name := range a.stack.QueueURL {
		if strings.Contains(name, "-dlq") {
			return name
		}
	}
	a.Fatal("no dead-letter queue")
	return ""
}

func (a *account) setQueue(name string, attributes map[string]string) {
	a.Helper()
	url := a.stack.QueueURL[name]
	must.Get(a.stack.SQS.SetQueueAttributes(context.Background(), &sqs.SetQueueAttributesInput{QueueUrl: &url,
		Attributes: attributes}))(a)
}

func (a *account) send(name, body string) {
	a.Helper()
	testworld.Send(a, a.stack, name, "g", body)
}

// examine makes checks of the account's deployment, by default all, and returns their findings by ID.
func (a *account) examine(some ...check) map[string]Finding {
	a.Helper()
	if some == nil {
		some = checks()
	}
	found := map[string]Finding{}
	for _, f := range examine(context.Background(), &examination{Clients: a.clients.bounded(), Deployment: a.deployment}, some) {
		if _, twice := found[f.ID]; twice {
			a.Errorf("two findings of %s", f.ID)
		}
		found[f.ID] = f
	}
	return found
}

// fakeLambda answers with mappings, functions and concurrency, by AWS's rules where a fix could break them.
func (a *account) fakeLambda() {
	answer(a.lambda, func(in *lambda.ListEventSourceMappingsInput) (*lambda.ListEventSourceMappingsOutput, error) {
		out := &lambda.ListEventSourceMappingsOutput{EventSourceMappings: []mappingConfiguration{}}
		for _, m := range a.mappings {
			if in.EventSourceArn == nil || *m.EventSourceArn == *in.EventSourceArn {
				out.EventSourceMappings = append(out.EventSourceMappings, *m)
			}
		}
		return out, nil
	})
	answer(a.lambda, func(in *lambda.GetFunctionConfigurationInput) (*lambda.GetFunctionConfigurationOutput, error) {
		name, qualifier := mappings.FunctionName(*in.FunctionName)
		if f := cmp.Or(a.functions[name+":"+qualifier], a.functions[name]); f != nil {
			return f, nil
		}
		return nil, notFound("Function not found: %s", *in.FunctionName)
	})
	answer(a.lambda, func(in *lambda.GetFunctionConcurrencyInput) (*lambda.GetFunctionConcurrencyOutput, error) {
		out := &lambda.GetFunctionConcurrencyOutput{}
		name, qualifier := mappings.FunctionName(*in.FunctionName)
		if n, ok := a.reserved[name]; ok {
			out.ReservedConcurrentExecutions = &n
		}
		if qualifier != "" {
			return nil, fmt.Errorf("concurrency is that of the function, not of %q", qualifier)
		}
		return out, nil
	})
	answer(a.lambda, func(in *lambda.PutFunctionConcurrencyInput) (*lambda.PutFunctionConcurrencyOutput, error) {
		name, _ := mappings.FunctionName(*in.FunctionName)
		a.reserved[name] = *in.ReservedConcurrentExecutions
		return &lambda.PutFunctionConcurrencyOutput{}, nil
	})
	answer(a.lambda, func(in *lambda.UpdateEventSourceMappingInput) (*lambda.UpdateEventSourceMappingOutput, error) {
		for _, m := range a.mappings {
			if *m.UUID != *in.UUID {
				continue
			}
			if in.Enabled != nil {
				m.State = aws.String(map[bool]string{true: "Enabled", false: "Disabled"}[*in.Enabled])
			}
			if in.FunctionResponseTypes != nil {
				m.FunctionResponseTypes = in.FunctionResponseTypes
			}
			if in.FilterCriteria != nil {
				m.FilterCriteria = in.FilterCriteria
			}
			return &lambda.UpdateEventSourceMappingOutput{}, a.scale(m, in.ScalingConfig)
		}
		return nil, notFound("no mapping %s", *in.UUID)
	})
	answer(a.lambda, func(in *lambda.CreateEventSourceMappingInput) (*lambda.CreateEventSourceMappingOutput, error) {
		name, _ := mappings.FunctionName(*in.FunctionName)
		f := a.functions[name]
		if f == nil {
			return nil, notFound("Function not found: %s", name)
		}
		m := &mappingConfiguration{
			UUID: aws.String("new"), EventSourceArn: in.EventSourceArn, FunctionArn: f.FunctionArn, State: aws.String("Enabled"),
			FunctionResponseTypes: in.FunctionResponseTypes, BatchSize: in.BatchSize,
		}
		a.mappings = append(a.mappings, m)
		return &lambda.CreateEventSourceMappingOutput{}, a.scale(m, in.ScalingConfig)
	})
}

func (a *account) scale(m *mappingConfiguration, s *lambdatypes.ScalingConfig) error {
	if s == nil {
		return nil
	}
	if n := aws.ToInt32(s.MaximumConcurrency); n < 2 || n > 1000 {
		return fmt.Errorf("MaximumConcurrency %d is not from 2 to 1000", n)
	}
	if m.ProvisionedPollerConfig != nil {
		return errors.New("MaximumConcurrency and provisioned pollers exclude each other")
	}
	m.ScalingConfig = s
	return nil
}

// fakeCloudWatch answers with alarms, in pages of two, and with ages.
func (a *account) fakeCloudWatch() {
	answer(a.cloudwatch, func(in *cloudwatch.PutMetricAlarmInput) (*cloudwatch.PutMetricAlarmOutput, error) {
		if (in.MetricName == nil) == (len(in.Metrics) == 0) || in.EvaluationPeriods == nil || in.ComparisonOperator == "" {
			return nil, errors.New("one of MetricName and Metrics, EvaluationPeriods and ComparisonOperator are needed")
		}
		if len(in.Metrics) > 0 && (in.Namespace != nil || in.Dimensions != nil || in.Period != nil || in.Unit != "" ||
			in.Statistic != "" || in.ExtendedStatistic != nil) {
			return nil, errors.New("with Metrics there is no Namespace, Dimensions, Period, Unit, Statistic or ExtendedStatistic")
		}
		alarm := &cwtypes.MetricAlarm{}
		text, err := json.Marshal(in)
		if err == nil {
			err = json.Unmarshal(text, alarm) // the members have the same names
		}
		if err != nil {
			return nil, err
		}
		alarm.ActionsEnabled = aws.Bool(in.ActionsEnabled == nil || *in.ActionsEnabled)
		a.metric[*in.AlarmName] = alarm
		return &cloudwatch.PutMetricAlarmOutput{}, nil
	})
	answer(a.cloudwatch, func(in *cloudwatch.EnableAlarmActionsInput) (*cloudwatch.EnableAlarmActionsOutput, error) {
		for _, name := range in.AlarmNames {
			if a.metric[name] == nil {
				return nil, notFound("no alarm %s", name)
			}
			a.metric[name].ActionsEnabled = aws.Bool(true)
		}
		return &cloudwatch.EnableAlarmActionsOutput{}, nil
	})
	answer(a.cloudwatch, a.describeAlarms)
	answer(a.cloudwatch, func(in *cloudwatch.GetMetricDataInput) (*cloudwatch.GetMetricDataOutput, error) {
		q := in.MetricDataQueries[0]
		out := &cloudwatch.GetMetricDataOutput{MetricDataResults: []cwtypes.MetricDataResult{{Id: q.Id, StatusCode: cwtypes.StatusCodeComplete}}}
		if age, ok := a.ages[*q.MetricStat.Metric.Dimensions[0].Value]; ok && *q.MetricStat.Metric.MetricName == "ApproximateAgeOfOldestMessage" {
			end := in.EndTime.Truncate(time.Minute)
			out.MetricDataResults[0].Timestamps = []time.Time{end, end.Add(-time.Minute)}
			out.MetricDataResults[0].Values = []float64{age.Seconds(), age.Seconds() - 60}
		}
		return out, nil
	})
}

func (a *account) describeAlarms(in *cloudwatch.DescribeAlarmsInput) (*cloudwatch.DescribeAlarmsOutput, error) {
	const page = 2
	out := &cloudwatch.DescribeAlarmsOutput{}
	names := slices.Sorted(maps.Keys(a.metric))
	from, _ := strconv.Atoi(aws.ToString(in.NextToken))
	for _, name := range names[from:min(from+page, len(names))] {
		out.MetricAlarms = append(out.MetricAlarms, *a.metric[name])
	}
	if from+page < len(names) {
		out.NextToken = aws.String(strconv.Itoa(from + page))
	} else if slices.Contains(in.AlarmTypes, cwtypes.AlarmTypeCompositeAlarm) {
		out.CompositeAlarms = a.composite
	}
	return out, nil
}
