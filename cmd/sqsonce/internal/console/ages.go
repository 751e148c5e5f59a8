package console

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/queues"
)

const (
	// ageEvery is how often CloudWatch is asked: it has one value a minute, and each costs.
	ageEvery   = time.Minute
	ageTimeout = 20 * time.Second
)

// ages are those of the oldest messages of a queue and its dead-letter queue, where it counts from the move.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html
type ages struct {
	Main, Dead queues.Age // without a time: CloudWatch has none
	// Shared says that other queues have the dead-letter queue too. SharedErr: that is not known.
	Shared    bool
	SharedErr error
	Read      bool // once at least
}

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
func (p *sampler) readMetric(ctx context.Context) (map[string]queues.Age, error) {
	if p.opts.CloudWatch == nil {
		return nil, nil
	}
	var names []string
	for _, q := range p.opts.Queues {
		if names = append(names, q.Name); q.DLQName != "" {
			names = append(names, q.DLQName)
		}
	}
	return queues.Ages(ctx, p.opts.CloudWatch, names)
}
