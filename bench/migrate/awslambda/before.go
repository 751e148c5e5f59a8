// Package awslambda moves a function with hand-made partial batch responses to sqsonce: docs/migrate.md shows its steps.
package awslambda

import (
	"context"
	"encoding/json"
	"log"

	"github.com/aws/aws-lambda-go/events"
	"github.com/sqsonce/sqsonce/bench/migrate"
)

// Order is the body of a message.
type Order = migrate.Order

// Function is what lambda.Start of aws-lambda-go runs.
func Function(charge func(context.Context, Order) error) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return func(ctx context.Context, event events.SQSEvent) (response events.SQSEventResponse, _ error) {
		for _, record := range event.Records {
			var o Order
			err := json.Unmarshal([]byte(record.Body), &o)
			if err == nil {
				err = charge(ctx, o)
			}
			if err != nil {
				log.Print(err)
				response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
			}
		}
		return response, nil
	}
}
