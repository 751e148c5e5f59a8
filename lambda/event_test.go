package lambda

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
)

const (
	snsEvent = `{"Records":[{"EventVersion":"1.0","EventSubscriptionArn":"arn:aws:sns:us-east-1:1:t:x","EventSource":"aws:sns",
		"Sns":{"MessageId":"95df01b4","Message":"hello","TopicArn":"arn:aws:sns:us-east-1:1:t"}}]}`
	kinesisEvent = `{"Records":[{"kinesis":{"partitionKey":"k","data":"SGVsbG8=","sequenceNumber":"1"},"eventSource":"aws:kinesis",
		"eventID":"shardId-000000000000:1","eventName":"aws:kinesis:record","eventSourceARN":"arn:aws:kinesis:us-east-1:1:stream/s","awsRegion":"us-east-1"}]}`
	dynamoEvent = `{"Records":[{"eventID":"1","eventName":"INSERT","eventSource":"aws:dynamodb","dynamodb":{"Keys":{"id":{"S":"1"}}},
		"eventSourceARN":"arn:aws:dynamodb:us-east-1:1:table/t/stream/x"}]}`
	s3Event       = `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"}}}]}`
	apiEvent      = `{"version":"2.0","routeKey":"$default","rawPath":"/","body":"{}"}`
	scheduleEvent = `{"version":"0","id":"x","detail-type":"Scheduled Event","source":"aws.events","resources":[],"detail":{}}`
)

// sqsRecord is the JSON of one good record, with overrides.
func sqsRecord(id, source, arn string) string {
	return `{"messageId":"` + id + `","receiptHandle":"h","body":"b","attributes":{},"messageAttributes":{},"eventSource":"` + source + `","eventSourceARN":"` + arn + `"}`
}

func records(rs ...string) string { return `{"Records":[` + strings.Join(rs, ",") + `]}` }

func TestBadEventsAreErrors(t *testing.T) {
	t.Parallel()
	good := sqsRecord("1", "aws:sqs", standardARN)
	for name, body := range map[string]string{
		"empty object":               `{}`,
		"null":                       `null`,
		"no records":                 `{"Records":[]}`,
		"null records":               `{"Records":null}`,
		"SNS":                        snsEvent,
		"Kinesis":                    kinesisEvent,
		"DynamoDB":                   dynamoEvent,
		"S3":                         s3Event,
		"API Gateway":                apiEvent,
		"schedule":                   scheduleEvent,
		"console's test event":       `{"key1":"value1","key2":"value2","key3":"value3"}`,
		"hand-made, a null record":   `{"Records":[null]}`,
		"hand-made, empty record":    `{"Records":[{}]}`,
		"hand-made, body alone":      `{"Records":[{"body":"x"}]}`,
		"hand-made, no ARN":          records(sqsRecord("1", "aws:sqs", "")),
		"hand-made, ARN of a topic":  records(sqsRecord("1", "aws:sqs", "arn:aws:sns:us-east-1:1:t")),
		"hand-made, a URL for ARN":   records(sqsRecord("1", "aws:sqs", "https://sqs.us-east-1.amazonaws.com/1/jobs")),
		"no message ID":              records(sqsRecord("", "aws:sqs", standardARN)),
		"no message ID, the last":    records(good, sqsRecord("", "aws:sqs", standardARN)),
		"no event source":            records(sqsRecord("1", "", standardARN)),
		"event source in capitals":   records(sqsRecord("1", "AWS:SQS", standardARN)),
		"another service's, in SQS'": records(good, sqsRecord("2", "aws:sns", standardARN)),
		"two queues":                 records(good, sqsRecord("2", "aws:sqs", fifoARN)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e events.SQSEvent
			if err := json.Unmarshal([]byte(body), &e); err != nil {
				t.Fatalf("the runtime would refuse the event itself: %v", err)
			}
			f := wrap(t, func(context.Context, *sqsonce.Message) error {
				t.Error("a handler ran")
				return nil
			})
			r, err := f(t.Context(), e)
			if err == nil || !strings.HasPrefix(err.Error(), "lambda: ") {
				t.Errorf("got error %v, want one of the package", err)
			}
			if r.BatchItemFailures == nil || len(r.BatchItemFailures) > 0 {
				t.Errorf("got %#v beside the error, want an empty list", r)
			}
		})
	}
}

// TestAnswerIsNeverNull: Lambda takes null for success, but so it takes a misspelt key; [] is what was meant.
func TestAnswerIsNeverNull(t *testing.T) {
	t.Parallel()
	r, err := wrap(t, fails(nil))(t.Context(), batch("1"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(r)
	if want := `{"batchItemFailures":[]}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}
