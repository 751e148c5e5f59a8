package loop

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// Work takes the place of ConsumeOnce.
func Work(ctx context.Context, client *sqs.Client, queueURL string, handler sqsonce.Handler) error {
	w, err := sqsworker.New(client, queueURL, handler)
	if err != nil {
		return err
	}
	return w.Run(ctx) // blocks; nil after a clean stop
}
