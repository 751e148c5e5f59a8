package sqstest

import (
	"strconv"
	"time"
)

var groupCases = []testCase{
	{name: "group/order of sending", run: groupOrder},
	{name: "group/order of a batch", run: groupBatchOrder},
	{name: "group/ten of one in one receive", run: groupTen},
	{name: "group/as many of one as fit", run: groupFill},
	{name: "group/all that fit of several", run: groupSeveral},
	{name: "group/system attributes", run: groupAttributes},
	{name: "group/sequence numbers rise", run: groupSequence},
	{name: "group/order after expiry", passes: 2 * time.Second, run: groupOrderAfterExpiry},
	{name: "group/order after a change to 0", run: groupOrderAfterChange},
	{name: "group/order of a backlog", run: groupBacklog},
}

// Guide FIFO-queues: the order in which messages are sent and received is strictly preserved.
func groupOrder(x *exam) {
	q := x.fifo()
	x.sendAll(q, "a1", "a2", "a3")
	for _, body := range []string{"a1", "a2", "a3"} {
		x.delete(q, x.take(q, 1, body)...)
	}
}

// API SendMessageBatch: "For a FIFO queue, multiple messages within a single batch are enqueued in the order they are
// sent."
func groupBatchOrder(x *exam) {
	q := x.fifo()
	x.sendBatch(q, fifoEntries("a3", "a1", "a2"))
	x.want(q, "a3", "a1", "a2")
}

// Guide FIFO-queues-understanding-logic: "as many messages with the same message group ID as possible", up to ten.
func groupTen(x *exam) {
	q := x.fifo()
	var bodies []string
	for i := range 10 {
		bodies = append(bodies, "a"+strconv.Itoa(i))
	}
	x.sendBatch(q, fifoEntries(bodies...))
	x.take(q, 10, bodies...)
}

// As above: one group first.
func groupFill(x *exam) {
	q := x.fifo()
	x.sendAll(q, "a1", "b1", "a2", "b2", "a3")
	x.take(q, 3, "a1", "a2", "a3")
	x.take(q, 3, "b1", "b2")
}

// As above: then the next.
func groupSeveral(x *exam) {
	q := x.fifo()
	x.sendAll(q, "a1", "b1", "a2", "b2", "a3")
	x.take(q, 10, "a1", "a2", "a3", "b1", "b2")
}

// API ReceiveMessage: MessageGroupId, MessageDeduplicationId, SequenceNumber.
func groupAttributes(x *exam) {
	q := x.fifo()
	sent := x.send(q, "a1")
	m := x.one(q, "a1")
	if m.Attributes["MessageGroupId"] != "a" || m.Attributes["MessageDeduplicationId"] != "a1" {
		x.fatalf("group %q, deduplication ID %q, want a and a1", m.Attributes["MessageGroupId"], m.Attributes["MessageDeduplicationId"])
	}
	if got := m.Attributes["SequenceNumber"]; sent.SequenceNumber == nil || got != *sent.SequenceNumber {
		x.fatalf("SequenceNumber %s, sent with %s", got, str(sent.SequenceNumber))
	}
}

// API SendMessage, SequenceNumber: "The large, non-consecutive number", "128 bits", which "continues to increase for a
// particular MessageGroupId".
func groupSequence(x *exam) {
	q := x.fifo()
	last := ""
	for i := range 5 {
		seq := str(x.send(q, "a"+strconv.Itoa(i)).SequenceNumber)
		if _, err := strconv.ParseFloat(seq, 64); err != nil {
			x.fatalf("SequenceNumber %q is no number", seq)
		}
		if len(seq) < len(last) || len(seq) == len(last) && seq <= last {
			x.fatalf("SequenceNumber %s after %s", seq, last)
		}
		last = seq
	}
	for _, r := range x.sendBatch(q, fifoEntries("a8", "a9")).Successful {
		if r.SequenceNumber == nil || len(*r.SequenceNumber) < len(last) || *r.SequenceNumber <= last {
			x.fatalf("SequenceNumber %s after %s, in a batch", str(r.SequenceNumber), last)
		}
		last = *r.SequenceNumber
	}
}

// Guide FIFO-queues-understanding-logic: messages that became visible again are received in their order.
func groupOrderAfterExpiry(x *exam) {
	q := x.fifo(attrs{"VisibilityTimeout": "1"})
	x.sendAll(q, "a1", "a2", "a3")
	x.want(q, "a1", "a2", "a3")
	x.pass(2 * time.Second)
	for _, m := range x.want(q, "a1", "a2", "a3") {
		x.received(m, 2)
	}
}

// As above: also before what was sent since.
func groupOrderAfterChange(x *exam) {
	q := x.fifo()
	x.sendAll(q, "a1", "a2")
	m := x.take(q, 1, "a1")[0]
	x.send(q, "a3")
	x.visibility(q, m, 0)
	x.want(q, "a1", "a2", "a3")
}

// As above, with more than a receive takes, of several groups.
func groupBacklog(x *exam) {
	q := x.fifo()
	next := map[string]int{}
	for i := range 4 {
		x.sendBatch(q, fifoEntries("a"+strconv.Itoa(2*i), "b"+strconv.Itoa(2*i), "c"+strconv.Itoa(2*i), "a"+strconv.Itoa(2*i+1), "b"+strconv.Itoa(2*i+1), "c"+strconv.Itoa(2*i+1)))
	}
	for got := 0; got < 24; {
		batch := x.receive(q, 10)
		if len(batch) == 0 {
			x.fatalf("received %d of 24 messages", got)
		}
		for _, m := range batch {
			group := (*m.Body)[:1]
			if want := group + strconv.Itoa(next[group]); *m.Body != want {
				x.fatalf("received %s, want %s", *m.Body, want)
			}
			next[group]++
			got++
		}
		x.delete(q, batch...)
	}
}
