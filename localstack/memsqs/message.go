package memsqs

import "time"

// message is one stored message. What the sender gave never changes after it is stored.
type message struct {
	id      string
	body    string
	md5     string
	attrs   map[string]messageAttribute
	trace   string // AWSTraceHeader
	group   string
	dedupID string
	seq     string // SequenceNumber

	sentAt     time.Time // SentTimestamp
	enqueuedAt time.Time // what retention counts from
	sourceARN  string    // DeadLetterQueueSourceArn

	serial uint64 // names this copy in receipt handles; unique in the server
	order  uint64 // place in the queue

	receives   int       // ApproximateReceiveCount
	tries      int       // receives from this queue, which maxReceiveCount limits
	firstAt    time.Time // first receive
	receivedAt time.Time // last receive: visibility ends at most 12 h after it
	receipt    uint64    // number of the newest receipt handle; 0: never received
	changes    uint64    // visibility changes, which end the replay of a receive attempt

	hidden    bool      // delayed or in flight
	visibleAt time.Time // when hidden ends, or ended

	readyAt, hiddenAt, ageAt int // places in the queue's line and heaps

	in         *group   // FIFO
	prev, next *message // in the group
}

// delayed: not received yet, and its delay has not ended.
func (m *message) delayed() bool { return m.hidden && m.receipt == 0 }

// inFlight: received, and its visibility timeout has not ended.
func (m *message) inFlight() bool { return m.hidden && m.receipt != 0 }
