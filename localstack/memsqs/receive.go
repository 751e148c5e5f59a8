package memsqs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

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
	Attributes             map[string]string           `json:",omitempty"`
	MD5OfMessageAttributes string                      `json:",omitempty"`
	MessageAttributes      map[string]messageAttribute `json:",omitempty"`
}

// receiveRequest is a checked ReceiveMessage with the defaults of its queue.
type receiveRequest struct {
	max        int
	visibility time.Duration
	wait       time.Duration
	attempt    string   // ReceiveRequestAttemptId, "" for none
	system     []string // names of system attributes
	attributes []string // names of message attributes
	rule       *fault.Rule
}

func (s *Server) receiveMessage(c *call, in *receiveInput) (*receiveOutput, error) {
	var p *poll
	out := &receiveOutput{}
	c.entries = 0
	err := s.withQueue(in.QueueURL, func(q *queue, now time.Time) error {
		r, err := q.checkReceive(in, c.rule)
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
	c.entries = len(out.Messages)
	return out, err
}

func (q *queue) checkReceive(in *receiveInput, rule *fault.Rule) (*receiveRequest, error) {
	r := &receiveRequest{rule: rule, attributes: in.MessageAttributeNames}
	maximum, errMax := intParameter(in.MaxNumberOfMessages, 1, 1, maxReceive, "MaxNumberOfMessages")
	visibility, errVisibility := intParameter(in.VisibilityTimeout, int(q.attrs.Visibility/time.Second), 0, maxVisibility, "VisibilityTimeout")
	wait, errWait := intParameter(in.WaitTimeSeconds, int(q.attrs.Wait/time.Second), 0, maxWait, "WaitTimeSeconds")
	if errWait != nil {
		errWait = invalidValue(*in.WaitTimeSeconds, "WaitTimeSeconds", fmt.Sprintf("Must be >= 0 and <= %d, if provided.", maxWait))
	}
	system, errSystem := checkSystemNames(append(in.AttributeNames, in.MessageSystemAttributeNames...))
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

// receive returns up to r.max messages. Messages that reached their maxReceiveCount it moves to the dead-letter queue. A
// message received with a visibility timeout of 0 becomes visible in the next call of advance, after this receive, so one
// receive does not return it twice.
func (q *queue) receive(r *receiveRequest, now time.Time) ([]receivedMessage, error) {
	if again := q.replayAttempt(r, now); again != nil {
		return q.render(again, r), nil
	}
	if q.inFlight >= q.server.maxInFlight {
		if q.attrs.FIFO || r.wait > 0 {
			return nil, nil // AWS returns no messages and no error
		}
		return nil, newError("OverLimit", "Too many messages in flight.")
	}
	var got []*message
	for len(got) < r.max {
		next := q.order.next(r.max-len(got), now)
		if len(next) == 0 {
			break
		}
		for _, m := range next {
			if dlq := q.deadLetterQueue(m); dlq != nil {
				q.moveToDeadLetterQueue(dlq, m, now)
				continue
			}
			q.deliver(m, r.visibility, now)
			got = append(got, m)
		}
	}
	// Before a fault or a visibility timeout of 0 changes the messages: the response shows their state at this receive.
	out := q.render(got, r)
	q.recordAttempt(r, got, now)
	q.injectReceiveFaults(got, r.rule, now)
	return out, nil
}

// deliver counts a receive of m, and hides it until its visibility timeout ends.
func (q *queue) deliver(m *message, visibility time.Duration, now time.Time) {
	m.receives++
	m.queueReceives++
	if m.firstAt.IsZero() {
		m.firstAt = now
	}
	m.receivedAt = now
	m.receipt = q.server.nextSerial()
	q.hide(m, now.Add(visibility), now)
}

func (q *queue) render(got []*message, r *receiveRequest) []receivedMessage {
	out := make([]receivedMessage, 0, len(got))
	for _, m := range got {
		attrs := selectAttributes(m.attrs, r.attributes)
		out = append(out, receivedMessage{
			MessageID: m.id, ReceiptHandle: q.handle(m), Body: m.body, MD5OfBody: m.md5,
			Attributes: selectSystem(m, r.system), MessageAttributes: attrs, MD5OfMessageAttributes: md5OfAttributes(attrs),
		})
	}
	return out
}

// selectAttributes returns the attributes that a receive requested: by name, by "prefix.*", or all by "All", ".*" or "*".
func selectAttributes(attrs map[string]messageAttribute, names []string) map[string]messageAttribute {
	if len(attrs) == 0 || len(names) == 0 {
		return nil
	}
	out := map[string]messageAttribute{}
	for name, a := range attrs {
		for _, want := range names {
			prefix, wild := strings.CutSuffix(want, ".*")
			if want == "All" || want == "*" || want == name || wild && strings.HasPrefix(name, prefix) {
				out[name] = a
				break
			}
		}
	}
	return out
}

// poll is a waiting ReceiveMessage. A message that becomes receivable is given to the oldest poll of its queue, even if
// the client of that poll has cancelled it. AWS does the same: the message then stays hidden for its visibility timeout.
type poll struct {
	q    *queue
	r    *receiveRequest
	got  []receivedMessage
	err  error
	done chan struct{} // closed when got or err is set
}

// wait adds a poll to the queue. The caller has the server's lock, and calls await after it has released the lock.
func (q *queue) wait(r *receiveRequest) *poll {
	p := &poll{q: q, r: r, done: make(chan struct{})}
	q.polls = append(q.polls, p)
	q.markChanged() // to set the timer
	return p
}

// await returns the messages given to a poll, or none when its wait time or the server ends.
func (s *Server) await(ctx context.Context, p *poll) ([]receivedMessage, error) {
	t := time.NewTimer(p.r.wait)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
	case <-ctx.Done():
	}
	err := s.update(func(now time.Time) error {
		if i := slices.Index(p.q.polls, p); i >= 0 {
			p.q.servePolls(now) // a message may become visible at the very moment the wait ends
		}
		if i := slices.Index(p.q.polls, p); i >= 0 {
			p.q.polls = slices.Delete(p.q.polls, i, i+1)
			p.q.markChanged()
		}
		return p.err
	})
	return p.got, err
}

// servePolls gives receivable messages to the waiting polls, oldest poll first. Then it sets the timer for when the next
// hidden message becomes visible.
func (q *queue) servePolls(now time.Time) {
	q.advance(now)
	for len(q.polls) > 0 {
		p := q.polls[0]
		if q.deleted {
			p.err = queueDoesNotExist()
		} else if p.got, p.err = q.receive(p.r, now); len(p.got) == 0 && p.err == nil {
			break
		}
		q.polls = q.polls[1:]
		close(p.done)
	}
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	if len(q.polls) > 0 && q.hidden.Len() > 0 {
		q.timer = time.AfterFunc(q.hidden.top().visibleAt.Sub(now), func() {
			_ = q.server.update(func(time.Time) error { q.markChanged(); return nil }) // cannot fail
		})
	}
}
