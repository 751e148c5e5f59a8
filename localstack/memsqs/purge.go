package memsqs

import (
	"time"
)

func (s *Server) purgeQueue(_ *call, in *queueInput) (*empty, error) {
	return &empty{}, s.update(func(now time.Time) error {
		q, err := s.queue(in.QueueURL, now)
		if err != nil {
			return err
		}
		if !q.purgedAt.IsZero() && now.Before(q.purgedAt.Add(recently)) {
			return newError("PurgeQueueInProgress", "Only one PurgeQueue operation on "+q.name+" is allowed every 60 seconds.")
		}
		q.purgedAt = now
		for _, m := range q.messages {
			q.remove(m)
		}
		q.dedup.clear() // a FIFO queue forgets what it accepted
		q.attempts.clear()
		return nil
	})
}
