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

// message is a stored message. The fields of the sender do not change after it is stored.
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
	enqueuedAt time.Time // start of the retention period
	sourceARN  string    // DeadLetterQueueSourceArn

	serial uint64 // unique in the server; identifies this copy of the message in receipt handles
	order  uint64 // position in the queue

	receives      int       // ApproximateReceiveCount
	queueReceives int       // receives from this queue, compared with maxReceiveCount
	firstAt       time.Time // first receive
	receivedAt    time.Time // last receive: visibility ends at most 12 h after it
	receipt       uint64    // number of the newest receipt handle; 0: never received
	changes       uint64    // number of visibility changes; a change ends the replay of a receive attempt

	hidden    bool      // delayed or in flight
	again     bool      // was in flight, in this queue, and is visible again
	visibleAt time.Time // when hidden ends or ended

	readyIndex, hiddenIndex, ageIndex int // positions in the heaps of the queue and its ordering

	in         *messageGroup // of a FIFO queue
	prev, next *message      // in that group

	of      *tenant // of a standard queue; nil: no group
	counted bool    // is in the load of the standard queue and of the tenant
}

// delayed is true before the first receive, while the message's delay has not ended.
func (m *message) delayed() bool { return m.hidden && m.receipt == 0 }

// inFlight is true after a receive, while the visibility timeout has not ended.
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

// systemAttribute returns the value of a system attribute, by its name; "": the message does not have it.
var systemAttribute = map[string]func(*message) string{
	"SenderId":                         func(*message) string { return senderID },
	"SentTimestamp":                    func(m *message) string { return millis(m.sentAt) },
	"ApproximateReceiveCount":          func(m *message) string { return strconv.Itoa(m.receives) },
	"ApproximateFirstReceiveTimestamp": func(m *message) string { return millis(m.firstAt) },
	"MessageGroupId":                   func(m *message) string { return m.group },
	"MessageDeduplicationId":           func(m *message) string { return m.dedupID },
	"SequenceNumber":                   func(m *message) string { return m.seq },
	"AWSTraceHeader":                   func(m *message) string { return m.trace },
	"DeadLetterQueueSourceArn":         func(m *message) string { return m.sourceARN },
	"SqsManagedSseEnabled":             func(*message) string { return "" }, // can be requested, and no message has it
}

// selectSystem returns the system attributes of m with these names.
func selectSystem(m *message, names []string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		if v := systemAttribute[name](m); v != "" {
			out[name] = v
		}
	}
	return out
}

// checkSystemNames returns the names of the requested system attributes, all of them for "All".
func checkSystemNames(requested []string) ([]string, error) {
	var names []string
	for _, n := range requested {
		switch {
		case n == "All":
			names = slices.AppendSeq(names, maps.Keys(systemAttribute))
		case systemAttribute[n] == nil:
			return nil, invalidAttributeName(n)
		default:
			names = append(names, n)
		}
	}
	return names, nil
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

func md5Hex(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// md5OfAttributes is the digest of message attributes that AWS documents: the attributes are sorted by name; a name, a
// type and a value each follow their length in four bytes; one byte before the value is 1 for a string, 2 for binary.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
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

// sizeOfAttributes returns how many bytes the attributes add to the size of a message: names, types and values count.
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
