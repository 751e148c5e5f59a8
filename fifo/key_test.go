package fifo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
)

// A consumer's key is the publisher's deduplication ID in every delivery: the first one, in the dead-letter queue, where SQS
// replaces the MessageDeduplicationId, and after a redrive with a new message ID.
func TestKeyInEveryDelivery(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"ord-42/v3", "legal text, but no dedup ID", "é", strings.Repeat("x", 300)} {
		t.Run(id[:min(len(id), 20)], func(t *testing.T) {
			bubble(t, orders, func(x *fixture) {
				dlq := x.create("orders-dlq.fifo", nil)
				x.setRedrivePolicy("orders-dlq.fifo")
				r, err := x.publisher().Publish(x.Context(), fifo.Event{ID: id, Group: "g", Body: "{}"})
				if err != nil {
					x.Fatal(err)
				}
				want, err := fifo.DedupID("orders", id)
				if err != nil || r.DedupID != want {
					x.Errorf("receipt has %q, want %q (%v)", r.DedupID, want, err)
				}
				check := func(where, url string, dedupID func(m *sqsonce.Message) string) {
					x.Helper()
					m := message(url, x.receive(url, 1)[0])
					key, source, err := m.Key()
					if key != want || source != sqsonce.KeyFromAttribute || err != nil {
						x.Errorf("%s: Key() = %q, %v, %v, want %q", where, key, source, err, want)
					}
					if d := dedupID(m); m.DedupID != d {
						x.Errorf("%s: MessageDeduplicationId is %q, want %q", where, m.DedupID, d)
					}
				}

				check("first delivery", x.url, func(*sqsonce.Message) string { return want })
				time.Sleep(time.Minute)
				x.receive(x.url, 0) // the second receive moves it
				check("in the dead-letter queue", dlq, func(*sqsonce.Message) string { return r.MessageID })
				time.Sleep(time.Minute)
				x.redrive("orders-dlq.fifo")
				time.Sleep(time.Minute)
				m := message(x.url, x.receive(x.url, 1)[0])
				if key, _, err := m.Key(); key != want || err != nil || m.ID == r.MessageID {
					x.Errorf("after a redrive: Key() = %q, %v of message %s, want %q of a new message", key, err, m.ID, want)
				}
			})
		})
	}
}

// The publisher names its source in every message, so that the key is the same in every queue, and another one for another
// producer's event with the same ID. Without the source the key is the queue's.
func TestKeyDoesNotDependOnTheQueue(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		second := x.create("refunds.fifo", nil)
		keyOf := func(url string) (string, sqsonce.KeySource) {
			x.Helper()
			key, source, err := message(url, x.receive(url, 1)[0]).Key()
			if err != nil {
				x.Fatal(err)
			}
			return key, source
		}
		publish := func(url, namespace string) (string, sqsonce.KeySource) {
			x.Helper()
			p, err := fifo.NewPublisher(x.sqs, url, namespace)
			if err != nil {
				x.Fatal(err)
			}
			if _, err := p.Publish(x.Context(), fifo.Event{ID: "7", Group: namespace, Body: "{}"}); err != nil {
				x.Fatal(err)
			}
			return keyOf(url)
		}
		raw := func(url string) (string, sqsonce.KeySource) {
			x.Helper()
			_, err := x.sqs.SendMessage(x.Context(), &sqs.SendMessageInput{
				QueueUrl: &url, MessageBody: aws.String("{}"), MessageGroupId: aws.String("raw"), MessageDeduplicationId: aws.String("raw"),
				MessageAttributes: map[string]sqstypes.MessageAttributeValue{
					sqsonce.AttrEventID: {DataType: aws.String("String"), StringValue: aws.String("7")},
				},
			})
			if err != nil {
				x.Fatal(err)
			}
			return keyOf(url)
		}

		ours, source := publish(x.url, "orders")
		if key, s := publish(second, "orders"); key != ours || source != sqsonce.KeyFromAttribute || s != source {
			x.Errorf("the event in two queues: keys %q of %v and %q of %v, want one key of the attributes", ours, source, key, s)
		}
		if key, _ := publish(x.url, "refunds"); key == ours {
			x.Errorf("event 7 of two producers: the same key %q", key)
		}
		bare, source := raw(x.url)
		if key, s := raw(second); key == bare || bare == ours || source != sqsonce.KeyFromEventID || s != source {
			x.Errorf("event-id alone in two queues: keys %q of %v and %q of %v, want two of the queues", bare, source, key, s)
		}
	})
}

func (x *fixture) setRedrivePolicy(dlq string) {
	x.Helper()
	_, err := x.sqs.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: &x.url,
		Attributes: map[string]string{
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:` + dlq + `","maxReceiveCount":"1"}`,
		},
	})
	if err != nil {
		x.Fatal(err)
	}
}

func (x *fixture) redrive(dlq string) {
	x.Helper()
	_, err := x.sqs.StartMessageMoveTask(x.Context(), &sqs.StartMessageMoveTaskInput{
		SourceArn: aws.String("arn:aws:sqs:us-east-1:000000000000:" + dlq),
	})
	if err != nil {
		x.Fatal(err)
	}
}
