package awslambda

import (
	"context"
	"log"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/lambda"
)

// NewHandler returns a handler that runs charge once for each event. A process makes it once, not in each invocation.
func NewHandler(client *dynamodb.Client, charge func(context.Context, Order) error) (sqsonce.Handler, error) {
	store, err := dynamostore.New(client, "dedup") // table
	if err != nil {
		return nil, err
	}
	once, err := dedup.New(store, "billing") // consumer: part of every key
	if err != nil {
		return nil, err
	}
	return once.Handler(sqsonce.JSON(charge)), nil
}

// FunctionOnce is the same function with the handler.
func FunctionOnce(handler sqsonce.Handler) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return func(ctx context.Context, event events.SQSEvent) (response events.SQSEventResponse, _ error) {
		for _, record := range event.Records {
			m := lambda.MessageOf(record)
			m.KillAt, _ = ctx.Deadline() // when Lambda ends the process: no record lease lasts much longer
			if err := handler(ctx, m); sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeDone {
				log.Print(err)
				response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
			}
		}
		return response, nil
	}
}
