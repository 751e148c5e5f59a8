package memsqs

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

type redrivePolicy struct {
	TargetARN       string
	MaxReceiveCount int
}

// parseRedrive parses a redrive policy. AWS accepts maxReceiveCount as a number and as a string.
func parseRedrive(value string) (*redrivePolicy, error) {
	var p struct {
		DeadLetterTargetARN string          `json:"deadLetterTargetArn"`
		MaxReceiveCount     json.RawMessage `json:"maxReceiveCount"`
	}
	bad := func(reason string) error { return invalidValue(value, "RedrivePolicy", reason) }
	if err := json.Unmarshal([]byte(value), &p); err != nil {
		return nil, bad("Redrive policy is not a valid JSON map.")
	}
	if p.DeadLetterTargetARN == "" {
		return nil, bad("Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")
	}
	if !strings.HasPrefix(p.DeadLetterTargetARN, "arn:") {
		return nil, bad("Invalid value for deadLetterTargetArn.")
	}
	if p.MaxReceiveCount == nil {
		return nil, bad("Redrive policy does not contain mandatory attribute: maxReceiveCount.")
	}
	n, err := strconv.Atoi(strings.Trim(string(p.MaxReceiveCount), `"`))
	if err != nil || n < 1 || n > 1000 {
		return nil, bad("Invalid value for maxReceiveCount: " + string(p.MaxReceiveCount) + ", valid values are from 1 to 1000 both inclusive.")
	}
	return &redrivePolicy{p.DeadLetterTargetARN, n}, nil
}

// checkRedrive checks that the dead-letter queue exists and has the same type as its source.
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

// deadLetterQueue returns the queue that m must be moved to instead of being received, or nil. If the target of the
// redrive policy does not exist, the policy has no effect, and no message is lost.
func (q *queue) deadLetterQueue(m *message) *queue {
	p := q.attrs.Redrive
	if p == nil || m.queueReceives < p.MaxReceiveCount {
		return nil
	}
	return q.server.byARN(p.TargetARN)
}

// moveToDeadLetterQueue moves a message that reached its maxReceiveCount. The message ID, SentTimestamp, receive count and
// group stay the same. In a FIFO queue the message ID becomes the deduplication ID, so that two messages sent with the
// same deduplication ID, more than five minutes apart, can both arrive. The next message of the group becomes receivable
// in the source queue.
func (q *queue) moveToDeadLetterQueue(dlq *queue, m *message, now time.Time) {
	q.remove(m, now)
	moved := &message{
		id: m.id, body: m.body, md5: m.md5, attrs: m.attrs, trace: m.trace, group: m.group,
		sentAt: m.sentAt, enqueuedAt: m.enqueuedAt, sourceARN: q.arn, receives: m.receives, firstAt: m.firstAt, visibleAt: now,
	}
	if dlq.attrs.FIFO {
		moved.dedupID, moved.seq = m.id, q.server.nextSequence()
		// The retention period starts again in a FIFO dead-letter queue. In a standard one it counts from SentTimestamp.
		moved.enqueuedAt = now
		dlq.dedup.put(dlq.dedupKey(moved), accepted{moved.id, moved.seq}, now)
	}
	dlq.insert(moved, nil, now)
}

// byARN returns the queue of an ARN, or nil.
func (s *Server) byARN(arn string) *queue {
	q := s.queues[arn[strings.LastIndexByte(arn, ':')+1:]]
	if q == nil || q.arn != arn {
		return nil
	}
	return q
}

// sourcesOf returns the queues whose dead-letter queue is q, sorted by name.
func (s *Server) sourcesOf(q *queue) []*queue {
	var out []*queue
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		if p := s.queues[name].attrs.Redrive; p != nil && p.TargetARN == q.arn {
			out = append(out, s.queues[name])
		}
	}
	return out
}

type sourcesOutput struct {
	QueueURLs []string `json:"queueUrls"` // with a lower-case q, as on AWS
}

func (s *Server) listSources(c *call, in *queueInput) (*sourcesOutput, error) {
	out := &sourcesOutput{QueueURLs: []string{}}
	return out, s.withQueue(in.QueueURL, func(q *queue, _ time.Time) error {
		for _, source := range s.sourcesOf(q) {
			out.QueueURLs = append(out.QueueURLs, source.url(c))
		}
		return nil
	})
}
