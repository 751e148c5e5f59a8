package fifo

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// entry is an accepted event on its way to its one answer. Fields below the blank line belong to the publisher's mutex;
// while the entry is in flight, attempts and first belong to its request's goroutine.
type entry struct {
	pending *Pending
	lane    *lane
	serial  uint64 // order of acceptance
	message sqstypes.SendMessageBatchRequestEntry
	key     string // the event's key: the dedup ID on a FIFO queue
	size    int64

	group    *group
	due      time.Time // when it need not wait for others any longer
	attempts int
	first    instant // start of the first attempt
	inFlight bool
	unknown  bool  // an attempt may have enqueued it
	lastErr  error // of the last attempt
}

// newEntry checks everything that can be checked without the queue, and freezes what every attempt will send.
func (p *Publisher) newEntry(e Event) (*entry, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	key, err := DedupID(p.namespace, e.ID)
	if err != nil {
		return nil, err
	}
	attributes, size := wireAttributes(p.namespace, &e)
	m := sqstypes.SendMessageBatchRequestEntry{
		MessageBody:       aws.String(e.Body),
		MessageGroupId:    aws.String(e.Group),
		MessageAttributes: attributes,
	}
	if p.fifo {
		m.MessageDeduplicationId = aws.String(key)
	}
	if e.TraceHeader != "" {
		m.MessageSystemAttributes = map[string]sqstypes.MessageSystemAttributeValue{
			string(sqstypes.MessageSystemAttributeNameAWSTraceHeader): {
				DataType: aws.String("String"), StringValue: aws.String(e.TraceHeader),
			},
		}
	}
	return &entry{
		pending: &Pending{event: e.ID, group: e.Group, done: make(chan struct{})},
		message: m,
		key:     key,
		size:    size + int64(len(e.Body)),
	}, nil
}

func (e *entry) receipt(messageID, sequence string) Receipt {
	return Receipt{
		MessageID: messageID,
		Sequence:  sequence,
		DedupID:   aws.ToString(e.message.MessageDeduplicationId),
		Attempts:  e.attempts,
	}
}

// ending returns what to tell the caller of an entry that gets no further attempt: nothing was sent, or nobody knows.
func (e *entry) ending(why error) error {
	if e.unknown {
		return because(ErrUnknownOutcome, why, e.lastErr)
	}
	return because(ErrNotSent, why, e.lastErr)
}
