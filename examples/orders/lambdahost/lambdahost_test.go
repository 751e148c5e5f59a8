package lambdahost

import (
	"log/slog"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sqsonce/sqsonce/lambda"
)

// TestClientWithoutADeadLetterQueue: the delay after a failure needs a client, and no dead-letter queue.
func TestClientWithoutADeadLetterQueue(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "https://sqs.us-east-1.amazonaws.com/000000000000/orders-dlq"} {
		var o lambda.Options
		options(slog.New(slog.DiscardHandler), aws.Config{}, url)(&o)
		if o.Client == nil || o.DeadLetterQueue != url {
			t.Errorf("%q: client set: %t, dead-letter queue %q", url, o.Client != nil, o.DeadLetterQueue)
		}
	}
}
