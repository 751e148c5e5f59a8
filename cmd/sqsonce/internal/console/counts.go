package console

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// counts are the attributes of a queue that change. SQS's numbers are approximate.
type counts struct {
	Visible, InFlight, Delayed int
	Retention                  time.Duration
}

// Total is all messages of the queue.
func (c counts) Total() int { return c.Visible + c.InFlight + c.Delayed }

var countNames = []types.QueueAttributeName{
	types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	types.QueueAttributeNameApproximateNumberOfMessagesDelayed, types.QueueAttributeNameMessageRetentionPeriod,
}

// readCounts reads both queues: figures of two times would not go together.
func readCounts(ctx context.Context, c *sqs.Client, q Queue) (main, dead counts, err error) {
	if main, err = readCount(ctx, c, q.Name, q.URL); err != nil || q.DLQURL == "" {
		return main, dead, err
	}
	dead, err = readCount(ctx, c, q.DLQName, q.DLQURL)
	return main, dead, err
}

func readCount(ctx context.Context, c *sqs.Client, name, url string) (counts, error) {
	out, err := c.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: countNames})
	if err != nil {
		return counts{}, fmt.Errorf("%s: %w", name, err)
	}
	var numbers [4]int
	for i, attribute := range countNames {
		text := out.Attributes[string(attribute)]
		if numbers[i], err = strconv.Atoi(text); err != nil || numbers[i] < 0 {
			return counts{}, fmt.Errorf("%s: SQS says that its %s is %q", name, attribute, text)
		}
	}
	return counts{numbers[0], numbers[1], numbers[2], time.Duration(numbers[3]) * time.Second}, nil
}
