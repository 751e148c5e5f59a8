package console

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

const (
	// ageEvery is how often CloudWatch is asked: it has one value a minute, and each costs.
	ageEvery   = time.Minute
	ageTimeout = 20 * time.Second
	// ageWindow is how old a value may be: SQS sends none of a queue that nobody has used for hours.
	ageWindow = 15 * time.Minute
)

// ages are those of the oldest messages of a queue and its dead-letter queue.
type ages struct {
	Main, Dead ageValue
	// Shared says that other queues have the dead-letter queue too. SharedErr: that is not known.
	Shared    bool
	SharedErr error
	Read      bool // once at least
}

// ageValue is CloudWatch's ApproximateAgeOfOldestMessage. In a dead-letter queue it counts from the move.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html
type ageValue struct {
	Age time.Duration
	At  time.Time // the begin of its minute; zero: CloudWatch has none
}

// Known says that there is a value.
func (v ageValue) Known() bool { return !v.At.IsZero() }

// readAges asks CloudWatch for all queues in one call, and SQS whose the dead-letter queues are.
func (p *sampler) readAges(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, ageTimeout)
	defer cancel()
	values, err := p.readMetric(ctx)
	p.mu.Lock()
	p.agesErr = err
	p.mu.Unlock()
	for _, q := range p.opts.Queues {
		shared, sharedErr := p.isShared(ctx, q)
		p.mu.Lock()
		a := &p.queues[q.Name].Ages
		if err == nil {
			a.Main, a.Dead = values[q.Name], values[q.DLQName]
		}
		a.Shared, a.SharedErr, a.Read = shared, sharedErr, true
		p.mu.Unlock()
	}
}

func (p *sampler) isShared(ctx context.Context, q Queue) (bool, error) {
	if q.DLQURL == "" {
		return false, nil
	}
	out, err := p.opts.SQS.ListDeadLetterSourceQueues(ctx, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &q.DLQURL})
	if err != nil {
		return false, err
	}
	return len(out.QueueUrls) > 1 || aws.ToString(out.NextToken) != "", nil
}

// readMetric returns the newest values, by the names of the queues.
func (p *sampler) readMetric(ctx context.Context) (map[string]ageValue, error) {
	if p.opts.CloudWatch == nil {
		return nil, nil
	}
	var names []string
	var queries []types.MetricDataQuery
	for _, q := range p.opts.Queues {
		for _, name := range []string{q.Name, q.DLQName} {
			if name == "" {
				continue
			}
			queries = append(queries, types.MetricDataQuery{Id: aws.String(fmt.Sprintf("q%d", len(names))), MetricStat: &types.MetricStat{
				Period: aws.Int32(60), Stat: aws.String("Maximum"),
				Metric: &types.Metric{
					Namespace: aws.String("AWS/SQS"), MetricName: aws.String("ApproximateAgeOfOldestMessage"),
					Dimensions: []types.Dimension{{Name: aws.String("QueueName"), Value: &name}},
				},
			}})
			names = append(names, name)
		}
	}
	now := time.Now()
	in := &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(now.Add(-ageWindow)), EndTime: &now, ScanBy: types.ScanByTimestampDescending, MetricDataQueries: queries,
	}
	out, err := p.opts.CloudWatch.GetMetricData(ctx, in) // 100 queries of 15 minutes are one page
	if err != nil {
		return nil, err
	}
	values := map[string]ageValue{}
	for _, r := range out.MetricDataResults {
		var i int
		if _, err := fmt.Sscanf(aws.ToString(r.Id), "q%d", &i); err != nil || i < 0 || i >= len(names) {
			return nil, fmt.Errorf("CloudWatch answers a query %q that was not asked", aws.ToString(r.Id))
		}
		if len(r.Values) > 0 && len(r.Timestamps) > 0 && r.Values[0] >= 0 && r.Values[0] < math.MaxInt32 {
			values[names[i]] = ageValue{time.Duration(r.Values[0] * float64(time.Second)), r.Timestamps[0]}
		}
	}
	return values, nil
}
