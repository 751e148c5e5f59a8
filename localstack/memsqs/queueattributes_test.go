package memsqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
)

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
