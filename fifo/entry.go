package fifo

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// entry is an accepted event until it has its result. The fields above the blank line do not change. The others belong to
// the publisher's mutex; but while the entry is in flight, attempts, started and began belong to the goroutine of its request.
type entry struct {
	pending *Pending
	lane    *lane
	serial  uint64 // order of acceptance
	event   Event  // what every attempt sends
	key     string // the event's key: the deduplication ID on a FIFO queue
	keyHash keyHash
	size    int64

	group    *group
	due      time.Time // end of its linger
	attempts int
	started  time.Time // start of the first attempt
	began    instant   // start of the last attempt
	inFlight bool
	unknown  bool    // an attempt has an unknown outcome: the event may be in the queue
	copies   int     // attempts with an unknown outcome: on a standard queue each may have put a copy into it
	first    instant // start of the first attempt with an unknown outcome, and so of the window
	lastErr  error   // of the last attempt
}

// newEntry checks all that can be checked without the queue, and copies what every attempt sends. Each attempt builds the
// SQS message from it: the message takes three times the memory of the event, and thousands may wait.
func (p *Publisher) newEntry(e Event) (*entry, error) {
	if err := e.validate(p.fifo); err != nil {
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
		keyHash: hashKey(key),
		size:    e.size(p.namespace),
	}, nil
}

// message returns what an attempt sends for the entry at a position of its request.
func (p *Publisher) message(e *entry, position int) sqstypes.SendMessageBatchRequestEntry {
	m := sqstypes.SendMessageBatchRequestEntry{
		Id:                host.EntryID(position),
		MessageBody:       &e.event.Body,
		MessageAttributes: make(map[string]sqstypes.MessageAttributeValue, len(e.event.Attributes)+3),
	}
	for name, a := range e.event.sentAttributes(p.namespace) {
		m.MessageAttributes[name] = attributeValue(a)
	}
	if e.event.Group != "" {
		m.MessageGroupId = &e.event.Group
	}
	if p.fifo {
		m.MessageDeduplicationId = &e.key
	}
	if e.event.TraceHeader != "" {
		m.MessageSystemAttributes = map[string]sqstypes.MessageSystemAttributeValue{
			string(sqstypes.MessageSystemAttributeNameAWSTraceHeader): {
				DataType: aws.String("String"), StringValue: &e.event.TraceHeader,
			},
		}
	}
	return m
}

func attributeValue(a sqsonce.Attribute) sqstypes.MessageAttributeValue {
	v := sqstypes.MessageAttributeValue{DataType: &a.Type}
	if isBinary(a) {
		v.BinaryValue = a.Binary
	} else {
		v.StringValue = &a.String
	}
	return v
}

func (p *Publisher) receipt(e *entry, r attemptResult) Receipt {
	receipt := Receipt{MessageID: r.messageID, Sequence: r.sequence, Attempts: e.attempts}
	if p.fifo {
		receipt.DedupID = e.key
	}
	return receipt
}

// finalError returns the error of an entry that gets no further attempt: ErrUnknownOutcome if an attempt may have put it
// into the queue, else ErrNotSent.
func (e *entry) finalError(why error) error {
	if e.unknown {
		return because(ErrUnknownOutcome, why, e.lastErr)
	}
	return because(ErrNotSent, why, e.lastErr)
}
