package awslambda

import (
	"context"
	"log"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/lambda"
)

// FunctionOnce is the same function with the handler.
func FunctionOnce(handler sqsonce.Handler) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return func(ctx context.Context, event events.SQSEvent) (response events.SQSEventResponse, _ error) {
		for _, record := range event.Records {
			m := lambda.MessageOf(record)
			m.KillAt, _ = ctx.Deadline() // Lambda ends the process then: the record lease ends 2 s later
			if err := handler(ctx, m); sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeDone {
				log.Print(err)
				response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
			}
		}
		return response, nil
	}
}
