package memsqs

import (
	"cmp"
	"context"
	"maps"
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
	Attributes             *systemAttributes           `json:",omitempty"`
	MD5OfMessageAttributes string                      `json:",omitempty"`
	MessageAttributes      map[string]messageAttribute `json:",omitempty"`
}

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

// selectSystem looks up the attributes of these names.
func selectSystem(names []string) ([]func(*systemAttributes, *message), error) {
	out := make([]func(*systemAttributes, *message), 0, len(names))
	for _, n := range names {
		set := systemAttribute[n]
		switch {
		case n == "All":
			out = slices.AppendSeq(out, maps.Values(systemAttribute))
		case set == nil:
			return nil, invalidAttributeName(n)
		default:
			out = append(out, set)
		}
	}
	return out, nil
}

func (q *queue) render(got []*message, r *request) []receivedMessage {
	out := make([]receivedMessage, 0, len(got))
	for _, m := range got {
		attrs := selectAttributes(m.attrs, r.attributes)
		out = append(out, receivedMessage{
			MessageID: m.id, ReceiptHandle: q.handle(m), Body: m.body, MD5OfBody: m.md5,
			Attributes: r.systemOf(m), MessageAttributes: attrs, MD5OfMessageAttributes: md5OfAttributes(attrs),
		})
	}
	return out
}

func (r *request) systemOf(m *message) *systemAttributes {
	a := &systemAttributes{}
	for _, set := range r.system {
		set(a, m)
	}
	if *a == (systemAttributes{}) {
		return nil
	}
	return a
}

// selectAttributes returns the attributes that a receive asked for: by name, "All" or ".*", or "prefix.*".
func selectAttributes(attrs map[string]messageAttribute, names []string) map[string]messageAttribute {
	if len(attrs) == 0 || len(names) == 0 {
		return nil
	}
	out := map[string]messageAttribute{}
	for name, a := range attrs {
		for _, want := range names {
			prefix, wild := strings.CutSuffix(want, ".*")
			if want == "All" || want == name || wild && strings.HasPrefix(name, prefix) {
				out[name] = a
				break
			}
		}
	}
	return out
}

// poll is a ReceiveMessage that waits. A message that becomes receivable goes to the oldest poll of its queue, whether or
// not the client of that poll is still there: AWS cannot tell either, and the message stays hidden for its visibility
// timeout.
type poll struct {
	q    *queue
	r    *request
	got  []receivedMessage
	err  error
	done chan struct{} // closed when got or err is set
}

// wait makes a poll wait for messages. The caller holds the server's lock and calls await without it.
func (q *queue) wait(r *request) *poll {
	p := &poll{q: q, r: r, done: make(chan struct{})}
	q.polls = append(q.polls, p)
	q.disturb() // arms the timer
	return p
}

// await returns what a poll was given, or nothing at the end of its wait time or of the server.
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
			// A message that appears in the very moment the wait ends may be taken: settle before leaving.
			p.q.settle(now)
		}
		if i := slices.Index(p.q.polls, p); i >= 0 {
			p.q.polls = slices.Delete(p.q.polls, i, i+1)
			p.q.disturb()
		}
		return p.err
	})
	return p.got, err
}

// settle gives receivable messages to the polls that wait, oldest poll first, and sets the timer for the next moment at
// which time alone can make a message receivable.
func (q *queue) settle(now time.Time) {
	q.advance(now)
	for len(q.polls) > 0 {
		p := q.polls[0]
		if q.gone {
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
	if len(q.polls) > 0 && q.hidden.len() > 0 {
		q.timer = time.AfterFunc(q.hidden.top().visibleAt.Sub(now), func() {
			// update finds nothing else to do, and never fails.
			_ = q.server.update(func(time.Time) error { q.disturb(); return nil })
		})
	}
}
