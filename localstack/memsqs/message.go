package memsqs

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

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

type messageAttribute struct {
	DataType         string
	StringValue      *string           `json:",omitempty"`
	BinaryValue      []byte            `json:",omitempty"`
	StringListValues []json.RawMessage `json:",omitempty"`
	BinaryListValues []json.RawMessage `json:",omitempty"`
}

// senderID is the SenderId of every message: there is one user.
const senderID = "AIDAMEMSQSMEMSQSMEMSQ"

// systemAttributes are those of a received message. "": it does not have it, or it was not asked for. A struct, since
// encoding/json sorts the names of a map anew for each message.
type systemAttributes struct {
	AWSTraceHeader                   string `json:",omitempty"`
	ApproximateFirstReceiveTimestamp string `json:",omitempty"`
	ApproximateReceiveCount          string `json:",omitempty"`
	DeadLetterQueueSourceARN         string `json:"DeadLetterQueueSourceArn,omitempty"`
	MessageDeduplicationID           string `json:"MessageDeduplicationId,omitempty"`
	MessageGroupID                   string `json:"MessageGroupId,omitempty"`
	SenderID                         string `json:"SenderId,omitempty"`
	SentTimestamp                    string `json:",omitempty"`
	SequenceNumber                   string `json:",omitempty"`
}

// systemAttribute sets the attribute of a name.
var systemAttribute = map[string]func(*systemAttributes, *message){
	"SenderId":                         func(a *systemAttributes, _ *message) { a.SenderID = senderID },
	"SentTimestamp":                    func(a *systemAttributes, m *message) { a.SentTimestamp = millis(m.sentAt) },
	"ApproximateReceiveCount":          func(a *systemAttributes, m *message) { a.ApproximateReceiveCount = strconv.Itoa(m.receives) },
	"ApproximateFirstReceiveTimestamp": func(a *systemAttributes, m *message) { a.ApproximateFirstReceiveTimestamp = millis(m.firstAt) },
	"MessageGroupId":                   func(a *systemAttributes, m *message) { a.MessageGroupID = m.group },
	"MessageDeduplicationId":           func(a *systemAttributes, m *message) { a.MessageDeduplicationID = m.dedupID },
	"SequenceNumber":                   func(a *systemAttributes, m *message) { a.SequenceNumber = m.seq },
	"AWSTraceHeader":                   func(a *systemAttributes, m *message) { a.AWSTraceHeader = m.trace },
	"DeadLetterQueueSourceArn":         func(a *systemAttributes, m *message) { a.DeadLetterQueueSourceARN = m.sourceARN },
	"SqsManagedSseEnabled":             func(*systemAttributes, *message) {}, // may be asked for, and no message has it
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

func md5Hex(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// md5OfAttributes is the digest of message attributes as AWS documents it: sorted by name; name, type and value each after
// its length in four bytes, and before the value one byte that says whether it is text or binary.
func md5OfAttributes(attrs map[string]messageAttribute) string {
	if len(attrs) == 0 {
		return ""
	}
	h := md5.New()
	write := func(s string) {
		_ = binary.Write(h, binary.BigEndian, uint32(len(s))) // a hash never fails to write
		_, _ = h.Write([]byte(s))
	}
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		a := attrs[name]
		write(name)
		write(a.DataType)
		if strings.HasPrefix(a.DataType, "Binary") {
			_, _ = h.Write([]byte{2})
			write(string(a.BinaryValue))
		} else {
			_, _ = h.Write([]byte{1})
			write(*a.StringValue)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sizeOfAttributes is what attributes add to the size of a message: names, types and values.
func sizeOfAttributes(attrs map[string]messageAttribute) int {
	n := 0
	for name, a := range attrs {
		n += len(name) + len(a.DataType) + len(a.BinaryValue)
		if a.StringValue != nil {
			n += len(*a.StringValue)
		}
	}
	return n
}
