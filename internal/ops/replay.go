package ops

import (
	"cmp"
	"context"
	"crypto/rand"
	"time"
)

// ReplayOptions configure [DLQ.Replay].
type ReplayOptions struct {
	// Again names the completed run to repeat. It is the fence of the event's record as you have seen it, which is the time of
	// that run in ms. If the event has run since, it doesn't run once more.
	// Default: 0, Replay refuses a completed event.
	Again int64
	// Committed also replays an event whose handler committed its writes in one transaction with the record. The handler makes
	// these writes again. Only dynamostore can detect such an event, a sqlstore.Inbox can't.
	// Default: false, Replay refuses it.
	Committed bool
	// Name is the operator's name, for people who look at the record. See dedup.ReopenOptions.
	// Default: "".
	Name string
	// Timeout bounds the wait for the end of the delivery, which comes behind everything that is in the queue. Negative: Replay
	// doesn't wait.
	// Default: 2 min. Limits: at least 1 s.
	Timeout time.Duration
	// Progress is called at once and each second while the replay waits, with the longest time that may be left. Until the copy
	// is sent, the replay waits for consumers to forget that the event was done. After that it waits for the end of the copy's
	// delivery. Progress must not block. A panic ends the replay.
	// Default: nil.
	Progress func(sent bool, left time.Duration)
}

// Replay runs an event with a completed record again, by sending a message of the event to the queue that it came from. Pass a
// message of [DLQ.List], which Replay finds in the queue by its ID and hides meanwhile. Or pass a message without a receipt
// handle that is in no queue, such as one of [ReadArchive]. The note says why, for people who look at the record. The record
// keeps its first 256 bytes.
//
// Replay reopens the record. Then it waits 65 s, because a consumer may remember for a minute that the event was done, and would
// acknowledge the copy without running it. If the record is still as the reopen left it, Replay sends a copy, as [DLQ.Redrive]
// does. Once SQS has acknowledged the copy, Replay deletes the message from the dead-letter queue. Last it waits for the end of
// the delivery. Result.After is the state in which the delivery left the record.
//
// Replay reads the state of the event first, again when it has found the message, and again before the send. It acts on it like
// this:
//
//	Completed            refused, unless Again names the run
//	Released, reopened   sent without another reopen, because an operator or a stopped replay has reopened the record
//	Released, by a run   refused, use Redrive, after Restore for an archive
//	Crashed              refused, use these when you know that the event was not done
//	Running, Foreign     refused
//	Unknown              refused
//
// [ErrReopened] says that Replay has stopped after the reopen. The same call goes on with the same MessageDeduplicationId. It doesn't
// reopen the record again, and waits for the rest of the 65 s by the clock. It never runs an event twice, whatever was sent, and
// wherever the process was killed: a run since then has another fence than Again, and Replay refuses it. The message of such an event
// stays in the dead-letter queue, and so does one whose event is run by a delivery that comes in the 65 s.
//
// Any delivery of the event after the reopen runs it, and the consumer then acknowledges Replay's copy without a run. So one of
// several concurrent replays has its effect. Timeout bounds the wait for the delivery. ctx bounds the other waits, and the send has
// 5 min. On FIFO a replayed event comes behind everything that its group has in the queue.
func (d *DLQ) Replay(ctx context.Context, m *Message, note string, optFns ...func(*ReplayOptions)) (Result, error) {
	var o ReplayOptions
	for _, fn := range optFns {
		fn(&o)
	}
	if o.Timeout = cmp.Or(o.Timeout, canaryTimeout); o.Timeout > 0 && o.Timeout < time.Second {
		return Result{}, badField("ReplayOptions.Timeout", "is %s, must be at least 1s", o.Timeout)
	}
	named := *m
	res := Result{ID: m.ID, Group: m.Group, Action: ActionLeft}
	r := &replay{newRun(d, RedriveOptions{}, Report{Run: rand.Text()}), o, note, &named, m.RecordKey, &res}
	if res.Err = r.refuseQueue(ctx); res.Err == nil {
		res.Err = r.replay(ctx)
	}
	return res, res.Err
}
