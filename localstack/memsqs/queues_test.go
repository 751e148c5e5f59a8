package memsqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
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

func (x *fixture) attributes(names ...types.QueueAttributeName) attrs {
	x.Helper()
	out, err := x.c.GetQueueAttributes(x.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &x.url, AttributeNames: names})
	x.ok(err)
	return out.Attributes
}

func (x *fixture) set(a attrs) error {
	_, err := x.c.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &x.url, Attributes: a})
	return err
}

func TestQueueAttributes(t *testing.T) {
	fifo(t, func(x *fixture) {
		got := x.attributes("All")
		want := attrs{
			"DelaySeconds": "0", "MaximumMessageSize": "1048576", "MessageRetentionPeriod": "345600", "ReceiveMessageWaitTimeSeconds": "0",
			"VisibilityTimeout": "30", "SqsManagedSseEnabled": "true", "QueueArn": arn("jobs.fifo"), "FifoQueue": "true",
			"ContentBasedDeduplication": "false", "DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue",
			"CreatedTimestamp": "946684800", "LastModifiedTimestamp": "946684800",
			"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0", "ApproximateNumberOfMessagesDelayed": "0",
		}
		if d := cmp.Diff(want, got); d != "" {
			x.Errorf("attributes (-want +got):\n%s", d)
		}
		time.Sleep(time.Second)
		x.ok(x.set(attrs{"VisibilityTimeout": "5", "FifoQueue": "true"}))
		if d := cmp.Diff(attrs{"VisibilityTimeout": "5", "LastModifiedTimestamp": "946684801"}, x.attributes("VisibilityTimeout", "LastModifiedTimestamp")); d != "" {
			x.Errorf("attributes (-want +got):\n%s", d)
		}
		x.send("a", "a")
		x.want("a")
		time.Sleep(5 * time.Second)
		x.want("a")
	})
}

func TestApproximateNumbers(t *testing.T) {
	standard(t, func(x *fixture) {
		numbers := func(visible, inFlight, delayed string) {
			x.Helper()
			want := attrs{"ApproximateNumberOfMessages": visible, "ApproximateNumberOfMessagesNotVisible": inFlight, "ApproximateNumberOfMessagesDelayed": delayed}
			if d := cmp.Diff(want, x.attributes("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed")); d != "" {
				x.Errorf("numbers (-want +got):\n%s", d)
			}
		}
		x.send("a")
		x.send("b")
		x.ok(x.try("c", func(in *sqs.SendMessageInput) { in.DelaySeconds = 60 }))
		numbers("2", "0", "1")
		m := x.receive(1)[0]
		numbers("1", "1", "1")
		x.ok(x.visibility(m, 90))
		numbers("1", "1", "1")
		time.Sleep(60 * time.Second)
		numbers("2", "1", "0")
		x.ok(x.delete(m))
		numbers("2", "0", "0")
		x.want("b", "c")
		time.Sleep(30 * time.Second)
		numbers("2", "0", "0")
	})
}

func TestInvalidQueueAttributes(t *testing.T) {
	const name, value = "InvalidAttributeName", "InvalidAttributeValue"
	for _, c := range []struct {
		attribute, value, code string
	}{
		{"VisibilityTimeout", "43201", value}, {"Policy", "{", value}, {"QueueArn", "x", name},
	} {
		standard(t, func(x *fixture) {
			x.code(x.set(attrs{c.attribute: c.value}), c.code)
			_, err := x.c.CreateQueue(x.Context(), &sqs.CreateQueueInput{QueueName: aws.String("new"), Attributes: attrs{c.attribute: c.value}})
			x.code(err, c.code)
		})
	}
	fifo(t, func(x *fixture) {
		x.code(x.set(attrs{"DeduplicationScope": "nonsense"}), value)
	})
}
