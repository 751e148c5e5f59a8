package fifo

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// entry is an accepted event until it has its result. The fields above the blank line do not change. The others belong to
// the publisher's mutex.
type entry struct {
	pending *PublishResult
	serial  uint64 // order of acceptance
	event   Event  // what every attempt sends
	forward bool   // a received message: nothing is added to it, and event.ID is the deduplication ID
	refused error  // instead of all that: see refuse
	content uint64 // its hash: see recentEvents
	key     string // the event's key: the deduplication ID on a FIFO queue
	keyHash keyHash
	called  instant      // when its caller published it, where the event has a Delay
	size    int64        // of the event's message, without carried
	carried int64        // bytes of what the hooks send with it
	hooked  *hookedEvent // nil: there are no hooks

	lane          *lane
	group         *group
	ahead, behind *entry // in the group
	accepted      time.Time
	due           time.Time // end of its linger
	attempts      int
	started       time.Time // start of the first attempt
	began         instant   // start of the last attempt
	unknown       bool      // an attempt has an unknown outcome: the event may be in the queue
	copies        int       // attempts with an unknown outcome: on a standard queue each may have put a copy into it
	opened        bool      // there is a window: first is set
	first         instant   // start of the first attempt with an unknown outcome, of this call or of an earlier one: see inheritWindow
	lastErr       error     // of the last attempt
}

func (e *entry) isAccepted() bool { return e.lane != nil }

func (e *entry) messageSize() int64 { return e.size + e.carried }

// request is the request that the entry is in. nil: it is in none.
func (e *entry) request() *request {
	if e.group == nil || e.group.head() != e {
		return nil
	}
	return e.group.request
}

func (e *entry) inFlight() bool { return e.request() != nil }

func (e *entry) joinLane(l *lane) {
	e.lane = l
	l.entries[e] = struct{}{}
}

func (e *entry) leaveLane() { delete(e.lane.entries, e) }

// fill checks all of an entry's event that can be checked without the queue, and copies what every attempt sends. Each attempt
// builds the SQS message from it: the message takes three times the memory of the event, and thousands may wait.
func (p *Publisher) fill(e *entry) (err error) {
	if p.client == nil {
		return badField("Publisher", "was not made by NewPublisher")
	}
	ev := &e.event
	if e.forward {
		e.key, err = ev.ID, ev.validateForwarded(p.fifo)
	} else if err = ev.validate(p.fifo); err == nil {
		e.key, err = DedupID(p.namespace, ev.ID)
	}
	if err != nil {
		return err
	}
	ev.Attributes = cloneAttributes(ev.Attributes)
	if ev.Delay > 0 && e.called == (instant{}) {
		e.called = p.clocks()
	}
	e.pending = &PublishResult{event: ev.ID, group: ev.Group, publisher: p, done: make(chan struct{})}
	e.keyHash = hashKey(e.key)
	e.size = int64(host.MessageBytes(ev.Body, p.attributes(e)))
	return nil
}

// attributes returns those of the entry's message, without what hooks send with it.
func (p *Publisher) attributes(e *entry) map[string]sqsonce.Attribute {
	if e.forward {
		return e.event.Attributes
	}
	return e.event.sentAttributes(p.namespace)
}

// message returns what an attempt sends for the entry at a position of its request.
func (p *Publisher) message(e *entry, position int) sqstypes.SendMessageBatchRequestEntry {
	m := sqstypes.SendMessageBatchRequestEntry{
		Id:                host.EntryID(position),
		MessageBody:       &e.event.Body,
		MessageAttributes: make(map[string]sqstypes.MessageAttributeValue, len(e.event.Attributes)+3),
	}
	for name, a := range p.attributes(e) {
		m.MessageAttributes[name] = attributeValue(a)
	}
	header := &e.event.TraceHeader
	if e.hooked != nil {
		for name, a := range e.hooked.carry.attributes() {
			m.MessageAttributes[name] = attributeValue(a)
		}
		if *header == "" {
			header = &e.hooked.carry.TraceHeader
		}
	}
	if e.event.Group != "" {
		m.MessageGroupId = &e.event.Group
	}
	if p.fifo {
		m.MessageDeduplicationId = &e.key
	}
	if e.event.Delay > 0 {
		// The SDK doesn't send a 0, and the queue's own delay would count.
		rest := e.event.Delay - e.began.since(e.called)
		m.DelaySeconds = host.Seconds(max(time.Second, rest), maxDelay)
	}
	if *header != "" {
		m.MessageSystemAttributes = map[string]sqstypes.MessageSystemAttributeValue{
			string(sqstypes.MessageSystemAttributeNameAWSTraceHeader): {
				DataType: aws.String("String"), StringValue: header,
			},
		}
	}
	return m
}

func attributeValue(a sqsonce.Attribute) sqstypes.MessageAttributeValue {
	v := sqstypes.MessageAttributeValue{DataType: &a.Type}
	if isBinary(a) {
		v.BinaryValue = a.Binary
	} else {
		v.StringValue = &a.String
	}
	return v
}

func (p *Publisher) receipt(e *entry, r attemptResult) Receipt {
	receipt := Receipt{MessageID: r.messageID, Sequence: r.sequence, Attempts: e.attempts}
	if p.fifo {
		receipt.DedupID = e.key
	}
	return receipt
}

// finalError returns the error of an entry that gets no further attempt. The caller holds the lock.
func (p *Publisher) finalError(e *entry, why error) error {
	return because(p.outcome(e), why, e.lastErr)
}

// outcome returns ErrUnknownOutcome if an attempt, also one of an earlier call, may have put the event into the queue, or
// may yet do so, else ErrNotSent. The caller holds the lock.
func (p *Publisher) outcome(e *entry) error {
	others := p.recent.accepted[e.keyHash].entries
	if e.isAccepted() {
		others--
	}
	if _, sent := p.recent.find(e.keyHash); sent || e.unknown || others > 0 {
		return ErrUnknownOutcome
	}
	return ErrNotSent
}

// publishError returns the error of an entry for its caller. The caller holds the lock.
func (p *Publisher) publishError(e *entry, err error) *PublishError {
	pe := &PublishError{EventID: e.event.ID, Group: e.event.Group, Err: err}
	if !errors.Is(err, ErrUnknownOutcome) {
		return pe
	}
	s, sent := p.recent.find(e.keyHash)
	switch {
	case e.opened:
		pe.FirstAttempt = e.first.wall
	case sent:
		pe.FirstAttempt = s.first().wall
	case e.inFlight():
		pe.FirstAttempt = e.began.wall
	}
	return pe
}
