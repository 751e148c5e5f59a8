package memsqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

const noQueue = "AWS.SimpleQueueService.NonExistentQueue"

func TestDeleteQueueEndsPolls(t *testing.T) {
	standard(t, func(x *fixture) {
		polled := make(chan error)
		go func() {
			_, err := x.c.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{QueueUrl: &x.url, WaitTimeSeconds: 20})
			polled <- err
		}()
		time.Sleep(time.Second)
		_, err := x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.url})
		x.ok(err)
		x.code(<-polled, noQueue)
	})
}

func TestLookups(t *testing.T) {
	standard(t, func(x *fixture) {
		_, err := x.c.GetQueueUrl(x.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("jobs"), QueueOwnerAWSAccountId: aws.String("111111111111")})
		x.code(err, noQueue)
		for url, code := range map[string]string{
			"https://sqs.us-east-1.amazonaws.com/000000000000/nowhere": noQueue, "https://sqs.us-east-1.amazonaws.com/111111111111/jobs": noQueue,
			"jobs": "", "nowhere": noQueue, "jobs:1": "InvalidAddress", "http://127.0.0.1:1/000000000000/jobs": "", "://": "InvalidAddress",
		} {
			x.url = url
			if err := x.try("a"); code == "" {
				x.ok(err)
			} else {
				x.code(err, code)
			}
		}
	})
}

func TestCreatedWithUnknownTarget(t *testing.T) {
	standard(t, func(x *fixture) {
		_, err := x.c.CreateQueue(x.Context(), &sqs.CreateQueueInput{QueueName: aws.String("more"), Attributes: attrs{
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:nowhere","maxReceiveCount":1}`,
		}})
		x.code(err, invalidValue)
	})
}

func TestRetention(t *testing.T) {
	run(t, "jobs", attrs{"MessageRetentionPeriod": "60", "VisibilityTimeout": "90"}, func(x *fixture) {
		x.send("a")
		time.Sleep(30 * time.Second)
		x.send("b")
		m := x.receive(1)[0]
		time.Sleep(30*time.Second - 1)
		if n := len(x.srv.Messages("jobs")); n != 2 {
			x.Errorf("%d messages, want 2", n)
		}
		time.Sleep(time.Nanosecond)
		if n := len(x.srv.Messages("jobs")); n != 1 {
			x.Errorf("%d messages, want 1", n)
		}
		x.code(x.visibility(m, 10), invalidValue) // retention also applies in flight
		x.want("b")
		time.Sleep(30 * time.Second)
		x.want()
		if n := x.attributes("ApproximateNumberOfMessagesNotVisible")["ApproximateNumberOfMessagesNotVisible"]; n != "0" {
			x.Errorf("%s messages in flight, want 0", n)
		}
	})
}
