package cli

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
)

// Of a dead-letter queue of two queues --queue means the messages of one, whose consumer is named; the records of the other queue's
// consumer are others.
func TestQueueIsASource(t *testing.T) {
	bubble(t, func(w *world) {
		policy := `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:orders-dlq","maxReceiveCount":5}`
		if _, err := w.stack.SQS.CreateQueue(w.Context(), &sqs.CreateQueueInput{QueueName: aws.String("returns"), Attributes: map[string]string{"RedrivePolicy": policy}}); err != nil {
			t.Fatal(err)
		}
		for _, source := range []string{"orders", "returns"} {
			attrs := map[string]sqstypes.MessageAttributeValue{}
			for name, value := range map[string]string{
				sqsonce.AttrEventID: source, sqsonce.AttrEventSource: "shop", sqsonce.AttrRejectReason: "declined",
				sqsonce.AttrDeadLetterSource: "arn:aws:sqs:us-east-1:000000000000:" + source,
			} {
				attrs[name] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
			}
			if _, err := w.stack.SQS.SendMessage(w.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(w.stack.QueueURL["orders-dlq"]), MessageBody: aws.String(source), MessageAttributes: attrs}); err != nil {
				t.Fatal(err)
			}
		}
		records := []string{"--consumer", consumer, "--table", "dedup"}
		list := w.run(append([]string{"dlq", "ls", "--messages", "--queue", "orders"}, records...)...)
		if !strings.Contains(list.out, "shop|orders") || strings.Contains(list.out, "shop|returns") || !strings.Contains(list.err, "1 of them came from other queues, and are not shown: --dlq orders-dlq") {
			t.Errorf("%s%s", list.out, list.err)
		}
		if list := w.run(append([]string{"dlq", "ls", "--messages", "--dlq", "orders-dlq"}, records...)...); !strings.Contains(list.out, "shop|orders") || !strings.Contains(list.out, "shop|returns") {
			t.Errorf("%s%s", list.out, list.err)
		}
		got := w.run(append([]string{"dlq", "redrive", "--queue", "orders", "--all", "--unknown", "--yes", "--canary", "0"}, records...)...)
		if left := w.stack.MemSQS().Messages("orders-dlq"); got.code != 0 || len(left) != 1 || left[0].Body != "returns" {
			t.Errorf("exit %d, %v left: %s%s", got.code, left, got.out, got.err)
		}
	})
}

// A variable that is not set is no selection.
func TestEmptySelection(t *testing.T) {
	bubble(t, func(w *world) {
		for _, flag := range []string{"--class", "--id", "--key", "--group"} {
			got := w.run("dlq", "redrive", "--queue", "orders", "--consumer", consumer, "--table", "dedup", "--yes", flag, "")
			if got.code != exitUsage || !strings.Contains(got.err, "is empty") {
				t.Errorf("%s: exit %d: %s", flag, got.code, got.err)
			}
		}
	})
}

// A queue whose messages are hidden is not taken for an empty one.
func TestExitCodeOfHiddenMessages(t *testing.T) {
	bubble(t, func(w *world) {
		url := aws.String(w.stack.QueueURL["orders-dlq"])
		if _, err := w.stack.SQS.SendMessage(w.Context(), &sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String("a")}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.stack.SQS.ReceiveMessage(w.Context(), &sqs.ReceiveMessageInput{QueueUrl: url, VisibilityTimeout: 600}); err != nil {
			t.Fatal(err)
		}
		if got := w.run("dlq", "ls", "--queue", "orders", "--exit-code"); got.code != exitPart || !strings.Contains(got.err, "not all messages were read") {
			t.Errorf("exit %d: %s", got.code, got.err)
		}
	})
}
