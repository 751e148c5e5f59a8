package testworld

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
)

// ProtectTable gives Table what a production table has.
func ProtectTable(t testing.TB, stack *localstack.Stack) {
	t.Helper()
	ctx, table := context.Background(), aws.String(Table)
	protect := func(on bool) {
		must.Get(stack.DynamoDB.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: table, DeletionProtectionEnabled: &on}))(t)
	}
	protect(true)
	t.Cleanup(func() { protect(false) })
	must.Get(stack.DynamoDB.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName: table, PointInTimeRecoverySpecification: &ddbtypes.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	}))(t)
}

// Mapping is an event source mapping of a queue in which nothing is amiss.
func Mapping(queue string) lambdatypes.EventSourceMappingConfiguration {
	return lambdatypes.EventSourceMappingConfiguration{
		UUID: aws.String("1f0c2f6e-0000-4000-8000-000000000001"), EventSourceArn: aws.String("arn:aws:sqs:us-east-1:000000000000:" + queue),
		FunctionArn: aws.String("arn:aws:lambda:us-east-1:000000000000:function:billing"),
		State:       aws.String("Enabled"), BatchSize: aws.Int32(10), LastProcessingResult: aws.String("OK"),
		FunctionResponseTypes: []lambdatypes.FunctionResponseType{lambdatypes.FunctionResponseTypeReportBatchItemFailures},
		ScalingConfig:         &lambdatypes.ScalingConfig{MaximumConcurrency: aws.Int32(10)},
	}
}

// Topic is that of the alarms.
const Topic = "arn:aws:sns:us-east-1:000000000000:pager"

// Alarms are those that a queue and its dead-letter queue need.
func Alarms(queue, dlq string) []cwtypes.MetricAlarm {
	ofQueue := func(queue string) []cwtypes.Dimension {
		return []cwtypes.Dimension{{Name: aws.String("QueueName"), Value: &queue}}
	}
	ofDLQ := func(id, name string) cwtypes.MetricDataQuery {
		return cwtypes.MetricDataQuery{Id: &id, ReturnData: aws.Bool(false), MetricStat: &cwtypes.MetricStat{
			Stat: aws.String("Maximum"), Period: aws.Int32(60),
			Metric: &cwtypes.Metric{Namespace: aws.String("AWS/SQS"), MetricName: &name, Dimensions: ofQueue(dlq)},
		}}
	}
	return []cwtypes.MetricAlarm{
		{
			AlarmName: aws.String("dead letters"), AlarmActions: []string{Topic}, ActionsEnabled: aws.Bool(true),
			EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0), ComparisonOperator: cwtypes.ComparisonOperatorGreaterThanThreshold,
			Metrics: []cwtypes.MetricDataQuery{
				{Id: aws.String("all"), Expression: aws.String("a + b")},
				ofDLQ("a", "ApproximateNumberOfMessagesVisible"), ofDLQ("b", "ApproximateNumberOfMessagesNotVisible"),
			},
		},
		{
			AlarmName: aws.String("age"), AlarmActions: []string{Topic}, ActionsEnabled: aws.Bool(true), Namespace: aws.String("AWS/SQS"), Period: aws.Int32(60),
			MetricName: aws.String("ApproximateAgeOfOldestMessage"), Statistic: cwtypes.StatisticMaximum, Dimensions: ofQueue(queue),
			EvaluationPeriods: aws.Int32(5), Threshold: aws.Float64(900), ComparisonOperator: cwtypes.ComparisonOperatorGreaterThanThreshold,
		},
	}
}
