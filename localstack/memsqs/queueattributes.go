package memsqs

import (
	"maps"
	"strconv"
	"time"
)

type getAttributesInput struct {
	QueueURL       string `json:"QueueUrl"`
	AttributeNames []string
}

type attributesOutput struct {
	Attributes map[string]string `json:",omitempty"`
}

func (s *Server) getQueueAttributes(_ *call, in *getAttributesInput) (*attributesOutput, error) {
	out := &attributesOutput{Attributes: map[string]string{}}
	return out, s.update(func(now time.Time) error {
		q, err := s.queue(in.QueueURL, now)
		if err != nil {
			return err
		}
		all := q.allAttributes()
		for _, name := range in.AttributeNames {
			if name == "All" {
				maps.Copy(out.Attributes, all)
				continue
			}
			v, ok := all[name]
			if ok {
				out.Attributes[name] = v
			} else if !knownAttribute(name) {
				return invalidAttributeName(name)
			}
		}
		return nil
	})
}

func (q *queue) allAttributes() map[string]string {
	out := maps.Clone(q.attrs.set)
	out["QueueArn"] = q.arn
	out["CreatedTimestamp"] = strconv.FormatInt(q.created.Unix(), 10)
	out["LastModifiedTimestamp"] = strconv.FormatInt(q.modified.Unix(), 10)
	out["ApproximateNumberOfMessages"] = strconv.Itoa(len(q.messages) - q.delayed - q.inFlight)
	out["ApproximateNumberOfMessagesNotVisible"] = strconv.Itoa(q.inFlight)
	out["ApproximateNumberOfMessagesDelayed"] = strconv.Itoa(q.delayed)
	return out
}

func knownAttribute(name string) bool {
	_, ranged := ranges[name]
	_, chosen := choices[name]
	return ranged || chosen || name == "RedrivePolicy" || name == "RedriveAllowPolicy" || name == "Policy" || name == "KmsMasterKeyId"
}

type setAttributesInput struct {
	QueueURL   string `json:"QueueUrl"`
	Attributes map[string]string
}

func (s *Server) setQueueAttributes(_ *call, in *setAttributesInput) (*empty, error) {
	return &empty{}, s.update(func(now time.Time) error {
		q, err := s.queue(in.QueueURL, now)
		if err != nil {
			return err
		}
		if len(in.Attributes) == 0 {
			return missingParameter("Attributes")
		}
		if v, ok := in.Attributes["FifoQueue"]; ok && v != q.attrs.set["FifoQueue"] {
			return invalidAttributeValue("FifoQueue")
		}
		attrs, err := q.attrs.with(in.Attributes, q.attrs.FIFO)
		if err != nil {
			return err
		}
		if err := s.checkRedrive(attrs); err != nil {
			return err
		}
		q.change(attrs, now)
		return nil
	})
}

// change sets new attributes. They are in force at once; AWS takes up to a minute. A delay of the queue also applies to
// messages that a FIFO queue already has, and only to new ones in a standard queue.
func (q *queue) change(attrs attributes, now time.Time) {
	redelay := q.attrs.FIFO && attrs.Delay != q.attrs.Delay
	q.attrs, q.modified = attrs, now
	if redelay {
		for _, m := range q.messages {
			if m.receipt == 0 {
				q.hide(m, m.enqueuedAt.Add(attrs.Delay))
			}
		}
	}
	q.advance(now)
	q.disturb()
}
