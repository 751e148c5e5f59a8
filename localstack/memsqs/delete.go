package memsqs

import "time"

func (s *Server) deleteMessage(_ *call, in *deleteInput) (*empty, error) {
	return &empty{}, s.update(func(now time.Time) error {
		q, err := s.queue(in.QueueURL, now)
		if err != nil {
			return err
		}
		return q.deleteByHandle(in.ReceiptHandle)
	})
}

func (s *Server) deleteMessageBatch(c *call, in *batchInput[deleteEntry]) (*batchOutput[batchDone], error) {
	return runBatch(c, s, in, func(e *deleteEntry) string { return e.ID }, nil, func(q *queue, e *deleteEntry, _ time.Time) (batchDone, error) {
		return batchDone{e.ID}, q.deleteByHandle(e.ReceiptHandle)
	})
}

// deleteByHandle deletes what a receipt handle names. A message that is gone is deleted: success.
//
// A standard queue takes any handle it issued: the newest deletes, also after its visibility timeout; an older one
// succeeds and deletes nothing. A FIFO queue refuses both, since another receive may have, or may by now get, the group.
func (q *queue) deleteByHandle(handle *string) error {
	m, newest, err := q.find(handle)
	switch {
	case err != nil:
		return err
	case m == nil:
		return nil
	case q.attrs.FIFO && (!newest || !m.hidden):
		return invalidValue(*handle, "ReceiptHandle", "The receipt handle has expired.")
	case newest:
		q.remove(m)
	}
	return nil
}
