package fifo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
)

// A consumer's key is the publisher's deduplication ID in every delivery: the first one, in the dead-letter queue, where SQS
// replaces the MessageDeduplicationId, and after a redrive with a new message ID.
func TestKeyInEveryDelivery(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"ord-42/v3", "legal text, but no dedup ID", "é", strings.Repeat("x", 300)} {
		runIn(t, id[:min(len(id), 20)], orders, func(x *fixture) {
			dlq := testaws.Queue(x, x.sqs, "orders-dlq.fifo", nil)
			x.setRedrivePolicy("orders-dlq.fifo")
			r := must.Get(x.publisher().Publish(x.Context(), fifo.Event{ID: id, Group: "g", Body: "{}"}))(x)
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
	}
}

func (x *fixture) setRedrivePolicy(dlq string) {
	x.Helper()
	must.Get(x.sqs.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: &x.url,
		Attributes: map[string]string{
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:` + dlq + `","maxReceiveCount":"1"}`,
		},
	}))(x)
}

func (x *fixture) redrive(dlq string) {
	x.Helper()
	must.Get(x.sqs.StartMessageMoveTask(x.Context(), &sqs.StartMessageMoveTaskInput{
		SourceArn: aws.String("arn:aws:sqs:us-east-1:000000000000:" + dlq),
	}))(x)
}
