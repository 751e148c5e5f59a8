// Command lambda runs the orders handler as a Lambda function behind an SQS event source mapping. The handler is that of the
// command worker.
//
// Environment variables, with their defaults:
//
//	DEDUP_TABLE              DynamoDB table of the records
//	LEDGER_TABLE             DynamoDB table of the ledger
//	CONSUMER                 orders
//	CALLS                    file that stands for an external system; none
//	UNKNOWN_SKUS             file of the articles that the external system does not know; it knows all
//	DEAD_LETTER_QUEUE        URL of the queue for rejected messages; that of the queue's redrive policy
//	POWERTOOLS_SERVICE_NAME  dimension "service" of the metrics; the function's name, which the alarms of template.yaml expect
//
// and those of the AWS SDK.
package main

import (
	"os"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/examples/orders/lambdahost"
)

func main() {
	log := lambdacontext.NewLogger()
	err := lambdahost.Run(log, func(cfg aws.Config, c orders.Config) (sqsonce.Handler, error) {
		return orders.NewHandler(dynamodb.NewFromConfig(cfg), c)
	})
	log.Error("lambda has failed to start", "error", err)
	os.Exit(1)
}
