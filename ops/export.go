package ops

import (
	"context"
	"crypto/rand"
	"errors"
	"time"
)

// ExportOptions configure [DLQ.Export].
type ExportOptions struct {
	Selection

	// Drain deletes each message once its line is on the disk. Where no filter is set it needs All. Default: false, all messages are
	// given back.
	Drain bool
	// DryRun decides about all messages that SQS shows, and gives them back. The archive may be nil. Default: false.
	DryRun bool
	// Hold is for how long messages are hidden at most, should the process be killed. It is extended after half of it. Default:
	// 60 s. 10 s to 12 h; a part of a second counts as a whole one.
	Hold time.Duration
	// SpendReceives also exports a queue with a redrive policy of its own: a message may be moved on because it was received.
	// Default: false, such a queue is refused.
	SpendReceives bool
}

// DeleteOptions configure [DLQ.Delete].
type DeleteOptions struct {
	// Selection must have a filter, or All.
	Selection

	// DryRun decides about all messages that SQS shows, and gives them back. The archive may be nil. Default: false.
	DryRun bool
	// Hold is for how long messages are hidden at most, should the process be killed. It is extended after half of it. Default:
	// 60 s. 10 s to 12 h; a part of a second counts as a whole one.
	Hold time.Duration
	// SpendReceives also deletes from a queue with a redrive policy of its own: a message may be moved on because it was received.
	// Default: false, such a queue is refused.
	SpendReceives bool
}

// Export writes the selected messages to the archive, whole: see [Archived]. It reads their records as List does. All messages are
// visible again when it returns, with one receive more; with Drain, those that are not selected.
//
// With Drain a message is deleted when its line is on the disk, never before. What cannot be archived as it is, is left
// ([ErrNotArchived]). A process that is killed has deleted nothing that is not in the archive. Export again then, to the same file:
// a message that was written and not deleted is in it twice, and [DLQ.Restore] restores it once.
//
// It ends when two receives have found nothing more, or after as many messages as the queue had at the start. Of a FIFO queue
// without Drain SQS shows ten messages of a group at most: Report.Behind counts the others. With Drain it shows more as messages
// are deleted, but for what lies behind ten that are not selected. A failed call of SQS ends it, and so does an archive that cannot
// be written, such as one on a full disk; what is not on the disk then stays. Without Drain all messages are in flight at once, of
// which SQS allows 120,000: the export of a longer queue ends there. When ctx ends nothing more is written. The report says what
// became of each message, also with an error.
//
// A queue with a redrive policy of its own, or out of which a move task takes messages, is a [*RefusedError].
func (d *DLQ) Export(ctx context.Context, archive *Archive, optFns ...func(*ExportOptions)) (Report, error) {
	var o ExportOptions
	for _, fn := range optFns {
		fn(&o)
	}
	return d.export(ctx, "Export", archive, o)
}

// Delete writes the selected messages to the archive, and deletes each when its line is on the disk: Export with Drain. It does not
// look at states unless States says so; for a message whose event is done that is [StateCompleted]. sqs:PurgeQueue is never called.
func (d *DLQ) Delete(ctx context.Context, archive *Archive, optFns ...func(*DeleteOptions)) (Report, error) {
	var o DeleteOptions
	for _, fn := range optFns {
		fn(&o)
	}
	return d.export(ctx, "Delete", archive, ExportOptions{
		Selection: o.Selection, Drain: true, DryRun: o.DryRun, Hold: o.Hold, SpendReceives: o.SpendReceives,
	})
}

func (o *ExportOptions) resolve(operation string, archive *Archive) error {
	options := operation + "Options"
	errs := []error{o.Selection.resolve(options, o.Drain), resolveHold(options+".Hold", &o.Hold)}
	if archive == nil && !o.DryRun {
		errs = append(errs, badField("archive", "is nil, must be one of OpenArchive"))
	}
	return errors.Join(errs...)
}

func (d *DLQ) export(ctx context.Context, operation string, archive *Archive, o ExportOptions) (Report, error) {
	if err := o.resolve(operation, archive); err != nil {
		return Report{}, err
	}
	if d.chained && !o.SpendReceives {
		return Report{}, &RefusedError{operation, d.arn, ErrChained}
	}
	if err := d.checkMoveTasks(ctx, operation); err != nil {
		return Report{}, err
	}
	visible, hidden, err := d.count(ctx)
	if err != nil {
		return Report{}, err
	}
	report := Report{Run: rand.Text(), Total: visible + hidden}
	if archive != nil {
		report.Torn = archive.lines.torn
	}
	// What is left of a group holds back nothing: the order of what stays is the queue's.
	r := newRun(d, RedriveOptions{Selection: o.Selection, DryRun: o.DryRun, SkipAhead: o.Drain && !o.DryRun, Hold: o.Hold}, report)
	e := &export{r, archive, o.Drain}
	r.handle, r.done = e.process, ActionDeleted
	err = errors.Join(r.redrive(ctx), context.Cause(ctx))
	if d.fifo {
		r.report.Behind = max(0, visible-len(r.report.Results))
	}
	return r.report, err
}

// export is a run that archives messages.
type export struct {
	*run
	archive *Archive
	drain   bool
}

// process archives what is selected of new messages, and deletes it.
func (e *export) process(ctx context.Context, batch []*Message) error {
	e.d.join(ctx, batch)
	var lines []any
	var archived []*Result
	for _, m := range batch {
		res := &Result{ID: m.ID, Group: m.Group, RecordKey: m.RecordKey, State: m.State, Class: m.Class}
		e.results[m.ID] = res
		e.report.Results = append(e.report.Results, res)
		l, err := e.line(ctx, m)
		switch {
		case err != nil:
			res.Action, res.Err = ActionLeft, err
			e.left[m.Group] = append(e.left[m.Group], m.ID)
		case e.o.DryRun:
			res.Action = ActionPlanned
		default:
			lines, archived = append(lines, l), append(archived, res)
		}
	}
	if len(lines) == 0 {
		return e.failed
	}
	err := e.archive.lines.write(lines...)
	for _, res := range archived {
		switch {
		case err != nil:
			res.Action, res.Err = ActionLeft, err
		case e.drain:
			res.Action = ActionUndeleted // until delete says otherwise
		default:
			res.Action = ActionExported
		}
	}
	if err != nil || !e.drain {
		return errors.Join(e.failed, err)
	}
	return errors.Join(e.failed, e.delete(ctx, archived))
}

// line returns the line of a message, or why it is left.
func (e *export) line(ctx context.Context, m *Message) (*archivedLine, error) {
	selected, err := e.o.selects(m)
	switch {
	case err != nil:
		return nil, err
	case !selected:
		return nil, ErrNotSelected
	case e.failed != nil:
		return nil, e.failed
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case len(e.results) > e.report.Total:
		return nil, ErrArrivedLater
	}
	return m.archivedLine(e.d.arn, e.report.Run, time.Now())
}
