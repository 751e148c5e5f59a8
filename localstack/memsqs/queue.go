package memsqs

import "time"

// queue is guarded by Server.mu.
type queue struct {
	server   *Server
	name     string
	arn      string
	serial   uint64
	created  time.Time
	modified time.Time
	purgedAt time.Time
	attrs    attributes
	tags     map[string]string
	perGroup bool // deduplicates in each group; fixed when the queue is created: AWS ignores a later DeduplicationScope
	deleted  bool
	changed  bool // is in Server.changed

	messages map[uint64]*message // by serial
	order    ordering
	hidden   indexedHeap[*message] // by visibleAt
	ages     indexedHeap[*message] // by enqueuedAt
	delayed  int
	inFlight int

	dedup    intervalMap[dedupKey, accepted]
	attempts intervalMap[string, receiveAttempt]

	polls []*poll
	timer *time.Timer // fires when the next hidden message becomes visible; set only while polls wait
}

func newQueue(s *Server, name string, attrs attributes, now time.Time) *queue {
	q := &queue{
		server: s, name: name, serial: s.nextSerial(), created: now, modified: now, attrs: attrs,
		arn:      "arn:aws:sqs:" + s.opts.Region + ":" + s.opts.Account + ":" + name,
		perGroup: attrs.DeduplicationScope == scopeGroup,
		messages: map[uint64]*message{},
	}
	q.hidden = indexedHeap[*message]{
		less: func(a, b *message) bool {
			return lessBy(a.visibleAt.UnixNano(), b.visibleAt.UnixNano(), a.order, b.order)
		},
		position: func(m *message) *int { return &m.hiddenIndex },
	}
	q.ages = indexedHeap[*message]{
		less: func(a, b *message) bool {
			return lessBy(a.enqueuedAt.UnixNano(), b.enqueuedAt.UnixNano(), a.serial, b.serial)
		},
		position: func(m *message) *int { return &m.ageIndex },
	}
	if attrs.FIFO {
		q.order = newFIFOOrder(s)
	} else {
		q.order = newStandardOrder(s)
	}
	return q
}

// insert stores a new message. It is hidden until m.visibleAt. before is as in ordering.add.
func (q *queue) insert(m, before *message, now time.Time) {
	m.serial = q.server.nextSerial()
	m.order, m.again = m.serial, false
	q.messages[m.serial] = m
	q.ages.push(m)
	q.order.add(m, before)
	if m.visibleAt.After(now) {
		q.hide(m, m.visibleAt, now)
	} else {
		q.order.changed(m, now)
	}
	q.markChanged()
}

func (q *queue) remove(m *message, now time.Time) {
	q.count(m, -1)
	delete(q.messages, m.serial)
	q.hidden.remove(m)
	q.ages.remove(m)
	q.order.remove(m, now)
	q.markChanged() // the next message of its FIFO group may now be receivable
}

// hide hides m until t. m may be visible or already hidden.
func (q *queue) hide(m *message, t, now time.Time) {
	q.count(m, -1)
	q.hidden.remove(m)
	m.hidden, m.visibleAt = true, t
	q.count(m, 1)
	q.hidden.push(m)
	q.order.changed(m, now)
	q.markChanged()
}

// show shows m, whose visibility timeout or delay has ended at m.visibleAt.
func (q *queue) show(m *message) {
	q.count(m, -1)
	q.hidden.remove(m)
	m.again = m.inFlight()
	m.hidden = false
	q.order.changed(m, m.visibleAt)
}

// advance applies the time that has passed: it deletes messages whose retention period has ended, and shows messages
// whose visibility timeout or delay has ended.
func (q *queue) advance(now time.Time) {
	for q.ages.Len() > 0 && !now.Before(q.ages.top().enqueuedAt.Add(q.attrs.Retention)) {
		q.remove(q.ages.top(), now)
	}
	for q.hidden.Len() > 0 && !now.Before(q.hidden.top().visibleAt) {
		q.show(q.hidden.top())
	}
	q.dedup.expire(now)
	q.attempts.expire(now)
}

// count adds by to the counter of m's state.
func (q *queue) count(m *message, by int) {
	switch {
	case m.delayed():
		q.delayed += by
	case m.inFlight():
		q.inFlight += by
	}
}

// markChanged makes Server.update serve the queue's polls before it releases the lock.
func (q *queue) markChanged() {
	if !q.changed {
		q.changed = true
		q.server.changed = append(q.server.changed, q)
	}
}

func (q *queue) url(c *call) string {
	base := q.server.opts.BaseURL
	if q.server.opts.OfRequest {
		base = "http://" + c.host
	}
	return base + "/" + q.server.opts.Account + "/" + q.name
}
