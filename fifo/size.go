package fifo

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	// maxMessageBytes is the limit of a message, and of all messages of a request together. Both are inclusive and count
	// body, attribute names, types and values.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
	maxMessageBytes = 1 << 20
	// leastLimit is the smallest MaximumMessageSize a queue can have.
	leastLimit = 1 << 10
	// batchMargin is left free in requests of several messages: AWS does not say whether groups and deduplication IDs,
	// 256 bytes a message at most, count towards the limit of a request.
	batchMargin = 4 << 10
)

// sizeLimit is the queue's MaximumMessageSize, asked for when it first matters.
type sizeLimit struct {
	known  atomic.Int64
	asking chan struct{} // holds one token: a mutex could not be waited for under a context
}

func newSizeLimit() sizeLimit { return sizeLimit{asking: make(chan struct{}, 1)} }

// checkSize refuses a message that the queue would refuse. Its error is the context's cause, or a FieldError.
func (p *Publisher) checkSize(ctx context.Context, size int64) error {
	if size <= leastLimit {
		return nil
	}
	limit := int64(maxMessageBytes)
	if size <= maxMessageBytes { // else the queue's own limit no longer matters
		var err error
		if limit, err = p.queueLimit(ctx); err != nil {
			return err
		}
	}
	if size > limit {
		return badField("Event.Body", "%d bytes with attributes, the queue takes %d", size, limit)
	}
	return nil
}

func (p *Publisher) queueLimit(ctx context.Context) (int64, error) {
	if limit := p.limit.known.Load(); limit > 0 {
		return limit, nil
	}
	select {
	case p.limit.asking <- struct{}{}:
		defer func() { <-p.limit.asking }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if limit := p.limit.known.Load(); limit > 0 {
		return limit, nil
	}
	limit, err := p.askLimit(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		// Not asked again: the role may lack sqs:GetQueueAttributes, and SQS itself refuses what is too long for the queue.
		p.opts.Logger.Warn("fifo: MaximumMessageSize is not known, taking 1 MiB", "queue", p.queueURL, "error", err)
		limit = maxMessageBytes
	}
	p.limit.known.Store(limit)
	return limit, nil
}

func (p *Publisher) askLimit(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, p.opts.AttemptTimeout)
	defer cancel()
	const name = sqstypes.QueueAttributeNameMaximumMessageSize
	out, err := p.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       &p.queueURL,
		AttributeNames: []sqstypes.QueueAttributeName{name},
	})
	if err != nil {
		return 0, err
	}
	limit, err := strconv.ParseInt(out.Attributes[string(name)], 10, 64)
	if err != nil {
		return 0, err
	}
	return min(max(limit, leastLimit), maxMessageBytes), nil
}
