package sqstest

import (
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

// send sends a body. On a FIFO queue the message group is the body without its last character, and the deduplication ID is
// the body: "a1" and "a2" are of group a.
func (x *exam) send(q *queue, body string, optFns ...func(*sqs.SendMessageInput)) *sqs.SendMessageOutput {
	out, err := x.trySend(q, body, optFns...)
	if err != nil {
		x.fatalf("SendMessage(%.40q): got error %v, want none", body, err)
	}
	return out
}

func (x *exam) trySend(q *queue, body string, optFns ...func(*sqs.SendMessageInput)) (*sqs.SendMessageOutput, error) {
	in := &sqs.SendMessageInput{QueueUrl: &q.url, MessageBody: &body}
	if q.fifo {
		in.MessageGroupId, in.MessageDeduplicationId = ptr(body[:max(1, len(body)-1)]), &body
	}
	for _, f := range optFns {
		f(in)
	}
	return x.c.SendMessage(x.ctx, in)
}

func (x *exam) sendAll(q *queue, bodies ...string) {
	for _, b := range bodies {
		x.send(q, b)
	}
}

// sendOne sends a message and receives it.
func (x *exam) sendOne(q *queue, body string) types.Message {
	x.send(q, body)
	return x.one(q, body)
}

// receive receives up to n messages with all attributes, without waiting.
func (x *exam) receive(q *queue, n int32, optFns ...func(*sqs.ReceiveMessageInput)) []types.Message {
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &q.url, MaxNumberOfMessages: n, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	}
	for _, f := range optFns {
		f(in)
	}
	out, err := x.c.ReceiveMessage(x.ctx, in)
	if err != nil {
		x.fatalf("ReceiveMessage: got error %v, want none", err)
	}
	return out.Messages
}

func wait(seconds int32) func(*sqs.ReceiveMessageInput) {
	return func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = seconds }
}

func visible(seconds int32) func(*sqs.ReceiveMessageInput) {
	return func(in *sqs.ReceiveMessageInput) { in.VisibilityTimeout = seconds }
}

// want receives messages, and expects these bodies and no others: in this order from a FIFO queue, in any order from a
// standard queue. It repeats the receive until it has as many, since a receive may return fewer than there are. In real time
// it waits, since a message may become visible a little late.
func (x *exam) want(q *queue, bodies ...string) []types.Message { return x.gather(q, bodies) }

// one is want for a single message.
func (x *exam) one(q *queue, body string, optFns ...func(*sqs.ReceiveMessageInput)) types.Message {
	return x.gather(q, []string{body}, optFns...)[0]
}

func (x *exam) gather(q *queue, bodies []string, optFns ...func(*sqs.ReceiveMessageInput)) []types.Message {
	if !x.Virtual {
		optFns = append(slices.Clone(optFns), wait(3))
	}
	var got []types.Message
	for len(got) < len(bodies) {
		next := x.receive(q, 10, optFns...)
		if len(next) == 0 {
			break
		}
		got = append(got, next...)
	}
	x.same(q, got, bodies...)
	return got
}

// take makes one receive of at most n messages, and expects it to return these.
func (x *exam) take(q *queue, n int32, bodies ...string) []types.Message {
	got := x.receive(q, n)
	x.same(q, got, bodies...)
	return got
}

// none expects that nothing can be received.
func (x *exam) none(q *queue, optFns ...func(*sqs.ReceiveMessageInput)) {
	if got := x.receive(q, 10, optFns...); len(got) > 0 {
		x.fatalf("received %q, want nothing", bodiesOf(got))
	}
}

// same expects messages to have these bodies.
func (x *exam) same(q *queue, got []types.Message, bodies ...string) {
	have, want := bodiesOf(got), slices.Clone(bodies)
	if !q.fifo {
		slices.Sort(have)
		slices.Sort(want)
	}
	if !slices.Equal(have, want) {
		x.fatalf("received %q, want %q", have, want)
	}
}

func bodiesOf(messages []types.Message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, str(m.Body))
	}
	return out
}

func (x *exam) tryDelete(q *queue, handle *string) error {
	_, err := x.c.DeleteMessage(x.ctx, &sqs.DeleteMessageInput{QueueUrl: &q.url, ReceiptHandle: handle})
	return err
}

func (x *exam) delete(q *queue, messages ...types.Message) {
	for _, m := range messages {
		if err := x.tryDelete(q, m.ReceiptHandle); err != nil {
			x.fatalf("DeleteMessage of %s: got error %v, want none", str(m.Body), err)
		}
	}
}

func (x *exam) tryVisibility(q *queue, handle *string, seconds int32) error {
	_, err := x.c.ChangeMessageVisibility(x.ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &q.url, ReceiptHandle: handle, VisibilityTimeout: seconds})
	return err
}

func (x *exam) visibility(q *queue, m types.Message, seconds int32) {
	if err := x.tryVisibility(q, m.ReceiptHandle, seconds); err != nil {
		x.fatalf("ChangeMessageVisibility of %s to %d: got error %v, want none", str(m.Body), seconds, err)
	}
}

// received expects the receive count of m.
func (x *exam) received(m types.Message, want int) {
	if got := m.Attributes["ApproximateReceiveCount"]; got != strconv.Itoa(want) {
		x.fatalf("ApproximateReceiveCount of %s: got %s, want %d", str(m.Body), got, want)
	}
}

// attributes returns all attributes of a queue.
func (x *exam) attributes(q *queue) map[string]string {
	out := suite.Get(x.c.GetQueueAttributes(x.ctx, &sqs.GetQueueAttributesInput{QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}}))
	return out.Attributes
}

// has expects attributes of a queue to have these values.
func (x *exam) has(q *queue, want attrs) {
	got := x.attributes(q)
	for name, v := range want {
		if got[name] != v {
			x.fatalf("%s: got %q, want %s", name, got[name], v)
		}
	}
}

func (x *exam) set(q *queue, a attrs) error {
	_, err := x.c.SetQueueAttributes(x.ctx, &sqs.SetQueueAttributesInput{QueueUrl: &q.url, Attributes: a})
	return err
}

func (x *exam) arn(q *queue) string { return x.attributes(q)["QueueArn"] }
