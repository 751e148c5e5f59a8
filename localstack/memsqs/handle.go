package memsqs

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"
)

// A receipt handle identifies a queue, one copy of a message in it and one receive of that copy. As on AWS it is opaque to
// clients. It ends with a checksum: a handle that this server did not issue is an error.
const handleSize = 3*8 + 16

func (q *queue) handle(m *message) string {
	b := make([]byte, 0, handleSize)
	for _, n := range []uint64{q.serial, m.serial, m.receipt} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(b)
	return base64.StdEncoding.EncodeToString(append(b, sum[:16]...))
}

// findByHandle returns the message of a receipt handle, or nil if the message is deleted, and whether the handle is the
// newest one of the message.
func (q *queue) findByHandle(handle *string) (m *message, newest bool, err error) {
	if handle == nil || *handle == "" {
		return nil, false, missingParameter("ReceiptHandle")
	}
	b, err := base64.StdEncoding.DecodeString(*handle)
	if err != nil || len(b) != handleSize {
		return nil, false, invalidHandle(*handle)
	}
	sum := sha256.Sum256(b[:handleSize-16])
	if string(sum[:16]) != string(b[handleSize-16:]) || binary.BigEndian.Uint64(b) != q.serial {
		return nil, false, invalidHandle(*handle)
	}
	m = q.messages[binary.BigEndian.Uint64(b[8:])]
	return m, m != nil && m.receipt == binary.BigEndian.Uint64(b[16:]), nil
}

type deleteEntry struct {
	ID            string `json:"Id"`
	ReceiptHandle *string
}

type deleteInput struct {
	QueueURL string `json:"QueueUrl"`
	deleteEntry
}

func (s *Server) deleteMessage(_ *call, in *deleteInput) (*empty, error) {
	return &empty{}, s.withQueue(in.QueueURL, func(q *queue, now time.Time) error {
		return q.deleteByHandle(in.ReceiptHandle, now)
	})
}

func (s *Server) deleteMessageBatch(c *call, in *batchInput[deleteEntry]) (*batchOutput[batchDone], error) {
	return runBatch(c, s, in, func(e *deleteEntry) string { return e.ID }, nil, func(q *queue, e *deleteEntry, now time.Time) (batchDone, error) {
		return batchDone{e.ID}, q.deleteByHandle(e.ReceiptHandle, now)
	})
}

// deleteByHandle deletes the message of a receipt handle. If the message is already deleted, it succeeds.
//
// A standard queue accepts every handle that it issued. The newest one deletes the message, even after its visibility
// timeout; an older one succeeds and deletes nothing. A FIFO queue refuses an older handle, and any handle after the
// visibility timeout, because another receive may already have messages of the group.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html
func (q *queue) deleteByHandle(handle *string, now time.Time) error {
	m, newest, err := q.findByHandle(handle)
	switch {
	case err != nil:
		return err
	case m == nil:
		return nil
	case q.attrs.FIFO && (!newest || !m.hidden):
		return invalidValue(*handle, "ReceiptHandle", "The receipt handle has expired.")
	case newest:
		q.remove(m, now)
	}
	return nil
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

func (s *Server) changeVisibility(_ *call, in *visibilityInput) (*empty, error) {
	return &empty{}, s.withQueue(in.QueueURL, func(q *queue, now time.Time) error {
		return q.changeVisibility(&in.visibilityEntry, now)
	})
}

func (s *Server) changeVisibilityBatch(c *call, in *batchInput[visibilityEntry]) (*batchOutput[batchDone], error) {
	return runBatch(c, s, in, func(e *visibilityEntry) string { return e.ID }, nil, func(q *queue, e *visibilityEntry, now time.Time) (batchDone, error) {
		return batchDone{e.ID}, q.changeVisibility(e, now)
	})
}

// changeVisibility sets the visibility timeout of a message in flight, counted from now. The time in flight, counted from
// the receive, is at most 12 h: a longer timeout is an error and is not shortened. See Options.StrictHandles for handles whose
// visibility timeout has ended, or that a later receive has replaced.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html
func (q *queue) changeVisibility(e *visibilityEntry, now time.Time) error {
	if e.VisibilityTimeout == nil {
		return missingParameter("VisibilityTimeout")
	}
	seconds := *e.VisibilityTimeout
	if seconds < 0 || seconds > maxVisibility {
		return invalidValue(seconds, "VisibilityTimeout", fmt.Sprintf("VisibilityTimeout must be between 0 and %d.", maxVisibility))
	}
	m, newest, err := q.findByHandle(e.ReceiptHandle)
	switch {
	case err != nil:
		return err
	case m == nil || !newest && q.server.opts.StrictHandles:
		return invalidValue(*e.ReceiptHandle, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change.")
	case !m.inFlight() && q.server.opts.StrictHandles:
		return newError("MessageNotInflight", "The specified message isn't in flight.")
	case !m.inFlight():
		return nil
	}
	until := now.Add(time.Duration(seconds) * time.Second)
	if until.Sub(m.receivedAt) > maxVisibility*time.Second {
		return invalidValue(seconds, "VisibilityTimeout", fmt.Sprintf("Total VisibilityTimeout for the message is beyond the limit [%d seconds].", maxVisibility))
	}
	m.changes++
	q.hide(m, until, now)
	q.advance(now) // for a timeout of 0
	return nil
}
