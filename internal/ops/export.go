package ops

import (
	"context"
	"errors"
	"time"
)

// ExportOptions configure [DLQ.Export] and [DLQ.Delete].
type ExportOptions struct {
	Selection

	// DryRun decides about all messages that SQS shows, and makes them visible again without writing them. The file may be "".
	// Default: false.
	DryRun bool
}

// Export writes the selected messages completely to a file that [ReadArchive] reads. It creates the file, with mode 0600, or
// appends to an archive, and doesn't change any other file. All messages are visible again when it returns, with one receive more, or
// on FIFO a few more.
// It ends as a redrive does. All messages are in flight at once, of which SQS allows 120,000.
func (d *DLQ) Export(ctx context.Context, file string, optFns ...func(*ExportOptions)) (Report, error) {
	return d.export(ctx, "Export", file, optFns)
}

// Delete exports the selected messages like [DLQ.Export], and deletes each one after its line is on the disk. It leaves a message
// whose line would read back as another message. A killed process has only deleted messages that are in the archive. A message
// that was written and not deleted is in the file twice after the next Delete, and [DLQ.Restore] restores it once. Delete never
// calls sqs:PurgeQueue.
func (d *DLQ) Delete(ctx context.Context, file string, optFns ...func(*ExportOptions)) (Report, error) {
	return d.export(ctx, "Delete", file, optFns)
}

func (d *DLQ) export(ctx context.Context, operation string, file string, optFns []func(*ExportOptions)) (_ Report, err error) {
	var o ExportOptions
	for _, fn := range optFns {
		fn(&o)
	}
	drain := operation == "Delete"
	if err := d.refuseChained(operation); err != nil {
		return Report{}, err
	}
	report, err := d.newReport(ctx, operation)
	if err != nil {
		return Report{}, err
	}
	e := &export{drain: drain}
	if !o.DryRun {
		if e.archive, err = openArchive(file); err != nil {
			return Report{}, err
		}
		e.archive.file = d.wrapped(e.archive.file)
		defer func() { err = errors.Join(err, e.archive.close()) }()
		report.Torn = e.archive.torn
	}
	// What is left of a group holds back nothing: the order of what stays is the queue's.
	r := newRun(d, RedriveOptions{Selection: o.Selection, DryRun: o.DryRun, SkipAhead: drain && !o.DryRun}, report)
	e.run = r
	r.handle, r.done = e.process, ActionDeleted
	err = errors.Join(r.redrive(ctx), context.Cause(ctx))
	return r.report, err
}

// export is a run that archives messages.
type export struct {
	*run
	archive *archive
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
	err := e.archive.write(lines...)
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
