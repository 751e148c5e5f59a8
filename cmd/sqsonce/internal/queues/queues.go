// Package queues reads how full queues are, and how old. It receives nothing.
package queues

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

// Counts are the messages of a queue. SQS's numbers are approximate.
type Counts struct {
	Visible, InFlight, Delayed int
	Retention                  time.Duration // how long the queue keeps a message
}

// Total is all messages of the queue.
func (c Counts) Total() int { return c.Visible + c.InFlight + c.Delayed }

var countNames = []types.QueueAttributeName{
	types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	types.QueueAttributeNameApproximateNumberOfMessagesDelayed, types.QueueAttributeNameMessageRetentionPeriod,
}

// Read returns the counts of a queue, and the ARN of its dead-letter queue: "" if it has none.
func Read(ctx context.Context, c *sqs.Client, url string) (counts Counts, dlqARN string, err error) {
	in := &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: append(slices.Clone(countNames), types.QueueAttributeNameRedrivePolicy)}
	out, err := c.GetQueueAttributes(ctx, in)
	if err != nil {
		return Counts{}, "", err
	}
	retention := 0
	for i, to := range []*int{&counts.Visible, &counts.InFlight, &counts.Delayed, &retention} {
		text := out.Attributes[string(countNames[i])]
		if *to, err = strconv.Atoi(text); err != nil || *to < 0 {
			return Counts{}, "", fmt.Errorf("SQS says that %s is %.80q", countNames[i], text)
		}
	}
	counts.Retention = time.Duration(retention) * time.Second
	if text := out.Attributes[string(types.QueueAttributeNameRedrivePolicy)]; text != "" {
		if dlqARN, _, err = host.ParseRedrivePolicy(text); err != nil {
			return Counts{}, "", err
		}
	}
	return counts, dlqARN, nil
}
