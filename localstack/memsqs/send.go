package memsqs

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// sendEntry is the input of SendMessage without the queue, and an entry of SendMessageBatch.
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

func (s *Server) sendMessage(c *call, in *sendInput) (*sendOutput, error) {
	var out *sendOutput
	err := s.withQueue(in.QueueURL, func(q *queue, now time.Time) error {
		if q.attrs.FIFO && in.MessageGroupID == nil {
			return missingParameter("MessageGroupId")
		}
		err := q.checkDedupID(&in.sendEntry)
		if err != nil {
			return err
		}
		out, err = q.send(&in.sendEntry, c.trace, now)
		return err
	})
	return out, err
}

func (s *Server) sendMessageBatch(c *call, in *batchInput[sendEntry]) (*batchOutput[sendOutput], error) {
	size := 0
	for i := range in.Entries {
		size += in.Entries[i].size()
	}
	return runBatch(c, s, in, func(e *sendEntry) string { return e.ID }, func(q *queue) error {
		if size > maxMessageSize {
			return newError("BatchRequestTooLong", fmt.Sprintf("Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxMessageSize, size))
		}
		// For these two mistakes AWS refuses the whole request, not the entry.
		for i := range in.Entries {
			e := &in.Entries[i]
			if q.attrs.FIFO && e.MessageGroupID == nil {
				return invalidParameter("The request must contain the parameter MessageGroupId.")
			}
			if err := q.checkDedupID(e); err != nil {
				return err
			}
		}
		return nil
	}, func(q *queue, e *sendEntry, now time.Time) (sendOutput, error) {
		out, err := q.send(e, c.trace, now)
		if err != nil {
			return sendOutput{}, err
		}
		out.ID = e.ID
		return *out, nil
	})
}

func (e *sendEntry) size() int {
	n := sizeOfAttributes(e.MessageAttributes) // system attributes do not count
	if e.MessageBody != nil {
		n += len(*e.MessageBody)
	}
	return n
}

func (q *queue) checkDedupID(e *sendEntry) error {
	if q.attrs.FIFO && e.MessageDeduplicationID == nil && !q.attrs.ContentBasedDeduplication {
		return invalidParameter("The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
	}
	return nil
}

// send checks one entry and stores its message. trace is the request's trace header, for messages without one of their own.
// https://docs.aws.amazon.com/xray/latest/devguide/xray-services-sqs.html
func (q *queue) send(e *sendEntry, trace string, now time.Time) (*sendOutput, error) {
	if err := q.checkEntry(e); err != nil {
		return nil, err
	}
	delay := q.attrs.Delay
	if e.DelaySeconds != nil && !q.attrs.FIFO {
		delay = time.Duration(*e.DelaySeconds) * time.Second
	}
	m := &message{
		id: q.server.newID(), body: *e.MessageBody, md5: md5Hex(*e.MessageBody), attrs: e.MessageAttributes, trace: trace,
		sentAt: now, enqueuedAt: now, visibleAt: now.Add(delay),
	}
	if t, ok := e.MessageSystemAttributes[traceHeader]; ok {
		m.trace = *t.StringValue
	}
	if e.MessageGroupID != nil {
		m.group = *e.MessageGroupID
	}
	if q.attrs.FIFO {
		if e.MessageDeduplicationID != nil {
			m.dedupID = *e.MessageDeduplicationID
		} else {
			m.dedupID = contentDedupID(m.body)
		}
	}
	q.insertOnce(m, now)
	return &sendOutput{
		MessageID: m.id, MD5OfMessageBody: m.md5, SequenceNumber: m.seq,
		MD5OfMessageAttributes:       md5OfAttributes(e.MessageAttributes),
		MD5OfMessageSystemAttributes: md5OfAttributes(e.MessageSystemAttributes),
	}, nil
}

// newID returns a message ID: a random UUID that depends on Options.Seed.
func (s *Server) newID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], s.rng.Uint64())
	binary.BigEndian.PutUint64(b[8:], s.rng.Uint64())
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4, RFC 9562
	id := hex.EncodeToString(b[:])
	return id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]
}
