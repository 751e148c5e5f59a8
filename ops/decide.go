package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/opserr"
	"github.com/sqsonce/sqsonce/internal/opsview"
)

// whyHeld returns what but the message itself holds it back, or nil.
func (r *run) whyHeld(ctx context.Context, m *Message) error {
	r.mu.Lock()
	stopped, failed := r.stopped[m.Group], r.failed
	r.mu.Unlock()
	selected, err := r.o.selects(m)
	switch {
	case err != nil:
		return err
	case !selected:
		return opserr.ErrNotSelected
	case stopped != nil:
		return stopped
	case failed != nil:
		return failed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// whyLeft returns why a redrive does not send the message, or nil.
func (r *run) whyLeft(ctx context.Context, m *Message) error {
	if historyOf(m.Attributes).run == r.report.Run { // whatever the options select: its state, class and ID are others now
		return opserr.ErrCameBack
	}
	if err := r.whyHeld(ctx, m); err != nil {
		return err
	}
	switch {
	case m.Problem != nil && !m.noRecord():
		return m.Problem
	case r.d.destination(m) == "":
		return opserr.ErrNoDestination
	case r.o.MaxRedriven > 0 && m.Redriven >= r.o.MaxRedriven:
		return opserr.ErrTooOften
	}
	return r.o.stateLeft(m)
}

// stateLeft is the decision by the state of the event.
func (o *RedriveOptions) stateLeft(m *Message) error {
	switch {
	case m.State == dedup.StateReleased,
		m.State == dedup.StateCrashed && o.Crashed,
		m.noRecord() && !m.Expired && o.Unknown,
		m.noRecord() && m.Expired && o.Expired,
		m.State == StateUnknown && o.WithoutRecords:
		return nil
	}
	return inState(m)
}

func inState(m *Message) error {
	if m.noRecord() {
		return fmt.Errorf("%w: %s: %w", ErrState, m.State, m.Problem)
	}
	return fmt.Errorf("%w: %s: %s", ErrState, m.State, opsview.Do(m.State))
}

// Selection selects messages: those that all of the filters that are set select.
type Selection struct {
	// Classes are IDs of reason classes. Default: all.
	Classes []string
	// States of the messages' events. Default: all. What else decides about a message is said at the operation.
	States []dedup.RecordState
	// IDs are message IDs. Default: all.
	IDs []string
	// Filter is called for each message that the other filters select, concurrently. It must not change the message. Default: none.
	Filter func(*Message) bool
	// All says that no filter is meant to be set. [DLQ.Delete] needs it where none is. Default: false.
	All bool
}

// empty reports whether no filter is set. A list without an entry is none.
func (s *Selection) empty() bool {
	return len(s.Classes)+len(s.States)+len(s.IDs) == 0 && s.Filter == nil
}

// resolve reports what cannot be used. of is the name of the options.
func (s *Selection) resolve(of string, deletes bool) error {
	var errs []error
	for _, state := range s.States {
		if !slices.Contains(opsview.States(), state) {
			errs = append(errs, badField(of+".States", "has %.64q, which is no state", string(state)))
		}
	}
	switch {
	case s.All && !s.empty():
		errs = append(errs, badField(of+".All", "is set, must not be where a filter is"))
	case deletes && !s.All && s.empty():
		errs = append(errs, badField(of+".Selection", "has no filter: set one, or All if each message is meant"))
	}
	return errors.Join(errs...)
}

func (s *Selection) selects(m *Message) (selected bool, err error) {
	if errors.Is(m.Problem, opserr.ErrOtherSource) {
		return false, nil
	}
	wants := func(list []string, text string) bool { return len(list) == 0 || slices.Contains(list, text) }
	selected = wants(s.IDs, m.ID) && wants(s.Classes, m.Class.ID) && (len(s.States) == 0 || slices.Contains(s.States, m.State))
	if selected && s.Filter != nil {
		err = host.Contain(func() error { selected = s.Filter(m); return nil })
	}
	return selected, err
}

// Action is what became of a message.
type Action string

// The actions. A message that a redrive has given one of the last four is in the dead-letter queue as it was.
const (
	ActionExported       Action = "exported"        // its line is in the archive, and it is in the dead-letter queue as it was
	ActionDeleted        Action = "deleted"         // its line is in the archive, and it was deleted
	ActionRestored       Action = "restored"        // the dead-letter queue has a copy of it again
	ActionRedriven       Action = "redriven"        // SQS has its copy, and it was deleted
	ActionReplayed       Action = "replayed"        // SQS has its copy, and it is not in the dead-letter queue: DLQ.Replay
	ActionUndeleted      Action = "undeleted"       // SQS has its copy, or the archive its line, and it is still in the dead-letter queue: Err says why
	ActionUnknownOutcome Action = "unknown_outcome" // SQS may have its copy
	ActionSendFailed     Action = "send_failed"     // SQS did not take its copy
	ActionLeft           Action = "left"            // it was not sent, and not archived: Err says why
	ActionPlanned        Action = "planned"         // it would have been sent, or archived: DryRun
)

// Result is what became of one message.
type Result struct {
	ID, Group string // of the message in the dead-letter queue, or in the archive
	RecordKey string
	State     dedup.RecordState // when it was decided about
	Class     Class
	// Destination is the URL of the queue that a copy goes to; "" where that is not known.
	Destination string
	Action      Action
	Err         error             // why it is none of Redriven, Replayed, Exported, Deleted, Restored and Planned
	SentID      string            // the message ID of its copy
	After       dedup.RecordState // Completed, Released or Crashed: what the copy's delivery came to, where that was watched
}

// Report is what a redrive, an export, a delete or a restore did. It has one result for each message that it saw.
type Report struct {
	// Run is the run's ID, which is in the redriven attribute of what a redrive sent, and in the lines of an archive.
	Run string
	// Total is how many messages the queue had at the start, by SQS's approximate count. No more are redriven, or archived. What is
	// not in Results was hidden: by another consumer, or in FIFO groups behind messages that were left. Of a restore it is how many
	// messages were read.
	Total int
	// Behind is how many messages of a FIFO queue an export or a delete has not seen: SQS did not show them, behind what it left.
	Behind int
	// Torn is the number of the archive's last line, where that was not written to its end. An export or a delete has removed it, a
	// restore does not use it: its message was not deleted for it. 0: there was none.
	Torn int
	// Results are in the order in which SQS returned the messages, or in that of the archive.
	Results []*Result
}

// Count returns how many messages had one of these actions.
func (r *Report) Count(actions ...Action) (n int) {
	for _, result := range r.Results {
		for _, a := range actions {
			if result.Action == a {
				n++
			}
		}
	}
	return n
}
