package sqstest

import (
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var groupCases = []testCase{
	// Guide FIFO-queues: the order in which messages are sent and received is strictly preserved. A delete frees the next.
	{name: "group/order of sending", run: func(x *exam) {
		q := x.fifo()
		x.sendAll(q, "a1", "a2", "a3")
		for _, body := range []string{"a1", "a2", "a3"} {
			x.delete(q, x.take(q, 1, body)...)
		}
	}},
	// API SendMessageBatch: "For a FIFO queue, multiple messages within a single batch are enqueued in the order they are
	// sent."
	{name: "group/order of a batch", run: func(x *exam) {
		q := x.fifo()
		x.sendBatch(q, fifoEntries("a3", "a1", "a2"))
		x.want(q, "a3", "a1", "a2")
	}},
	// Guide FIFO-queues-understanding-logic: "as many messages with the same message group ID as possible", up to ten.
	{name: "group/ten of one in one receive", run: func(x *exam) {
		q := x.fifo()
		var bodies []string
		for i := range 10 {
			bodies = append(bodies, "a"+strconv.Itoa(i))
		}
		x.sendBatch(q, fifoEntries(bodies...))
		x.take(q, 10, bodies...)
	}},
	// As above: the messages of one group come first.
	{name: "group/as many of one as fit", run: func(x *exam) {
		q := x.fifo()
		x.sendAll(q, "a1", "b1", "a2", "b2", "a3")
		x.take(q, 3, "a1", "a2", "a3")
		x.take(q, 3, "b1", "b2")
	}},
	// As above: then those of the next group.
	{name: "group/all that fit of several", run: func(x *exam) {
		q := x.fifo()
		x.sendAll(q, "a1", "b1", "a2", "b2", "a3")
		x.take(q, 10, "a1", "a2", "a3", "b1", "b2")
	}},
	// API ReceiveMessage: MessageGroupId, MessageDeduplicationId, SequenceNumber.
	{name: "group/system attributes", run: func(x *exam) {
		q := x.fifo()
		sent := x.send(q, "a1")
		m := x.one(q, "a1")
		if m.Attributes["MessageGroupId"] != "a" || m.Attributes["MessageDeduplicationId"] != "a1" {
			x.fatalf("group %q, deduplication ID %q, want a and a1", m.Attributes["MessageGroupId"], m.Attributes["MessageDeduplicationId"])
		}
		if got := m.Attributes["SequenceNumber"]; sent.SequenceNumber == nil || got != *sent.SequenceNumber {
			x.fatalf("SequenceNumber %s, sent with %s", got, str(sent.SequenceNumber))
		}
	}},
	// API SendMessage, SequenceNumber: "The large, non-consecutive number", "128 bits", which "continues to increase for a
	// particular MessageGroupId".
	{name: "group/sequence numbers rise", run: func(x *exam) {
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
	}},
	// Guide FIFO-queues-understanding-logic: messages that became visible again are received in their order.
	{name: "group/order after expiry", passes: 2 * time.Second, run: func(x *exam) {
		q := x.fifo(attrs{"VisibilityTimeout": "1"})
		x.sendAll(q, "a1", "a2", "a3")
		x.want(q, "a1", "a2", "a3")
		x.pass(2 * time.Second)
		for _, m := range x.want(q, "a1", "a2", "a3") {
			x.received(m, 2)
		}
	}},
	// As above: also before messages that were sent later.
	{name: "group/order after a change to 0", run: func(x *exam) {
		q := x.fifo()
		x.sendAll(q, "a1", "a2")
		m := x.take(q, 1, "a1")[0]
		x.send(q, "a3")
		x.visibility(q, m, 0)
		x.want(q, "a1", "a2", "a3")
	}},
	// As above, with several groups and more messages than one receive returns.
	{name: "group/order of a backlog", run: func(x *exam) {
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
	}},
}

var groupLockCases = []testCase{
	// Guide FIFO-queues-understanding-logic: no additional messages from the same message group are returned until you delete
	// the message or it becomes visible. Whoever holds what was received sees no more of a group than one receive returns, ten at most. Given back, they come
	// first again: only deletes show what lies behind them.
	{name: "group lock/shows at most ten while held", run: func(x *exam) {
		q := x.fifo()
		var bodies []string
		for i := range 23 {
			bodies = append(bodies, "a"+string(rune('A'+i)))
		}
		for batch := range slices.Chunk(bodies, 10) {
			x.sendBatch(q, fifoEntries(batch...))
		}
		for range 3 {
			held := x.shown(q)
			if n := len(held); n == 0 || n > 10 {
				x.fatalf("%d messages of a group are shown while held, want 1 to 10", n)
			}
			x.same(q, held, bodies[:len(held)]...)
			x.visibilityBatch(q, visibilityEntries(0, handlesOf(held)...))
		}
		held := x.shown(q)
		x.delete(q, held...)
		x.same(q, x.receive(q, 1), bodies[len(held)])
	}},
	// As above: the end of the visibility timeout ends it.
	{name: "group lock/ends with expiry", passes: 2 * time.Second, run: func(x *exam) {
		q := x.fifo(attrs{"VisibilityTimeout": "1"})
		x.sendAll(q, "a1", "a2")
		x.take(q, 1, "a1")
		x.pass(2 * time.Second)
		x.want(q, "a1", "a2")
	}},
	// As above: of several messages in flight, each locks the group.
	{name: "group lock/stays while any is in flight", run: func(x *exam) {
		q := x.fifo()
		x.sendAll(q, "a1", "a2", "a3")
		got := x.take(q, 2, "a1", "a2")
		x.delete(q, got[0])
		x.none(q)
		x.delete(q, got[1])
		x.one(q, "a3")
	}},
	// As above.
	{name: "group lock/rest after expiry", passes: 2 * time.Second, run: func(x *exam) {
		q := x.fifo(attrs{"VisibilityTimeout": "1"})
		x.sendAll(q, "a1", "a2", "a3")
		x.delete(q, x.take(q, 3, "a1", "a2", "a3")[0])
		x.pass(2 * time.Second)
		x.want(q, "a2", "a3")
	}},
	// As above: receives of one message each return one message of each group, and then nothing.
	{name: "group lock/one at a time", run: func(x *exam) {
		q := x.fifo()
		x.sendAll(q, "a1", "a2", "b1")
		x.take(q, 1, "a1")
		x.take(q, 1, "b1")
		x.take(q, 1)
	}},
	// Guide FIFO-queues: order is strict, so a message is not received before one that was sent earlier and is in flight.
	{name: "group lock/released follower waits for the head", run: func(x *exam) {
		q := x.fifo()
		x.sendAll(q, "a1", "a2")
		got := x.take(q, 2, "a1", "a2")
		x.visibility(q, got[1], 0)
		x.none(q)
		x.visibility(q, got[0], 0)
		x.want(q, "a1", "a2")
	}},
	// The same rule the other way round: the first message is visible and no earlier one is in flight, so it is received. What
	// follows the message in flight is not. The authors of LocalStack saw it on AWS (their pull request 13386): one receives "all messages
	// of that group up until the message that is still invisible".
	{name: "group lock/released head comes back before its follower", run: func(x *exam) {
		q := x.fifo()
		x.sendAll(q, "a1", "a2", "a3")
		got := x.take(q, 2, "a1", "a2")
		x.visibility(q, got[0], 0)
		x.take(q, 10, "a1")
	}},
	// Guide FIFO-queues-understanding-logic: no more of the group, whenever it was sent.
	{name: "group lock/new message waits", run: func(x *exam) {
		q := x.fifo()
		m := x.sendOne(q, "a1")
		x.send(q, "a2")
		x.none(q)
		x.delete(q, m)
		x.one(q, "a2")
	}},
	// Guide FIFO-queues-understanding-logic.
	{name: "group lock/deleted follower leaves the head locked", run: func(x *exam) {
		q := x.fifo()
		x.sendAll(q, "a1", "a2", "a3")
		got := x.take(q, 2, "a1", "a2")
		x.delete(q, got[1])
		x.none(q)
		x.visibility(q, got[0], 0)
		x.want(q, "a1", "a3")
	}},
}

// shown receives until nothing more is returned.
func (x *exam) shown(q *queue) (all []types.Message) {
	for {
		batch := x.receive(q, 10)
		if len(batch) == 0 {
			return all
		}
		all = append(all, batch...)
	}
}

var groupHandleCases = []testCase{
	// API ReceiveMessage: "if a consumer whose message processing time is longer than the visibility timeout tries to delete
	// the processed messages, the action fails with an error". The handle's receive has ended, too, if another receive has the message. AWS does not
	// say which of the two errors for a handle it returns.
	{name: "FIFO handle/delete with a superseded one refused", run: func(x *exam) {
		q := x.fifo()
		first := x.sendOne(q, "a1")
		x.visibility(q, first, 0)
		second := x.one(q, "a1")
		x.fails("a delete with a superseded handle", x.tryDelete(q, first.ReceiptHandle), invalidValue, invalidHandle)
		x.visibility(q, second, 0)
		x.one(q, "a1")
	}},
	// As above, API DeleteMessageBatch: "reported individually".
	{name: "FIFO handle/delete in a batch after expiry fails by entry", passes: 2 * time.Second, run: func(x *exam) {
		q := x.fifo(attrs{"VisibilityTimeout": "1"})
		x.sendAll(q, "a1", "b1")
		got := x.want(q, "a1", "b1")
		x.visibility(q, got[1], 600)
		x.pass(2 * time.Second)
		out := x.deleteBatch(q, deleteEntries(got[0].ReceiptHandle, got[1].ReceiptHandle))
		x.failed(out.Failed, "0", invalidValue)
		if len(out.Successful) != 1 {
			x.fatalf("%d deleted, want 1", len(out.Successful))
		}
	}},
	// API DeleteMessage: deleting a deleted message succeeds, on every queue.
	{name: "FIFO handle/delete twice", run: func(x *exam) {
		q := x.fifo()
		m := x.sendOne(q, "a1")
		x.delete(q, m, m)
	}},
	// As on a standard queue.
	{name: "FIFO handle/change after expiry has no effect", passes: 2 * time.Second, run: func(x *exam) { x.changeExpired(x.fifo(attrs{"VisibilityTimeout": "1"})) }},
	// As on a standard queue.
	{name: "FIFO handle/change with a superseded one", run: func(x *exam) { x.changeSuperseded(x.fifo()) }},
}
