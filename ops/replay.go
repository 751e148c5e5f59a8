package ops

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// ReplayOptions configure [DLQ.Replay].
type ReplayOptions struct {
	// Again names the completed run that is to be repeated: the fence of the event's record as it was looked at, which is the time
	// of that run in ms. The event does not run once more where it has run since. Default: none, a completed event is refused.
	Again int64
	// Committed also replays an event whose handler's writes were committed in one transaction with its record: they are made again.
	// Only dynamostore can tell; a sqlstore.Inbox cannot. Default: false, it is refused.
	Committed bool
	// Name is the operator's, for whoever looks at the record: see dedup.ReopenOptions. Default: none.
	Name string
	// Timeout bounds the wait for the end of the delivery, which comes behind everything that is in the queue. Default: 2 min. At
	// least 1 s. Negative: no wait.
	Timeout time.Duration
	// Progress is called at once and each second while the replay waits, with the time that is left at most. Until the copy is sent it
	// waits for consumers to forget that the event was done; after that, for the end of the copy's delivery. Progress must not block.
	// If it panics, that ends the replay. Default: none.
	Progress func(sent bool, left time.Duration)
}

func (o *ReplayOptions) resolve(m *Message, note string, store dedup.Inspector) error {
	var errs []error
	if m == nil {
		errs = append(errs, badField("m", "is nil"))
	}
	if strings.TrimSpace(note) == "" {
		errs = append(errs, badField("note", "is empty, must say why the event runs again"))
	}
	if _, ok := store.(dedup.Reopener); !ok {
		errs = append(errs, badField("Options.Store", "is %T, must be a dedup.Reopener", store))
	}
	if o.Timeout = cmp.Or(o.Timeout, canaryTimeout); o.Timeout > 0 && o.Timeout < time.Second {
		errs = append(errs, badField("ReplayOptions.Timeout", "is %s, must be at least 1s", o.Timeout))
	}
	return errors.Join(errs...)
}

// Replay runs an event again whose record is completed, by sending a message of it to the queue that it came from. The message is
// one of [DLQ.List], which is looked for in the queue, by its ID, and hidden meanwhile; or one without a receipt handle, which is
// in no queue, such as one of [ReadArchive]. The note says why, for whoever looks at the record, which keeps its first 256 bytes.
//
// The record is reopened. Then Replay waits 65 s, since a consumer may remember for a minute that the event was done, and would
// acknowledge the copy without running it. If the record is still as the reopen left it a copy is sent, as [DLQ.Redrive] sends
// one. Once SQS has acknowledged that, the message is deleted from the dead-letter queue. Last Replay waits for the end of the
// delivery: Result.After says what that came to.
//
// What is done depends on the state of the event, which is read first, when the message was found, and before the send:
//
//	Completed            refused; Again replays it
//	Released, reopened   sent without another reopen: an operator, or a replay that has stopped, has reopened the record
//	Released, by a run   refused: Redrive sends it, from an archive after Restore
//	Crashed              refused: the same, when it was found out that the event was not done
//	Running, Foreign     refused
//	Unknown              refused
//
// A refusal has sent nothing: it is [ErrState], dedup.ErrChanged (the record changed meanwhile: look again), or its text says why. [ErrReopened] says
// that Replay has stopped after the reopen: ctx has ended, a call has failed, or no answer came for the send, which may have been
// carried out. The same call goes on, with the same MessageDeduplicationId: it reopens nothing, and waits for what is left of 65
// s by the clock. It runs nothing twice, whatever was sent, and wherever the process was killed: a run since then has another
// fence than Again, and is refused. The message of that stays in the dead-letter queue, and so does one whose event is run
// by a delivery that comes in the 65 s. A killed process hides messages for a minute.
//
// Any delivery of the event after the reopen runs it, and Replay's copy is then acknowledged without a run; so of several replays
// at once one has its effect. An event that fails again is one of the source queue. That is an error, and so it is where
// the delivery has not ended within Timeout. Timeout bounds that wait alone; the others are bounded by ctx, and by 5 min for the
// send.
//
// On FIFO a replayed event comes behind everything that its group has in the queue. Its effect comes after those of newer events,
// which it may undo: its order is lost. While it fails it holds back its group as any other message does.
func (d *DLQ) Replay(ctx context.Context, m *Message, note string, optFns ...func(*ReplayOptions)) (Result, error) {
	var o ReplayOptions
	for _, fn := range optFns {
		fn(&o)
	}
	if err := o.resolve(m, note, d.opts.Store); err != nil {
		return Result{}, err
	}
	named := *m
	res := Result{ID: m.ID, Group: m.Group, Action: ActionLeft}
	r := &replay{newRun(d, RedriveOptions{}, Report{Run: rand.Text()}), o, note, &named, m.RecordKey, &res}
	if res.Err = r.refuseQueue(ctx); res.Err == nil {
		res.Err = r.replay(ctx)
	}
	return res, res.Err
}
