package queues

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

// AgeWindow is how old a value of CloudWatch may be: SQS sends none of a queue that nobody has used for hours.
const AgeWindow = 15 * time.Minute

// Age is how old the oldest message of a queue was at a time.
type Age struct {
	Age time.Duration
	At  time.Time // the begin of its minute
}

// Groups is what a fair queue does with its message groups.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
type Groups struct {
	Noisy int       // groups that SQS prefers the others to
	At    time.Time // zero: CloudWatch has no value, as of a queue without groups
	Quiet Age       // of the other groups
}

// Of SQS's metrics in CloudWatch, of which each value costs.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
const (
	oldestMetric = "ApproximateAgeOfOldestMessage"
	noisyMetric  = "ApproximateNumberOfNoisyGroups"
	quietMetric  = "ApproximateAgeOfOldestMessageInQuietGroups"

	mostQueries = 500 // in one call: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
)

// Ages returns the newest values of ApproximateAgeOfOldestMessage, by the names of queues, which are those of the account that has
// the credentials. One that CloudWatch has no value for is not among them. CloudWatch has one value a minute, and each costs.
func Ages(ctx context.Context, c *cloudwatch.Client, names []string) (map[string]Age, error) {
	ages, _, err := AgesAndGroups(ctx, c, names, nil)
	return ages, err
}

// AgesAndGroups returns Ages of names, and the groups of those of grouped that are standard queues.
func AgesAndGroups(ctx context.Context, c *cloudwatch.Client, names, grouped []string) (map[string]Age, map[string]Groups, error) {
	grouped = slices.DeleteFunc(slices.Clone(grouped), host.IsFIFO)
	var queries []types.MetricDataQuery
	add := func(prefix, metric string, names []string) {
		for i, name := range names {
			queries = append(queries, types.MetricDataQuery{Id: aws.String(fmt.Sprintf("%s%d", prefix, i)), MetricStat: &types.MetricStat{
				Period: aws.Int32(60), Stat: aws.String("Maximum"),
				Metric: &types.Metric{
					Namespace: aws.String("AWS/SQS"), MetricName: &metric,
					Dimensions: []types.Dimension{{Name: aws.String("QueueName"), Value: &name}},
				},
			}})
		}
	}
	add("q", oldestMetric, names)
	add("n", noisyMetric, grouped)
	add("a", quietMetric, grouped)
	ages, groups := map[string]Age{}, map[string]Groups{}
	now := time.Now()
	for some := range slices.Chunk(queries, mostQueries) { // their 15 minutes are one page
		out, err := c.GetMetricData(ctx, &cloudwatch.GetMetricDataInput{
			StartTime: aws.Time(now.Add(-AgeWindow)), EndTime: &now, ScanBy: types.ScanByTimestampDescending, MetricDataQueries: some,
		})
		if err != nil {
			return nil, nil, err
		}
		for _, r := range out.MetricDataResults {
			id, of := aws.ToString(r.Id), grouped
			if strings.HasPrefix(id, "q") {
				of = names
			}
			i, err := strconv.Atoi(strings.TrimLeft(id, "qna"))
			if err != nil || i < 0 || i >= len(of) {
				return nil, nil, fmt.Errorf("CloudWatch answers a query %.80q that was not asked", id)
			}
			if len(r.Values) == 0 || len(r.Timestamps) == 0 || r.Values[0] < 0 || r.Values[0] >= math.MaxInt32 {
				continue
			}
			value, at, g := r.Values[0], r.Timestamps[0], groups[of[i]]
			switch age := (Age{time.Duration(value * float64(time.Second)), at}); id[0] {
			case 'q':
				ages[of[i]] = age
				continue
			case 'n':
				g.Noisy, g.At = int(value), at
			case 'a':
				g.Quiet = age
			}
			groups[of[i]] = g
		}
	}
	return ages, groups, nil
}
