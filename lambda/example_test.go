package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/lambda"
)

type order struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

func charge(_ context.Context, o order) error {
	if o.Cents == 0 {
		return errors.New("nothing to charge")
	}
	fmt.Println("charged", o.ID)
	return nil
}

// The main of a function is one call.
func ExampleStart() {
	main := func() { lambda.Start(sqsonce.JSON(charge)) }
	_ = main
}

// A client of your own has settings that the function's environment does not give, and another dead-letter queue than that of
// the redrive policy.
func ExampleStart_client() {
	main := func(handler sqsonce.Handler) {
		client := sqs.NewFromConfig(aws.Config{ /* of config.LoadDefaultConfig */ })
		lambda.Start(handler, func(o *lambda.Options) {
			o.Client = client
			o.DeadLetterQueue = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders-invalid"
			o.Backoff = func(receiveCount int) time.Duration { return time.Duration(receiveCount) * time.Minute }
		})
	}
	_ = main
}

// Wrap returns the function that Lambda calls.
func ExampleWrap() {
	handle, err := lambda.Wrap(sqsonce.JSON(charge), func(o *lambda.Options) { o.Concurrency = 1 })
	if err != nil {
		panic(err)
	}
	record := func(id, body string) events.SQSMessage {
		return events.SQSMessage{MessageId: id, Body: body, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:orders"}
	}
	response, err := handle(context.Background(), events.SQSEvent{Records: []events.SQSMessage{
		record("m1", `{"id":"ord-1","cents":500}`), record("m2", `{"id":"ord-2","cents":0}`),
	}})
	if err != nil {
		panic(err)
	}
	body, err := json.Marshal(response)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(body))

	_, err = handle(context.Background(), events.SQSEvent{})
	fmt.Println(err)
	// Output:
	// charged ord-1
	// {"batchItemFailures":[{"itemIdentifier":"m2"}]}
	// lambda: event has no records: it is not from an SQS event source mapping
}

// A function that makes its response itself. Lambda deletes what the response does not name.
func ExampleMessageOf() {
	handle := sqsonce.JSON(charge)
	function := func(ctx context.Context, event events.SQSEvent) (response events.SQSEventResponse, _ error) {
		for _, record := range event.Records {
			if sqsonce.OutcomeOf(handle(ctx, lambda.MessageOf(record))).Kind != sqsonce.OutcomeDone {
				response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
			}
		}
		return response, nil
	}
	response, _ := function(context.Background(), events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "1", Body: `{"id":"ord-1","cents":250}`},
		{MessageId: "2", Body: `{"id":"ord-2"}`},
	}})
	fmt.Println(response.BatchItemFailures)
	// Output:
	// charged ord-1
	// [{2}]
}
