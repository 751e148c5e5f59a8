package ops

import (
	"cmp"
	"context"
	"crypto/rand"
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

	// DryRun decides about all messages that SQS shows, and gives them back. Default: false.
	DryRun bool
	// Crashed also sends messages whose event's consumer died while it ran: the effect may have happened, and the event runs
	// again. Default: false, they are left.
	Crashed bool
	// Unknown also sends messages under whose key there is no record ([ErrNoRecord]), but for those that Expired is for. That no
	// record was found does not say that the event never ran: with another key function or another store the consumer's record is
	// elsewhere, and may say that it crashed. A canary waits for that record: see Canary. Default: false, they are left.
	Unknown bool
	// Expired also sends messages without a record that are so old that the record may have expired: the event may be done, and
	// runs again. Default: false, they are left.
	Expired bool
	// WithoutRecords sends without a look at records, where Options.Store is not set: also what is done, which the consumer's
	// deduplication then drops. Default: false, and Options.Store is required.
	WithoutRecords bool
	// SkipAhead also sends messages of a FIFO group behind one that was left, and so gives up its order; not behind one whose
	// outcome is unknown. SQS shows at most ten messages behind those that are left. Default: false, what is left holds back its
	// group.
	SkipAhead bool
	// Canary is how many messages are sent first, each when the event of the one before was completed. One that fails, or is not
	// completed within CanaryTimeout, ends the redrive with [ErrStopped]. Default: 1, where Options.Store is set; none in a dry run.
	// Negative: none.
	Canary int
	// CanaryTimeout bounds the wait for one canary, which comes behind everything that is in the queue.
	// Default: 2 min. At least 1 s.
	CanaryTimeout time.Duration
	// MaxRedriven leaves messages that were redriven so often before. Default: 3. Negative: no limit.
	MaxRedriven int
	// Rate is how many messages a second are sent on average, up to ten at once. Default: 50. Negative: no limit.
	Rate int
	// Journal is a file, made with mode 0600, in which each message ID is written before its copy is sent, after that, and when it was
	// deleted; each line is on the disk before the next step. Bodies are not in it. A redrive with the journal of one that was killed
	// deletes what that has sent, without a second send, whatever the filters are. While it runs, the lock of a file with the
	// queue's name in the journal's folder refuses other redrives with a journal there: [ErrBusy]. On Windows it does not: two
	// redrives must not write to one journal at once. Without a journal each of two redrives sees what the other has not hidden.
	// Default: none.
	Journal string
	// OnResult is called with each message's result when it is known what became of the message, and again when its Action or
	// After has changed: for who shows how far it is. Calls are serial, and the redrive waits for each. A panic ends the redrive
	// with its error. The result must not be changed, and not be read after the call. Default: none.
	OnResult func(*Result)
}

func (o *RedriveOptions) resolve(hasStore bool) error {
	errs := []error{o.Selection.resolve("RedriveOptions", false)}
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
	if o.Journal != "" && o.DryRun {
		errs = append(errs, badField("RedriveOptions.Journal", "is set, must not be in a dry run"))
	}
	switch {
	case hasStore && o.WithoutRecords:
		errs = append(errs, badField("RedriveOptions.WithoutRecords", "is set, must not be where Options.Store is"))
	case !hasStore && !o.WithoutRecords:
		errs = append(errs, badField("RedriveOptions.WithoutRecords", "is not set, must be where Options.Store is not: nothing tells what is done already"))
	}
	return errors.Join(errs...)
}

// Redrive sends messages back to the queues that they came from, as the same events, and deletes each one once SQS has its copy. A
// copy has the body, the attributes, the group and the trace header of its message, without reject-reason and dead-letter-source.
// It has an event-key where the event's key would change otherwise, such as that of the message ID, and a redriven attribute
// where there is room: how often it was redriven, the run's ID, and when the event was first sent, in ms.
//
// What is sent is decided by the state of the message's event, which is read just before:
//
//	Released            sent
//	Crashed             left; Crashed sends it
//	Completed           left: its copy would do nothing
//	Running             left: its copy would be delayed
//	Foreign             left
//	Unknown, no record  left ([ErrNoRecord]); Unknown sends it, or Expired where the record may have expired
//	Unknown, no Store   left; WithoutRecords sends it
//
// Left is also what has another Problem, what was redriven MaxRedriven times before, what this run has sent and came back, and what
// would lose its key. A message whose record was reopened is sent 65 s after that: until
// then a consumer may remember that it was done.
//
// The first message is a canary: the others wait until its event is completed ([ErrStopped]). Of those every 50th is watched, without
// a wait: the third that fails again ends the redrive ([ErrStopped]).
//
// On FIFO the messages of a group are sent one after the other, in the queue's order. One that is left holds back those behind it,
// unless its event is completed, or SkipAhead. So does one whose outcome is unknown: SQS has not answered for 285 s, or ctx has ended meanwhile. It stays, and
// the next redrive sends it with the same MessageDeduplicationId; what comes of two copies is up to the consumer's deduplication.
//
// It ends when two receives have found nothing more, or after as many messages as the queue had at the start. A failed call of SQS
// ends it, and so does a queue that takes no messages; a message that SQS refuses is left. When ctx ends no more is sent; what is
// under way has 20 s. What was not deleted is visible again when Redrive returns. The report says what became of each message,
// also with an error. A process that is killed leaves messages hidden for Options.Hold, and some may be sent that are not deleted. After
// that, redrive again: on FIFO SQS drops a copy within five minutes of the first one, later the event's record does. With the
// Journal no second copy is sent, but of what was under way. A journal that cannot be written ends the redrive.
//
// A queue with a redrive policy of its own is refused, unless Options.SpendReceives. So is one out of which a move task takes
// messages ([ErrBusy]), and one from which another process redrives ([ErrBusy]).
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
	if err := d.checkMoveTasks(ctx, "Redrive"); err != nil {
		return Report{}, err
	}
	visible, hidden, err := d.count(ctx)
	if err != nil {
		return Report{}, err
	}
	r := newRun(d, o, Report{Run: rand.Text(), Total: visible + hidden})
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

// remembered is how long a consumer may remember that an event was done: dedup's minute, and what clocks differ.
const remembered = 65 * time.Second

// awaitReopened waits until no consumer can remember that an event was done whose record has been reopened, and looks at these records
// again, as long as one of them was reopened meanwhile.
func (r *run) awaitReopened(ctx context.Context, batch []*Message) {
	awaited := map[*Message]int64{} // a fence, once: the store's clock may be ahead
	for !r.o.DryRun && ctx.Err() == nil {
		var reopened []*Message
		var wait time.Duration
		for _, m := range batch {
			if left := m.remembered(); left > 0 && awaited[m] != m.Record.Fence {
				reopened, wait = append(reopened, m), max(wait, left)
				awaited[m] = m.Record.Fence
			}
		}
		if len(reopened) == 0 {
			return
		}
		host.Wait(ctx, wait)
		r.d.join(ctx, reopened)
	}
}

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
	return m.State == dedup.StateReleased && strings.HasPrefix(m.Record.Owner, dedup.OperatorPrefix)
}
