package ops

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	defaultRate        = 50
	defaultMaxRedriven = 3
)

// RedriveOptions configure [DLQ.Redrive].
type RedriveOptions struct {
	Selection

	// DryRun decides about all messages that SQS shows, and makes them visible again without a send.
	// Default: false.
	DryRun bool
	// Crashed also sends messages whose event's consumer died while it ran, except those that need CrashLoops. The effect may have
	// happened, and the event runs again.
	// Default: false, they are left.
	Crashed bool
	// CrashLoops has Crashed also send messages whose event's consumers died twice or more often ([ErrCrashLoop]). They may kill the
	// next one, with everything that it runs.
	// Default: false, they are left.
	CrashLoops bool
	// Unknown also sends messages whose event's record was not found ([ErrNoRecord]), except those that need Expired. The event
	// may still have run, because with another key function or another store the consumer's record is elsewhere, and may say that
	// it crashed. A canary that completes proves that such an event runs now, and has its record under this key. It doesn't prove
	// that the others had not run.
	// Default: false, they are left.
	Unknown bool
	// Expired also sends messages without a record that are so old that the record may have expired. The event may be done, and
	// runs again.
	// Default: false, they are left.
	Expired bool
	// WithoutRecords sends messages without reading records, if Options.Store is not set. It also sends events that are done,
	// which the consumer's deduplication then drops.
	// Default: false, they are left.
	WithoutRecords bool
	// SkipAhead also sends messages of a FIFO group behind a message that was left, so the group loses its order. It doesn't send
	// messages behind one with an unknown outcome. SQS shows at most ten messages behind those that are left.
	// Default: false, a message that is left holds back its group.
	SkipAhead bool
	// Canary is how many messages of each [Class] are sent first, each when the event of the one before is completed. In a class
	// with several reasons it is how many of each reason, for the first 10 reasons of all classes. A canary that fails, or is not
	// completed within CanaryTimeout, ends the redrive with [ErrStopped]. Negative: 0 canaries.
	// Default: 1 if Options.Store is set, 0 otherwise and in a dry run.
	Canary int
	// CanaryTimeout bounds the wait for one canary, which comes behind everything that is in the queue. The queue's DelaySeconds
	// are added to it.
	// Default: 2 min. Limits: at least 1 s.
	CanaryTimeout time.Duration
	// MaxRedriven leaves messages that were redriven this often before. Negative: unlimited.
	// Default: 3.
	MaxRedriven int
	// Rate is the average number of messages to send in a second, up to ten at once. Negative: unlimited.
	// Default: 50.
	Rate int
	// Journal is a file, made with mode 0600, to which the redrive writes each message ID before it sends the copy, after the
	// send, and after the delete. Each line is on the disk before the next step. The file doesn't contain bodies.
	//
	// If a redrive was killed, start another one with its journal. It deletes the messages that the first one has sent, without a
	// second send, whatever the filters are. It repeats the sends that the kill
	// interrupted. While a redrive runs, it locks a file with the queue's name in the journal's folder,
	// which refuses other redrives with a journal in that folder ([errBusy]). On Windows it doesn't, so never let two redrives
	// write to one journal at once. Without a journal, each of two redrives sees the messages that the other has not hidden.
	// Default: "", the redrive runs without a journal.
	Journal string
	// OnResult is called with each message's result when it is known, and again when its Action or After has changed. Use it to
	// show progress. Calls are serial, and the redrive waits for each. A panic ends the redrive with its error. Don't change the
	// result, and don't read it after the call.
	// Default: nil.
	OnResult func(*Result)
}

func (o *RedriveOptions) resolve(hasStore bool) error {
	var errs []error
	o.MaxRedriven = cmp.Or(o.MaxRedriven, defaultMaxRedriven)
	o.Rate = cmp.Or(o.Rate, defaultRate)
	if o.Canary > 0 && !hasStore {
		errs = append(errs, badField("RedriveOptions.Canary", "is %d, must be 0 where Options.Store is not set: nothing tells what becomes of it", o.Canary))
	}
	if o.Canary = cmp.Or(o.Canary, defaultCanary); !hasStore || o.DryRun {
		o.Canary = 0
	}
	if o.CanaryTimeout = cmp.Or(o.CanaryTimeout, canaryTimeout); o.CanaryTimeout < time.Second {
		errs = append(errs, badField("RedriveOptions.CanaryTimeout", "is %s, must be at least 1s", o.CanaryTimeout))
	}
	return errors.Join(errs...)
}

// Redrive sends messages back to the queues that they came from, as the same events, and deletes each message once SQS has its
// copy. A copy has the body, the attributes, the group and the trace header of its message, without reject-reason and
// dead-letter-source. It has an event-key if the event's key would change otherwise, such as a key that is the message ID. If
// there is room, it has a redriven attribute with the number of redrives so far, the run's ID, and the time in ms when the event
// was first sent.
//
// Redrive decides about a message by the state of its event, which it reads just before the send:
//
//	Released            sent, unless its last run ended in a crash: as Crashed
//	None                sent
//	Crashed             left, unless Crashed is set, and in a loop CrashLoops
//	Completed           left, because its copy would not run
//	Running             left, because its copy would be delayed
//	Foreign             left
//	Unknown, no record  left ([ErrNoRecord]), unless Unknown is set, or Expired if the record may have expired
//	Unknown, no Store   left, unless WithoutRecords is set
//
// A consumer may remember for a minute that an event was done, but not for a message with the redriven attribute. Where that has
// no room, Redrive leaves the message for 65 s after a reopen ([ErrRemembered]). The first message of each class is a canary, and
// the others wait until its event is completed. Redrive watches every 50th of the others without waiting for it. A canary that
// fails, or the third watched message that fails again, ends it with [ErrStopped].
//
// On FIFO the messages of a group go back one after the other, in the queue's order. A message that is left holds back those behind
// it, unless its event is completed or SkipAhead is set. So does a message whose outcome is unknown, because SQS has not answered
// for 285 s or ctx has ended meanwhile. The next redrive sends it with the same MessageDeduplicationId.
//
// Redrive ends after two receives without new messages, after as many messages as the queue had at the start, and at a failed call. If
// SQS counted none, it receives all the same, and leaves what it finds.
// When ctx ends, sends that are under way have 20 s. Messages that were not deleted are visible again when it returns, or after
// Options.Hold if the process is killed. The report has the result of each message, also with an error.
func (d *DLQ) Redrive(ctx context.Context, optFns ...func(*RedriveOptions)) (Report, error) {
	var o RedriveOptions
	for _, fn := range optFns {
		fn(&o)
	}
	if err := o.resolve(d.opts.Store != nil); err != nil {
		return Report{}, err
	}
	if err := d.refuseChained("Redrive"); err != nil {
		return Report{}, err
	}
	if o.Journal != "" {
		unlock, err := d.lockIn("Redrive", filepath.Dir(o.Journal))
		if err != nil {
			return Report{}, err
		}
		defer unlock()
	}
	report, err := d.newReport(ctx, "Redrive")
	if err != nil {
		return Report{}, err
	}
	r := newRun(d, o, report)
	if o.Journal != "" {
		err := r.keepJournal(o.Journal, false)
		defer r.journal.close()
		if err != nil {
			return Report{}, err
		}
	}
	if err = errors.Join(r.redrive(ctx), context.Cause(ctx)); err == nil {
		err = r.journal.write(journalLine{Done: true})
	}
	return r.report, err
}

// remembered is how long a consumer may remember that an event was done: dedup's minute, and the difference of clocks.
const remembered = 65 * time.Second

// remembered returns how long a consumer may yet remember that the event was done, where its record has been reopened: the fence
// of that is its time in ms. A clock that is behind the store's makes it no longer.
func (m *Message) remembered() time.Duration {
	if !m.reopened() {
		return 0
	}
	return max(0, min(time.Until(time.UnixMilli(m.Record.Fence).Add(remembered)), remembered))
}

// reopened reports whether an operator has released the event's record, and no delivery has acquired it since.
func (m *Message) reopened() bool {
	return m.State == dedup.StateReleased && strings.HasPrefix(m.Record.Owner, host.OperatorPrefix)
}
