package memsqs

import (
	"time"
)

// queue is one queue. Server.mu guards it.
type queue struct {
	server    *Server
	name      string
	arn       string
	serial    uint64
	created   time.Time
	modified  time.Time
	purgedAt  time.Time
	attrs     attributes
	tags      map[string]string
	perGroup  bool // DeduplicationScope when the queue was created: a later change has no effect on AWS either
	gone      bool
	disturbed bool

	messages map[uint64]*message // by serial
	shelf    shelf
	hidden   heap[*message] // by visibleAt
	ages     heap[*message] // by enqueuedAt
	delayed  int
	inFlight int

	dedup    window[dedupKey, accepted]
	attempts window[string, attempt]

	polls []*poll
	timer *time.Timer // next moment a hidden message appears; armed only while polls wait
}

func newQueue(s *Server, name string, attrs attributes, now time.Time) *queue {
	q := &queue{
		server: s, name: name, serial: s.nextSerial(), created: now, modified: now, attrs: attrs,
		arn:      "arn:aws:sqs:" + s.opts.Region + ":" + s.opts.Account + ":" + name,
		perGroup: attrs.DeduplicationScope == scopeGroup,
		messages: map[uint64]*message{},
	}
	q.hidden = heap[*message]{
		less: func(a, b *message) bool {
			return byTime(a.visibleAt.UnixNano(), b.visibleAt.UnixNano(), a.order, b.order)
		},
		place: func(m *message) *int { return &m.hiddenAt },
	}
	q.ages = heap[*message]{
		less: func(a, b *message) bool {
			return byTime(a.enqueuedAt.UnixNano(), b.enqueuedAt.UnixNano(), a.serial, b.serial)
		},
		place: func(m *message) *int { return &m.ageAt },
	}
	if attrs.FIFO {
		q.shelf = newGroups()
	} else {
		q.shelf = newStandard(s)
	}
	return q
}

// insert stores a message that is visible now, or from m.visibleAt on.
func (q *queue) insert(m, before *message, now time.Time) {
	m.serial = q.server.nextSerial()
	m.order = m.serial
	q.messages[m.serial] = m
	q.ages.push(m)
	q.shelf.add(m, before)
	if m.visibleAt.After(now) {
		q.hide(m, m.visibleAt)
	} else {
		q.shelf.changed(m)
	}
	q.disturb()
}

func (q *queue) remove(m *message) {
	q.uncount(m)
	delete(q.messages, m.serial)
	q.hidden.remove(m)
	q.ages.remove(m)
	q.shelf.remove(m)
	q.disturb() // of a FIFO group, the next message may now be receivable
}

// hide makes m invisible until t, whether it is visible or hidden now.
func (q *queue) hide(m *message, t time.Time) {
	q.uncount(m)
	q.hidden.remove(m)
	m.hidden, m.visibleAt = true, t
	q.count(m, 1)
	q.hidden.push(m)
	q.shelf.changed(m)
	q.disturb()
}

func (q *queue) show(m *message) {
	q.uncount(m)
	q.hidden.remove(m)
	m.hidden = false
	q.shelf.changed(m)
}

// advance does what time alone does: it deletes what outlived the retention period and shows what was hidden until now.
func (q *queue) advance(now time.Time) {
	for q.ages.len() > 0 && !now.Before(q.ages.top().enqueuedAt.Add(q.attrs.Retention)) {
		q.remove(q.ages.top())
	}
	for q.hidden.len() > 0 && !now.Before(q.hidden.top().visibleAt) {
		q.show(q.hidden.top())
	}
	q.dedup.expire(now)
	q.attempts.expire(now)
}

func (q *queue) uncount(m *message) { q.count(m, -1) }

func (q *queue) count(m *message, by int) {
	switch {
	case m.delayed():
		q.delayed += by
	case m.inFlight():
		q.inFlight += by
	}
}

// disturb marks the queue as changed; Server.update settles it before the lock is released.
func (q *queue) disturb() {
	if !q.disturbed {
		q.disturbed = true
		q.server.disturbed = append(q.server.disturbed, q)
	}
}

func (q *queue) url() string {
	return q.server.opts.BaseURL + "/" + q.server.opts.Account + "/" + q.name
}
