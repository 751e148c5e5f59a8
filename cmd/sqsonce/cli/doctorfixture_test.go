package cli

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// deployment is what doctor sees beside SQS and DynamoDB: a function behind a mapping, its role, and alarms.
type deployment struct {
	w       *world
	denied  []string // operations
	mapping lambdatypes.EventSourceMappingConfiguration
	alarms  []cwtypes.MetricAlarm
}

const ordersARN = "arn:aws:sqs:us-east-1:000000000000:orders"

// deploy makes the world a deployment in which all checks are ok.
func (w *world) deploy() *deployment {
	w.Helper()
	ctx, dedup := context.Background(), aws.String("dedup")
	attributes := func(queue string, attributes map[string]string) {
		_, err := w.stack.SQS.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: aws.String(w.stack.QueueURL[queue]), Attributes: attributes})
		w.must(err)
	}
	attributes("orders", map[string]string{"VisibilityTimeout": "180"})
	attributes("orders-dlq", map[string]string{
		"MessageRetentionPeriod": "1209600", "RedriveAllowPolicy": `{"redrivePermission":"byQueue","sourceQueueArns":["` + ordersARN + `"]}`,
	})
	protect := func(on bool) {
		_, err := w.stack.DynamoDB.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: dedup, DeletionProtectionEnabled: &on})
		w.must(err)
	}
	protect(true)
	w.Cleanup(func() { protect(false) })
	_, err := w.stack.DynamoDB.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName: dedup, PointInTimeRecoverySpecification: &ddbtypes.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	w.must(err)
	metric := func(id, name, queue string) cwtypes.MetricDataQuery {
		return cwtypes.MetricDataQuery{Id: &id, MetricStat: &cwtypes.MetricStat{Stat: aws.String("Maximum"), Period: aws.Int32(60), Metric: &cwtypes.Metric{
			Namespace: aws.String("AWS/SQS"), MetricName: &name, Dimensions: []cwtypes.Dimension{{Name: aws.String("QueueName"), Value: &queue}},
		}}, ReturnData: aws.Bool(false)}
	}
	alarm := cwtypes.MetricAlarm{
		AlarmActions: []string{"arn:aws:sns:us-east-1:000000000000:pager"}, ActionsEnabled: aws.Bool(true), EvaluationPeriods: aws.Int32(1),
		ComparisonOperator: cwtypes.ComparisonOperatorGreaterThanThreshold, Threshold: aws.Float64(0),
	}
	depth, age := alarm, alarm
	depth.AlarmName = aws.String("dead letters")
	depth.Metrics = []cwtypes.MetricDataQuery{
		{Id: aws.String("all"), Expression: aws.String("a + b")},
		metric("a", "ApproximateNumberOfMessagesVisible", "orders-dlq"), metric("b", "ApproximateNumberOfMessagesNotVisible", "orders-dlq"),
	}
	age.AlarmName, age.Threshold = aws.String("age"), aws.Float64(900)
	age.Namespace, age.MetricName, age.Statistic, age.Period = aws.String("AWS/SQS"), aws.String("ApproximateAgeOfOldestMessage"), cwtypes.StatisticMaximum, aws.Int32(60)
	age.Dimensions = []cwtypes.Dimension{{Name: aws.String("QueueName"), Value: aws.String("orders")}}
	w.deployed = &deployment{w: w, alarms: []cwtypes.MetricAlarm{depth, age}, mapping: lambdatypes.EventSourceMappingConfiguration{
		UUID: aws.String("1f0c2f6e-0000-4000-8000-000000000001"), EventSourceArn: aws.String(ordersARN), State: aws.String("Enabled"),
		FunctionArn: aws.String("arn:aws:lambda:us-east-1:000000000000:function:billing"), BatchSize: aws.Int32(10), LastProcessingResult: aws.String("OK"),
		FunctionResponseTypes: []lambdatypes.FunctionResponseType{lambdatypes.FunctionResponseTypeReportBatchItemFailures},
		ScalingConfig:         &lambdatypes.ScalingConfig{MaximumConcurrency: aws.Int32(10)},
	}}
	return w.deployed
}

// into sets the clients of the deployment.
func (d *deployment) into(s *services) {
	answered := func(service string) []func(*middleware.Stack) error {
		return []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("answered", func(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (out middleware.InitializeOutput, md middleware.Metadata, err error) {
				out.Result, err = d.answer(service, in.Parameters)
				return out, md, err
			}), middleware.After)
		}}
	}
	s.lambda = lambda.New(lambda.Options{Region: s.region, APIOptions: answered("lambda")})
	s.iam = iam.New(iam.Options{Region: s.region, APIOptions: answered("iam")})
	s.sts = sts.New(sts.Options{Region: s.region, APIOptions: answered("sts")})
	s.cloudwatch = cloudwatch.New(cloudwatch.Options{Region: s.region, APIOptions: answered("cloudwatch")})
}

func (d *deployment) answer(service string, in any) (any, error) {
	operation := strings.TrimSuffix(reflect.TypeOf(in).Elem().Name(), "Input")
	if slices.Contains(d.denied, operation) {
		return nil, &smithy.GenericAPIError{Code: "AccessDenied", Message: "not authorized"}
	}
	resource := "*"
	var out any
	switch in := in.(type) {
	case *lambda.ListEventSourceMappingsInput:
		out = &lambda.ListEventSourceMappingsOutput{EventSourceMappings: []lambdatypes.EventSourceMappingConfiguration{d.mapping}}
		if *in.EventSourceArn != ordersARN {
			out = &lambda.ListEventSourceMappingsOutput{EventSourceMappings: []lambdatypes.EventSourceMappingConfiguration{}}
		}
	case *lambda.GetFunctionConfigurationInput:
		resource = "billing"
		out = &lambda.GetFunctionConfigurationOutput{FunctionName: aws.String("billing"), FunctionArn: d.mapping.FunctionArn, Timeout: aws.Int32(30), Role: aws.String("arn:aws:iam::000000000000:role/billing")}
	case *lambda.GetFunctionConcurrencyInput:
		resource, out = "billing", &lambda.GetFunctionConcurrencyOutput{}
	case *iam.SimulatePrincipalPolicyInput:
		resource = "billing"
		simulated := &iam.SimulatePrincipalPolicyOutput{}
		for _, action := range in.ActionNames {
			simulated.EvaluationResults = append(simulated.EvaluationResults, iamtypes.EvaluationResult{EvalActionName: &action, EvalDecision: iamtypes.PolicyEvaluationDecisionTypeAllowed})
		}
		out = simulated
	case *sts.GetCallerIdentityInput: // needs no permission
		return &sts.GetCallerIdentityOutput{Arn: aws.String(callerARN)}, nil
	case *cloudwatch.DescribeAlarmsInput:
		out = &cloudwatch.DescribeAlarmsOutput{MetricAlarms: d.alarms}
	case *cloudwatch.GetMetricDataInput:
		out = &cloudwatch.GetMetricDataOutput{MetricDataResults: []cwtypes.MetricDataResult{{Id: in.MetricDataQueries[0].Id, StatusCode: cwtypes.StatusCodeComplete}}}
	default:
		return nil, fmt.Errorf("%s has no answer to %s", service, operation)
	}
	if d.w.calls.policy != "" {
		made.Lock()
		made.calls[d.w.calls.policy][service+":"+operation+" "+resource] = true
		made.Unlock()
	}
	return out, nil
}
