package memsqs

import (
	"strings"
	"time"
)

// recently is how long after DeleteQueue a name cannot be used, and after PurgeQueue no other purge is taken.
const recently = 60 * time.Second

type createInput struct {
	QueueName  string
	Attributes map[string]string
	Tags       map[string]string `json:"tags"`
}

func (s *Server) createQueue(_ *call, in *createInput) (*queueOutput, error) {
	out := &queueOutput{}
	return out, s.update(func(now time.Time) error {
		q, err := s.create(in, now)
		if err == nil {
			out.QueueURL = q.url()
		}
		return err
	})
}

func (s *Server) create(in *createInput, now time.Time) (*queue, error) {
	if in.QueueName == "" {
		return nil, missingParameter("QueueName")
	}
	base, suffixed := strings.CutSuffix(in.QueueName, ".fifo")
	fifo := in.Attributes["FifoQueue"] == "true"
	switch {
	case fifo && (!suffixed || !isName(base) || len(in.QueueName) > 80):
		return nil, invalidParameter("The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length.")
	case !fifo && !isName(in.QueueName):
		return nil, invalidParameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.")
	}
	if q := s.queues[in.QueueName]; q != nil {
		for name, v := range in.Attributes {
			if q.attrs.set[name] != v {
				return nil, newError("QueueNameExists", "A queue already exists with the same name and a different value for attribute "+name)
			}
		}
		return q, nil
	}
	if at, ok := s.deleted[in.QueueName]; ok && now.Before(at.Add(recently)) {
		return nil, newError("QueueDeletedRecently", "You must wait 60 seconds after deleting a queue before you can create another with the same name.")
	}
	attrs, err := attributes{set: defaults(fifo)}.with(in.Attributes, fifo)
	if err != nil {
		return nil, err
	}
	if err := s.checkRedrive(attrs); err != nil {
		return nil, err
	}
	delete(s.deleted, in.QueueName)
	q := newQueue(s, in.QueueName, attrs, now)
	q.tags = in.Tags
	s.queues[in.QueueName] = q
	return q, nil
}

// checkRedrive: the dead-letter queue must exist and be of the same type.
func (s *Server) checkRedrive(a attributes) error {
	if a.Redrive == nil {
		return nil
	}
	dlq := s.byARN(a.Redrive.TargetARN)
	if dlq == nil {
		return invalidValue(a.set["RedrivePolicy"], "RedrivePolicy", "Dead letter target does not exist.")
	}
	if dlq.attrs.FIFO != a.FIFO {
		return invalidValue(a.set["RedrivePolicy"], "RedrivePolicy", "Dead-letter queue must be same type of queue as the source.")
	}
	return nil
}

func (s *Server) deleteQueue(_ *call, in *queueInput) (*empty, error) {
	return &empty{}, s.update(func(now time.Time) error {
		q, err := s.queue(in.QueueURL, now)
		if err != nil {
			return err
		}
		delete(s.queues, q.name)
		s.deleted[q.name] = now
		q.gone = true
		q.disturb() // its polls end
		return nil
	})
}
