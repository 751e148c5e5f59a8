package memsqs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// The lines of a saved server. Not saved are move tasks, receive attempts and the load of tenants: a move that runs ends, a receive that
// is repeated with its attempt ID is an ordinary one, and tenants of fair queues start without processing time. Also not saved are
// message.again and the place of a group: a group whose messages were received before waits in the order of its first message.
const (
	lineServer  = "sqs"
	lineQueue   = "queue"
	lineMessage = "message"
	lineDedup   = "dedup"
)

type savedServer struct {
	Serial  uint64
	Deleted map[string]time.Time `json:",omitempty"`
}

type savedQueue struct {
	Name              string
	Serial            uint64
	Created, Modified time.Time
	PurgedAt          time.Time `json:",omitzero"`
	PerGroup          bool      `json:",omitempty"`
	Attributes        map[string]string
	Tags              map[string]string `json:",omitempty"`
}

// savedMessage has the serial numbers, because receipt handles contain them.
type savedMessage struct {
	Queue         string
	ID            string
	Body          string
	Attributes    map[string]messageAttribute `json:",omitempty"`
	Trace         string                      `json:",omitempty"`
	Group         string                      `json:",omitempty"`
	DedupID       string                      `json:",omitempty"`
	Sequence      string                      `json:",omitempty"`
	SentAt        time.Time
	EnqueuedAt    time.Time
	SourceARN     string `json:",omitempty"`
	Serial        uint64
	Order         uint64
	Receives      int       `json:",omitempty"`
	QueueReceives int       `json:",omitempty"`
	FirstAt       time.Time `json:",omitzero"`
	ReceivedAt    time.Time `json:",omitzero"`
	Receipt       uint64    `json:",omitempty"`
	Changes       uint64    `json:",omitempty"`
	Hidden        bool      `json:",omitempty"`
	VisibleAt     time.Time
}

type savedDedup struct {
	Queue     string
	Group     string `json:",omitempty"`
	ID        string
	MessageID string
	Sequence  string
	At        time.Time
}

// save copies the state under the lock, and emits the copies without it, because a disk must not hold up calls.
func (s *Server) save(emit func(kind string, value any) error) error {
	var server savedServer
	var queues []savedQueue
	var messages []savedMessage
	var dedups []savedDedup
	_ = s.update(func(now time.Time) error { // returns no error
		server = savedServer{Serial: s.serial, Deleted: map[string]time.Time{}}
		for name, at := range s.deleted {
			if now.Before(at.Add(deleteInterval)) {
				server.Deleted[name] = at
			}
		}
		for _, q := range s.queues {
			q.advance(now)
			queues = append(queues, q.saved())
			for _, m := range q.messages {
				messages = append(messages, m.saved(q))
			}
			dedups = append(dedups, q.savedDedups()...)
		}
		return nil
	})
	slices.SortFunc(queues, func(a, b savedQueue) int { return cmp.Compare(a.Serial, b.Serial) })
	slices.SortFunc(messages, func(a, b savedMessage) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Serial, b.Serial))
	})
	slices.SortFunc(dedups, func(a, b savedDedup) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Sequence, b.Sequence)) })
	return cmp.Or(emit(lineServer, server), awsjson.EmitAll(emit, lineQueue, queues), awsjson.EmitAll(emit, lineMessage, messages), awsjson.EmitAll(emit, lineDedup, dedups))
}

func (q *queue) saved() savedQueue {
	return savedQueue{
		Name: q.name, Serial: q.serial, Created: q.created, Modified: q.modified, PurgedAt: q.purgedAt, PerGroup: q.perGroup,
		Attributes: q.attrs.set, Tags: maps.Clone(q.tags),
	}
}

func (m *message) saved(q *queue) savedMessage {
	return savedMessage{
		Queue: q.name, ID: m.id, Body: m.body, Attributes: m.attrs, Trace: m.trace, Group: m.group, DedupID: m.dedupID, Sequence: m.seq,
		SentAt: m.sentAt, EnqueuedAt: m.enqueuedAt, SourceARN: m.sourceARN, Serial: m.serial, Order: m.order,
		Receives: m.receives, QueueReceives: m.queueReceives, FirstAt: m.firstAt, ReceivedAt: m.receivedAt,
		Receipt: m.receipt, Changes: m.changes, Hidden: m.hidden, VisibleAt: m.visibleAt,
	}
}

func (q *queue) savedDedups() (all []savedDedup) {
	for k, v := range q.dedup.values {
		all = append(all, savedDedup{q.name, k.group, k.id, v.value.id, v.value.seq, time.Unix(0, v.at)})
	}
	return all
}

// load adds a line to the server.
func (s *Server) load(kind string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	switch kind {
	case lineServer:
		var in savedServer
		if err := awsjson.Unmarshal(value, &in); err != nil {
			return err
		}
		s.serial = in.Serial
		for name, at := range in.Deleted {
			s.deleted[name] = at
		}
		return nil
	case lineQueue:
		return s.loadQueue(value, now)
	case lineMessage:
		return s.loadMessage(value, now)
	case lineDedup:
		return s.loadDedup(value)
	}
	return fmt.Errorf("unknown kind %q", kind)
}

func (s *Server) loadQueue(value []byte, now time.Time) error {
	var in savedQueue
	if err := awsjson.Unmarshal(value, &in); err != nil {
		return err
	}
	if in.Name == "" || s.queues[in.Name] != nil {
		return fmt.Errorf("queue %q is there twice, or has no name", in.Name)
	}
	attrs, err := attributes{set: map[string]string{}}.with(in.Attributes, in.Attributes["FifoQueue"] == "true")
	if err != nil {
		return err
	}
	serial := max(s.serial, in.Serial)
	q := newQueue(s, in.Name, attrs, now)
	q.serial, q.created, q.modified, q.purgedAt, q.perGroup, q.tags = in.Serial, in.Created, in.Modified, in.PurgedAt, in.PerGroup, in.Tags
	s.serial = serial
	s.queues[in.Name] = q
	return nil
}

func (s *Server) loadMessage(value []byte, now time.Time) error {
	var in savedMessage
	if err := awsjson.Unmarshal(value, &in); err != nil {
		return err
	}
	q := s.queues[in.Queue]
	switch {
	case q == nil:
		return fmt.Errorf("message %s: there is no queue %q", in.ID, in.Queue)
	case in.ID == "" || in.Serial == 0 || q.messages[in.Serial] != nil:
		return fmt.Errorf("message %q of queue %s is there twice, or has no ID or number", in.ID, in.Queue)
	}
	if err := checkMessageAttributes(in.Attributes); err != nil {
		return err
	}
	m := &message{
		id: in.ID, body: in.Body, md5: md5Hex(in.Body), attrs: in.Attributes, trace: in.Trace, group: in.Group, dedupID: in.DedupID, seq: in.Sequence,
		sentAt: in.SentAt, enqueuedAt: in.EnqueuedAt, sourceARN: in.SourceARN, serial: in.Serial, order: in.Order,
		receives: in.Receives, queueReceives: in.QueueReceives, firstAt: in.FirstAt, receivedAt: in.ReceivedAt,
		receipt: in.Receipt, changes: in.Changes, visibleAt: in.VisibleAt,
	}
	s.serial = max(s.serial, in.Serial)
	q.messages[m.serial] = m
	q.ages.push(m)
	q.order.add(m, nil)
	if in.Hidden {
		q.hide(m, m.visibleAt, now)
	} else {
		q.order.changed(m, now)
	}
	return nil
}

func (s *Server) loadDedup(value []byte) error {
	var in savedDedup
	if err := awsjson.Unmarshal(value, &in); err != nil {
		return err
	}
	q := s.queues[in.Queue]
	if q == nil {
		return fmt.Errorf("deduplication ID %q: there is no queue %q", in.ID, in.Queue)
	}
	q.dedup.put(dedupKey{in.Group, in.ID}, accepted{in.MessageID, in.Sequence}, in.At)
	return nil
}
