package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
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
		return ErrNotSelected
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
		return ErrCameBack
	}
	if err := r.whyHeld(ctx, m); err != nil {
		return err
	}
	switch {
	case m.Problem != nil && !m.noRecord():
		return m.Problem
	case r.d.destination(m) == "":
		return ErrNoDestination
	case r.o.MaxRedriven > 0 && m.Redriven >= r.o.MaxRedriven:
		return ErrTooOften
	}
	return r.o.stateLeft(m)
}

// stateLeft is the decision by the state of the event.
func (o *RedriveOptions) stateLeft(m *Message) error {
	switch {
	case m.State == dedup.StateCrashed:
		if !o.Crashed {
			return fmt.Errorf("%w: %s: %w: %s", ErrState, m.State, errCrashed, Do(m.State))
		} else if m.Crashes > 1 && !o.CrashLoops {
			return fmt.Errorf("%w: %w: %d times at least", ErrState, ErrCrashLoop, m.Crashes)
		}
		return nil
	case m.State == dedup.StateReleased, m.State == StateNone,
		m.noRecord() && !m.Expired && o.Unknown,
		m.noRecord() && m.Expired && o.Expired,
		m.Problem == nil && m.State == StateUnknown && o.WithoutRecords:
		return nil
	}
	return inState(m)
}

func inState(m *Message) error {
	if m.noRecord() {
		return fmt.Errorf("%w: %s: %w", ErrState, m.State, m.Problem)
	}
	return fmt.Errorf("%w: %s: %s", ErrState, m.State, Do(m.State))
}

// Selection selects the messages that match all filters that are set, and all messages without one.
type Selection struct {
	// Classes are IDs of reason classes.
	// Default: all.
	Classes []string
	// States of the messages' events. Each operation documents its further conditions.
	// Default: all.
	States []dedup.RecordState
	// IDs are message IDs.
	// Default: all.
	IDs []string
	// Filter is called concurrently for each message that the other filters select. It must not change the message.
	// Default: nil.
	Filter func(*Message) bool
}

func (s *Selection) selects(m *Message) (selected bool, err error) {
	if errors.Is(m.Problem, ErrOtherSource) {
		return false, nil
	}
	wants := func(list []string, text string) bool { return len(list) == 0 || slices.Contains(list, text) }
	selected = wants(s.IDs, m.ID) && wants(s.Classes, m.Class.ID) && (len(s.States) == 0 || slices.Contains(s.States, m.State))
	if selected && s.Filter != nil {
		err = host.Contain(func() error { selected = s.Filter(m); return nil })
	}
	return selected, err
}

// Action is the result of an operation for a message.
type Action string

// The actions. A message with one of the last four of a redrive is in the dead-letter queue as before.
const (
	ActionExported       Action = "exported"        // its line is in the archive, and it is in the dead-letter queue as it was
	ActionDeleted        Action = "deleted"         // its line is in the archive, and it was deleted
	ActionRestored       Action = "restored"        // the dead-letter queue has a copy of it again
	ActionRedriven       Action = "redriven"        // SQS has its copy, and it was deleted
	ActionReplayed       Action = "replayed"        // SQS has its copy, and it is not in the dead-letter queue: DLQ.Replay
	ActionUndeleted      Action = "undeleted"       // SQS has its copy, or the archive its line, and it is still in the dead-letter queue: Err says why
	ActionUnknownOutcome Action = "unknown_outcome" // SQS may have its copy
	ActionSendFailed     Action = "send_failed"     // SQS refused its copy
	ActionLeft           Action = "left"            // it was not sent, and not archived: Err says why
	ActionPlanned        Action = "planned"         // it would have been sent, or archived: DryRun
)

// Result is the result of an operation for one message.
type Result struct {
	ID, Group string // of the message in the dead-letter queue, or in the archive
	RecordKey string
	State     dedup.RecordState // when the operation decided about the message
	Class     Class
	// Destination is the URL of the queue that a copy goes to, or "" if it is not known.
	Destination string
	Action      Action
	Err         error             // why Action is not Redriven, Replayed, Exported, Deleted, Restored or Planned
	SentID      string            // the message ID of its copy
	Canary      time.Duration     // how long the redrive waits for the copy's delivery; 0: the message was no canary
	After       dedup.RecordState // how the copy's delivery ended, if it was watched: Completed, Released, Crashed, or Unknown after the wait
}

// Report is the result of a redrive, an export, a delete or a restore. It has one result for each message that the operation saw.
type Report struct {
	// Run is the run's ID. It is in the redriven attribute of the copies of a redrive, and in the lines of an archive.
	Run string
	// Total is how many messages the queue had at the start, by SQS's approximate count. A run redrives or archives at most this
	// many. Messages that are not in Results were hidden, by another consumer or in FIFO groups behind messages that were left.
	// For a restore Total is how many messages it has read.
	Total int
	// Torn is the number of the archive's last line if that line was not written to its end, or 0. An export or a delete has
	// removed the line, and a restore doesn't use it. Its message was not deleted.
	Torn int
	// Results are in the order in which SQS returned the messages, or in the order of the archive.
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
