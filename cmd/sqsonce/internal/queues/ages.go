package queues

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// AgeWindow is how old a value of CloudWatch may be: SQS sends none of a queue that nobody has used for hours.
const AgeWindow = 15 * time.Minute

// Age is how old the oldest message of a queue was at a time.
type Age struct {
	Age time.Duration
	At  time.Time // the begin of its minute
}

// Ages returns the newest values of ApproximateAgeOfOldestMessage, by the names of queues, which are those of the account that has
// the credentials. One that CloudWatch has no value for is not among them. CloudWatch has one value a minute, and each costs.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
func Ages(ctx context.Context, c *cloudwatch.Client, names []string) (map[string]Age, error) {
	var queries []types.MetricDataQuery
	for i, name := range names {
		queries = append(queries, types.MetricDataQuery{Id: aws.String(fmt.Sprintf("q%d", i)), MetricStat: &types.MetricStat{
			Period: aws.Int32(60), Stat: aws.String("Maximum"),
			Metric: &types.Metric{
				Namespace: aws.String("AWS/SQS"), MetricName: aws.String("ApproximateAgeOfOldestMessage"),
				Dimensions: []types.Dimension{{Name: aws.String("QueueName"), Value: &name}},
			},
		}})
	}
	now := time.Now()
	in := &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(now.Add(-AgeWindow)), EndTime: &now, ScanBy: types.ScanByTimestampDescending, MetricDataQueries: queries,
	}
	out, err := c.GetMetricData(ctx, in) // 500 queries of 15 minutes are one page
	if err != nil {
		return nil, err
	}
	ages := map[string]Age{}
	for _, r := range out.MetricDataResults {
		var i int
		if _, err := fmt.Sscanf(aws.ToString(r.Id), "q%d", &i); err != nil || i < 0 || i >= len(names) {
			return nil, fmt.Errorf("CloudWatch answers a query %.80q that was not asked", aws.ToString(r.Id))
		}
		if len(r.Values) > 0 && len(r.Timestamps) > 0 && r.Values[0] >= 0 && r.Values[0] < math.MaxInt32 {
			ages[names[i]] = Age{time.Duration(r.Values[0] * float64(time.Second)), r.Timestamps[0]}
		}
	}
	return ages, nil
}
