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

// parseRedrive reads a redrive policy. AWS takes maxReceiveCount as a number and as a string.
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
	if p.MaxReceiveCount == nil {
		return nil, bad("Redrive policy does not contain mandatory attribute: maxReceiveCount.")
	}
	n, err := strconv.Atoi(strings.Trim(string(p.MaxReceiveCount), `"`))
	if err != nil || n < 1 || n > 1000 {
		return nil, bad("Invalid value for maxReceiveCount: " + string(p.MaxReceiveCount) + ", valid values are from 1 to 1000 both inclusive.")
	}
	return &redrivePolicy{p.DeadLetterTargetARN, n}, nil
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

// deadLetterQueue returns where m goes instead of being received once more, or nil. Without its target the policy has no
// effect, so that nothing is lost.
func (q *queue) deadLetterQueue(m *message) *queue {
	p := q.attrs.Redrive
	if p == nil || m.tries < p.MaxReceiveCount {
		return nil
	}
	return q.server.byARN(p.TargetARN)
}

// moveTo moves a message that was tried too often to the dead-letter queue. It keeps its ID, its SentTimestamp and its
// count of receives. On a FIFO queue its deduplication ID becomes its message ID, so that two messages which were sent
// with one ID more than five minutes apart can both arrive; the group is kept, and goes on in the source queue.
func (q *queue) moveTo(dlq *queue, m *message, now time.Time) {
	q.remove(m)
	moved := &message{
		id: m.id, body: m.body, md5: m.md5, attrs: m.attrs, trace: m.trace, group: m.group,
		sentAt: m.sentAt, enqueuedAt: m.enqueuedAt, sourceARN: q.arn, receives: m.receives, firstAt: m.firstAt, visibleAt: now,
	}
	if dlq.attrs.FIFO {
		moved.dedupID, moved.seq = m.id, q.server.nextSequence()
		// Retention starts anew in a FIFO dead-letter queue; in a standard one it still counts from the sending.
		moved.enqueuedAt = now
		dlq.dedup.put(dlq.dedupKey(moved), accepted{moved.id, moved.seq}, now)
	}
	dlq.insert(moved, nil, now)
}

func (s *Server) byARN(arn string) *queue {
	q := s.queues[arn[strings.LastIndexByte(arn, ':')+1:]]
	if q == nil || q.arn != arn {
		return nil
	}
	return q
}

// sourcesOf returns the queues whose dead-letter queue is q, by name.
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
	QueueURLs []string `json:"queueUrls"` // AWS spells this one with a small q
}

func (s *Server) listSources(_ *call, in *queueInput) (*sourcesOutput, error) {
	out := &sourcesOutput{QueueURLs: []string{}}
	return out, s.update(func(now time.Time) error {
		q, err := s.queue(in.QueueURL, now)
		if err != nil {
			return err
		}
		for _, source := range s.sourcesOf(q) {
			out.QueueURLs = append(out.QueueURLs, source.url())
		}
		return nil
	})
}
