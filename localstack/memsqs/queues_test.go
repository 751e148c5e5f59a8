package memsqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/must"
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
		must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.url}))(x)
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

func (x *fixture) attributes(names ...types.QueueAttributeName) attrs {
	x.Helper()
	out := must.Get(x.c.GetQueueAttributes(x.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &x.url, AttributeNames: names}))(x)
	return out.Attributes
}

func (x *fixture) set(a attrs) error {
	_, err := x.c.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &x.url, Attributes: a})
	return err
}
