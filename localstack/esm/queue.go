package esm

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// queue is what a mapping knows of its queue. Lambda checks a mapping when it is created; a visibility timeout that is
// changed while Run runs is not noticed.
type queue struct {
	url, arn, region string
	visibility       time.Duration
}

func lookUp(ctx context.Context, c Client, url string) (queue, error) {
	out, err := c.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(url),
		AttributeNames: []sqstypes.QueueAttributeName{
			sqstypes.QueueAttributeNameQueueArn, sqstypes.QueueAttributeNameVisibilityTimeout,
		},
	})
	if err != nil {
		return queue{}, fmt.Errorf("esm: queue attributes: %w", err)
	}
	arn := out.Attributes[string(sqstypes.QueueAttributeNameQueueArn)]
	parts := strings.Split(arn, ":") // arn:partition:sqs:region:account:name
	if len(parts) != 6 {
		return queue{}, fmt.Errorf("esm: queue attributes: QueueArn is %q", arn)
	}
	seconds, err := strconv.Atoi(out.Attributes[string(sqstypes.QueueAttributeNameVisibilityTimeout)])
	if err != nil {
		return queue{}, fmt.Errorf("esm: queue attributes: VisibilityTimeout: %w", err)
	}
	return queue{url: url, arn: arn, region: parts[3], visibility: time.Duration(seconds) * time.Second}, nil
}

// checkVisibility refuses what CreateEventSourceMapping refuses with an InvalidParameterValueException.
func checkVisibility(cfg Config, q queue) error {
	if q.visibility < cfg.FunctionTimeout {
		return &ConfigError{
			Field:   "FunctionTimeout",
			Problem: fmt.Sprintf("queue visibility timeout: %s is less than function timeout: %s", q.visibility, cfg.FunctionTimeout),
		}
	}
	return nil
}

// receiveVisibility is the visibility timeout to receive with. A message may spend the window in the buffer before its
// invocation starts, so where the queue's own timeout is too short for both, Lambda asks for window + timeout + 30 s.
// 0: the queue's own, as always without a window.
func receiveVisibility(cfg Config, q queue) time.Duration {
	if cfg.BatchingWindow+cfg.FunctionTimeout > q.visibility {
		// Rounded up: the parameter has whole seconds.
		return (cfg.BatchingWindow + cfg.FunctionTimeout + 30*time.Second + time.Second - 1).Truncate(time.Second)
	}
	return 0
}
