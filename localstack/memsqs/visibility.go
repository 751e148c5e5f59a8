package memsqs

import (
	"fmt"
	"time"
)

func (s *Server) changeVisibility(_ *call, in *visibilityInput) (*empty, error) {
	return &empty{}, s.update(func(now time.Time) error {
		q, err := s.queue(in.QueueURL, now)
		if err != nil {
			return err
		}
		return q.changeVisibility(&in.visibilityEntry, now)
	})
}

func (s *Server) changeVisibilityBatch(c *call, in *batchInput[visibilityEntry]) (*batchOutput[batchDone], error) {
	return runBatch(c, s, in, func(e *visibilityEntry) string { return e.ID }, nil, func(q *queue, e *visibilityEntry, now time.Time) (batchDone, error) {
		return batchDone{e.ID}, q.changeVisibility(e, now)
	})
}

// changeVisibility makes a message in flight visible VisibilityTimeout from now. The whole time in flight, counted from
// the receive, is limited to 12 h; a longer one is refused, not shortened.
func (q *queue) changeVisibility(e *visibilityEntry, now time.Time) error {
	if e.VisibilityTimeout == nil {
		return missingParameter("VisibilityTimeout")
	}
	seconds := *e.VisibilityTimeout
	if seconds < 0 || seconds > maxVisibility {
		return invalidValue(seconds, "VisibilityTimeout", fmt.Sprintf("VisibilityTimeout must be between 0 and %d.", maxVisibility))
	}
	m, newest, err := q.find(e.ReceiptHandle)
	switch {
	case err != nil:
		return err
	case m == nil || !newest && !q.server.opts.LooseHandles:
		return invalidValue(*e.ReceiptHandle, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change.")
	case !m.inFlight() && q.server.opts.LooseHandles:
		return nil
	case !m.inFlight():
		return newError("MessageNotInflight", "The specified message isn't in flight.")
	}
	until := now.Add(time.Duration(seconds) * time.Second)
	if until.Sub(m.receivedAt) > maxVisibility*time.Second {
		return invalidValue(seconds, "VisibilityTimeout", fmt.Sprintf("Total VisibilityTimeout for the message is beyond the limit [%d seconds].", maxVisibility))
	}
	m.changes++
	q.hide(m, until)
	q.advance(now) // a timeout of 0 ends at once
	return nil
}
