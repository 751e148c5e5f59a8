package memsqs

import (
	"cmp"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

// maxInFlight is AWS's quota of messages in flight in a queue.
const maxInFlight = 120_000

// request is what a ReceiveMessage asks for, checked.
type request struct {
	max        int
	visibility time.Duration
	wait       time.Duration
	attempt    string // ReceiveRequestAttemptId, "" for none
	system     []func(*systemAttributes, *message)
	attributes []string
	rule       *fault.Rule
}

func (s *Server) receiveMessage(c *call, in *receiveInput) (*receiveOutput, error) {
	var p *poll
	out := &receiveOutput{}
	c.count = 0
	err := s.update(func(now time.Time) error {
		q, err := s.queue(in.QueueURL, now)
		if err != nil {
			return err
		}
		r, err := q.request(in, c.rule)
		if err != nil {
			return err
		}
		out.Messages, err = q.receive(r, now)
		if err == nil && len(out.Messages) == 0 && r.wait > 0 {
			p = q.wait(r)
		}
		return err
	})
	if p != nil {
		out.Messages, err = s.await(c.ctx, p)
	}
	c.count = len(out.Messages)
	return out, err
}

func (q *queue) request(in *receiveInput, rule *fault.Rule) (*request, error) {
	r := &request{rule: rule, attributes: in.MessageAttributeNames}
	maximum, errMax := within(in.MaxNumberOfMessages, 1, 1, maxReceive, "MaxNumberOfMessages")
	visibility, errVisibility := within(in.VisibilityTimeout, int(q.attrs.Visibility/time.Second), 0, maxVisibility, "VisibilityTimeout")
	wait, errWait := within(in.WaitTimeSeconds, int(q.attrs.Wait/time.Second), 0, maxWait, "WaitTimeSeconds")
	system, errSystem := selectSystem(append(in.AttributeNames, in.MessageSystemAttributeNames...))
	if err := cmp.Or(errMax, errVisibility, errWait, checkToken(in.ReceiveRequestAttemptID, "ReceiveRequestAttemptId"), errSystem); err != nil {
		return nil, err
	}
	r.system = system
	r.max, r.visibility, r.wait = maximum, time.Duration(visibility)*time.Second, time.Duration(wait)*time.Second
	if in.ReceiveRequestAttemptID != nil {
		if !q.attrs.FIFO {
			return nil, notForThisQueue(*in.ReceiveRequestAttemptID, "ReceiveRequestAttemptId")
		}
		r.attempt = *in.ReceiveRequestAttemptID
	}
	return r, nil
}

// receive hands out up to r.max messages, moving those that were tried too often to the dead-letter queue instead. With a
// visibility timeout of 0 a message is visible again when the queue settles, so one receive does not take it twice.
func (q *queue) receive(r *request, now time.Time) ([]receivedMessage, error) {
	if again := q.replay(r, now); again != nil {
		return q.render(again, r), nil
	}
	if q.inFlight >= q.server.maxInFlight {
		if q.attrs.FIFO || r.wait > 0 {
			return nil, nil // AWS answers these with no messages instead of an error
		}
		return nil, newError("OverLimit", "Too many messages in flight.")
	}
	var got []*message
	for len(got) < r.max {
		next := q.shelf.pick(r.max - len(got))
		if len(next) == 0 {
			break
		}
		for _, m := range next {
			if dlq := q.deadLetterQueue(m); dlq != nil {
				q.moveTo(dlq, m, now)
				continue
			}
			q.deliver(m, r.visibility, now)
			got = append(got, m)
		}
	}
	// Rendered before a fault or a timeout of 0 can touch them: the answer is of this delivery.
	out := q.render(got, r)
	q.remember(r, got, now)
	q.spoil(got, r.rule, now)
	return out, nil
}

// deliver counts a receive of m, and hides it until its visibility timeout ends.
func (q *queue) deliver(m *message, visibility time.Duration, now time.Time) {
	m.receives++
	m.tries++
	if m.firstAt.IsZero() {
		m.firstAt = now
	}
	m.receivedAt = now
	m.receipt = q.server.nextSerial()
	q.hide(m, now.Add(visibility))
}
