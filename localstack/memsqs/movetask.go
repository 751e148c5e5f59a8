package memsqs

import (
	"time"
)

// moveTask moves messages from a dead-letter queue back to where they came from, or elsewhere, at some number a second.
// Server.mu guards it.
type moveTask struct {
	server      *Server
	handle      string
	source      *queue
	destination string // ARN; "": the queue each message came from
	perSecond   int
	status      string
	failure     string
	total       int
	moved       int
	started     time.Time
}

const (
	moveRunning   = "RUNNING"
	moveCompleted = "COMPLETED"
	moveFailed    = "FAILED"
	moveCancelled = "CANCELLED"

	maxMovesPerSecond = 500
)

// step moves what fits in one second, and comes back in a second while there is more. A moved message is a new one: it
// has a new message ID and SentTimestamp, no receives, and goes to the end of its group.
func (t *moveTask) step(now time.Time) {
	if t.status != moveRunning {
		return
	}
	t.source.advance(now)
	for range t.perSecond {
		next := t.source.shelf.pick(1)
		if len(next) == 0 {
			t.status = moveCompleted
			return
		}
		m := next[0]
		arn := t.destination
		if arn == "" {
			arn = m.sourceARN
		}
		to := t.server.byARN(arn)
		if to == nil || t.source.gone {
			t.status, t.failure = moveFailed, "CouldNotDetermineMessageSource"
			return
		}
		t.source.remove(m)
		again := &message{
			id: t.server.newID(), body: m.body, md5: m.md5, attrs: m.attrs, trace: m.trace, group: m.group, dedupID: m.dedupID,
			sentAt: now, enqueuedAt: now, visibleAt: now,
		}
		if to.attrs.FIFO {
			again.seq = t.server.nextSequence()
		}
		to.insert(again, nil, now) // past deduplication: a move loses nothing
		t.moved++
	}
	time.AfterFunc(time.Second, func() {
		// A step that cannot go on records it in the task.
		_ = t.server.update(func(now time.Time) error { t.step(now); return nil })
	})
}
