package fifo

import (
	"strconv"
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
	event   Event  // what every attempt sends
	key     string // the event's key: the dedup ID on a FIFO queue
	size    int64

	group    *group
	guardKey guardKey
	due      time.Time // when it need not wait for others any longer
	attempts int
	first    instant // start of the first attempt
	inFlight bool
	unknown  bool  // an attempt may have enqueued it
	lastErr  error // of the last attempt
}

// newEntry checks everything that can be checked without the queue, and freezes what every attempt will send. The message
// itself is made by each attempt: it is three times as large as the event, and thousands may wait.
func (p *Publisher) newEntry(e Event) (*entry, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	key, err := DedupID(p.namespace, e.ID)
	if err != nil {
		return nil, err
	}
	e.Attributes = cloneAttributes(e.Attributes)
	return &entry{
		pending: &Pending{event: e.ID, group: e.Group, done: make(chan struct{})},
		event:   e,
		key:     key,
		size:    attributesSize(p.namespace, &e) + int64(len(e.Body)),
	}, nil
}

// message is what an attempt sends for an entry, as the one at that position of its request.
func (p *Publisher) message(e *entry, position int) sqstypes.SendMessageBatchRequestEntry {
	m := sqstypes.SendMessageBatchRequestEntry{
		Id:                aws.String(strconv.Itoa(position)),
		MessageBody:       &e.event.Body,
		MessageGroupId:    &e.event.Group,
		MessageAttributes: wireAttributes(&p.namespace, &e.event),
	}
	if p.fifo {
		m.MessageDeduplicationId = &e.key
	}
	if e.event.TraceHeader != "" {
		m.MessageSystemAttributes = map[string]sqstypes.MessageSystemAttributeValue{
			string(sqstypes.MessageSystemAttributeNameAWSTraceHeader): {
				DataType: typeString, StringValue: &e.event.TraceHeader,
			},
		}
	}
	return m
}

func (p *Publisher) receipt(e *entry, a answer) Receipt {
	r := Receipt{MessageID: a.messageID, Sequence: a.sequence, Attempts: e.attempts}
	if p.fifo {
		r.DedupID = e.key
	}
	return r
}

// ending returns what to tell the caller of an entry that gets no further attempt: nothing was sent, or nobody knows.
func (e *entry) ending(why error) error {
	if e.unknown {
		return because(ErrUnknownOutcome, why, e.lastErr)
	}
	return because(ErrNotSent, why, e.lastErr)
}
