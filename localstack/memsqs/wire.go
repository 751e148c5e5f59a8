package memsqs

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// call is one request being performed.
type call struct {
	ctx   context.Context // ends with the server
	rule  *fault.Rule
	count int // entries, for the record of calls
}

// operation decodes the input of f and encodes its output. Unknown members are ignored, as AWS does.
func operation[I, O any](f func(c *call, in *I) (*O, error)) awsjson.Operation {
	return func(ctx context.Context, body []byte, rule *fault.Rule) (any, awsjson.Cost, error) {
		c := &call{ctx: ctx, rule: rule, count: 1}
		in := new(I)
		if len(bytes.TrimSpace(body)) > 0 {
			if err := json.Unmarshal(body, in); err != nil {
				return nil, awsjson.Cost{Entries: 1}, newError("SerializationException", err.Error())
			}
		}
		out, err := f(c, in)
		if err != nil {
			return nil, awsjson.Cost{Entries: c.count}, err
		}
		return out, awsjson.Cost{Entries: c.count}, nil
	}
}

type empty struct{}

type messageAttribute struct {
	DataType         string
	StringValue      *string           `json:",omitempty"`
	BinaryValue      []byte            `json:",omitempty"`
	StringListValues []json.RawMessage `json:",omitempty"`
	BinaryListValues []json.RawMessage `json:",omitempty"`
}

// sendEntry is what SendMessage takes besides the queue, and an entry of SendMessageBatch.
type sendEntry struct {
	ID                      string `json:"Id"`
	MessageBody             *string
	DelaySeconds            *int
	MessageAttributes       map[string]messageAttribute
	MessageSystemAttributes map[string]messageAttribute
	MessageDeduplicationID  *string `json:"MessageDeduplicationId"`
	MessageGroupID          *string `json:"MessageGroupId"`
}

type sendInput struct {
	QueueURL string `json:"QueueUrl"`
	sendEntry
}

type sendOutput struct {
	ID                           string `json:"Id,omitempty"`
	MessageID                    string `json:"MessageId"`
	MD5OfMessageBody             string
	MD5OfMessageAttributes       string `json:",omitempty"`
	MD5OfMessageSystemAttributes string `json:",omitempty"`
	SequenceNumber               string `json:",omitempty"`
}

type receiveInput struct {
	QueueURL                    string `json:"QueueUrl"`
	AttributeNames              []string
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
	ReceiveRequestAttemptID     *string `json:"ReceiveRequestAttemptId"`
}

type receiveOutput struct {
	Messages []receivedMessage `json:",omitempty"`
}

type receivedMessage struct {
	MessageID              string `json:"MessageId"`
	ReceiptHandle          string
	MD5OfBody              string
	Body                   string
	Attributes             *systemAttributes           `json:",omitempty"`
	MD5OfMessageAttributes string                      `json:",omitempty"`
	MessageAttributes      map[string]messageAttribute `json:",omitempty"`
}

type deleteEntry struct {
	ID            string `json:"Id"`
	ReceiptHandle *string
}

type deleteInput struct {
	QueueURL string `json:"QueueUrl"`
	deleteEntry
}

type visibilityEntry struct {
	ID                string `json:"Id"`
	ReceiptHandle     *string
	VisibilityTimeout *int
}

type visibilityInput struct {
	QueueURL string `json:"QueueUrl"`
	visibilityEntry
}

type batchInput[E any] struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []E
}

type batchOutput[R any] struct {
	Successful []R          `json:",omitempty"`
	Failed     []batchError `json:",omitempty"`
}

type batchDone struct {
	ID string `json:"Id"`
}

type batchError struct {
	ID          string `json:"Id"`
	SenderFault bool
	Code        string
	Message     string `json:",omitempty"`
}
