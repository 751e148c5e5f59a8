// Command bare-sdk is a function of aws-lambda-go that has a client of DynamoDB.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/sqsonce/sqsonce/bench/internal/cold"
)

func main() {
	client := cold.Client()
	lambda.Start(func(ctx context.Context, _ events.SQSEvent) (events.SQSEventResponse, error) {
		_, err := client.ListTables(ctx, nil)
		return events.SQSEventResponse{}, err
	})
}
