package memsqs

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// QueuedMessage is a message in a queue, for assertions.
type QueuedMessage struct {
	ID, Body, Group, DedupID string
	// ReceiveCount is how often it was received.
	ReceiveCount int
	// InFlight: received, and its visibility timeout has not ended.
	InFlight bool
	// VisibleAt is when it becomes or became visible.
	VisibleAt time.Time
	// SourceARN is the queue that a message in a dead-letter queue came from.
	SourceARN string
	// Attributes are its message attributes with text values.
	Attributes map[string]string
}

// Messages returns what the queue of that name or URL holds, delayed and in flight included, in the order of the queue.
// It changes nothing. A queue that does not exist has no messages.
func (s *Server) Messages(queue string) []QueuedMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[queue[strings.LastIndexByte(queue, '/')+1:]]
	if q == nil {
		return nil
	}
	now := s.opts.Now()
	all := make([]*message, 0, len(q.messages))
	for _, m := range q.messages {
		if now.Before(m.enqueuedAt.Add(q.attrs.Retention)) {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *message) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.serial, b.serial)) })
	out := make([]QueuedMessage, 0, len(all))
	for _, m := range all {
		out = append(out, QueuedMessage{
			ID: m.id, Body: m.body, Group: m.group, DedupID: m.dedupID, ReceiveCount: m.receives, SourceARN: m.sourceARN,
			InFlight: m.inFlight() && now.Before(m.visibleAt), VisibleAt: m.visibleAt, Attributes: texts(m.attrs),
		})
	}
	return out
}

func texts(attrs map[string]messageAttribute) map[string]string {
	out := map[string]string{}
	for name, a := range attrs {
		if a.StringValue != nil {
			out[name] = *a.StringValue
		}
	}
	return out
}
