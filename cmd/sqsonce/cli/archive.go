package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
)

type archiveFlags struct {
	selection
	drain, completed bool
	hold             time.Duration
	archive          string
}

func (a *app) dlqExport() *cobra.Command {
	f := archiveFlags{selection: newSelection()}
	c := a.command("export FILE", "Write messages of a dead-letter queue to a file", `Writes whole messages, with their bodies, to a file that only you can read. Several exports may append to one file, one after
another. `+looking+`

With --drain the command deletes each message once its line is on the disk. You must then select messages, if only with --all, and
the command shows a plan first. Without filters it exports all messages.

Lines in a pipe: action, number of messages, reason. With --json: an object for each message, for the start and for the end.`,
		`  sqsonce dlq export --queue orders --consumer billing --table dedup orders.jsonl
  sqsonce dlq export --queue orders --consumer billing --table dedup --class 89e451 --drain orders.jsonl`,
		cobra.ExactArgs(1), nil)
	c.RunE = a.command("", "", "", "", nil, func(ctx context.Context, args []string) error {
		f.archive = args[0]
		return a.export(ctx, f)
	}).RunE
	c.ValidArgsFunction = archiveNames
	f.flags(c)
	c.Flags().BoolVar(&f.drain, "drain", false, "delete each message when its line is on the disk")
	a.expectFlag(c)
	return a.archivingFlags(c, &f)
}

func (a *app) dlqDelete() *cobra.Command {
	f := archiveFlags{selection: newSelection(), drain: true}
	c := a.command("delete", "Delete messages of a dead-letter queue, into a file", `Writes whole messages to the file of --archive and deletes each one once its line is on the disk. Select the messages, if only with
--all. dlq restore sends archived messages to the dead-letter queue again.

The command first receives the messages, like dlq ls, shows a plan and asks you. It leaves messages that were not in the plan. --yes
needs --expect, and then nothing is asked. A FIFO queue shows ten messages of a group at a time: run the command again for the next ten.

Lines in a pipe: action, number of messages, reason. With --json: an object for each message, for the start and for the end.`,
		`  sqsonce dlq delete --queue orders --consumer billing --table dedup --completed --archive done.jsonl
  sqsonce dlq delete --queue orders --consumer billing --table dedup --class 89e451 --archive wrong.jsonl`,
		cobra.NoArgs, nil)
	c.RunE = a.command("", "", "", "", nil, func(ctx context.Context, _ []string) error { return a.delete(ctx, f) }).RunE
	f.flags(c)
	c.Flags().StringVar(&f.archive, "archive", "", "the `file` that they are written to")
	_ = c.MarkFlagRequired("archive")
	_ = c.MarkFlagFilename("archive", "jsonl") // fail for flags that do not exist
	c.Flags().BoolVar(&f.completed, "completed", false, "only messages whose event is done: --state completed")
	c.MarkFlagsMutuallyExclusive("completed", "state")
	a.expectFlag(c)
	a.archivingFlags(c, &f)
	a.planFlag(c)
	return c
}

// archiveNames completes the name of an archive's file.
func archiveNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"jsonl"}, cobra.ShellCompDirectiveFilterFileExt
}

func (a *app) archivingFlags(c *cobra.Command, f *archiveFlags) *cobra.Command {
	c.Flags().DurationVar(&f.hold, "hold", time.Minute, "how long messages stay hidden at most if the command is killed")
	a.confirmFlags(c)
	return a.queueFlags(c)
}

// export asks before a drain only: without, nothing is changed.
func (a *app) export(ctx context.Context, f archiveFlags) error {
	if err := f.check(a, f.drain); err != nil {
		return err
	}
	e, err := a.newExport(ctx, f, "export")
	if err != nil {
		return err
	}
	if f.drain && (!a.flags.yes || e.byClass) || a.flags.dryRun || a.flags.expect >= 0 {
		ask := func(p *queuePlan) error {
			switch {
			case !f.drain:
				return nil
			case p.mixed != "":
				return e.confirmNumber(ctx, p)
			}
			a.showPlan(p)
			return a.confirm(ctx, question{verb: "drain"})
		}
		if ready, err := e.plan(ctx, ask); !ready {
			return err
		}
	}
	return e.run(ctx)
}

// delete always has a plan, whose number somebody has said, or been asked about.
func (a *app) delete(ctx context.Context, f archiveFlags) error {
	if f.completed {
		f.state.values = []dedup.RecordState{dedup.StateCompleted}
	}
	if err := f.check(a, true); err != nil {
		return err
	}
	e, err := a.newExport(ctx, f, "delete")
	if err != nil {
		return err
	}
	ready, err := e.plan(ctx, func(p *queuePlan) error { return e.confirmNumber(ctx, p) })
	if !ready {
		return err
	}
	return e.run(ctx)
}

// confirmNumber asks before what cannot be undone. If it cannot ask, the number must have been given beforehand.
func (e *export) confirmNumber(ctx context.Context, p *queuePlan) error {
	if p.mixed != "" {
		e.a.note("%s", p.mixed)
	}
	if e.a.flags.expect < 0 && (e.a.flags.yes || !e.a.asks) {
		return fail(exitRefused, "without a question %s needs --yes and --expect %d", p.Operation, p.Count)
	}
	e.a.showPlan(p)
	return e.a.confirm(ctx, p.deleteQuestion())
}

// export is an export, or a delete.
type export struct {
	*work
	d       *ops.DLQ
	o       ops.ExportOptions
	drain   bool
	states  []dedup.RecordState // nil: all
	byClass bool                // a class was named, and no state

	mu       sync.Mutex
	selected []*ops.Message  // of the last call, but for their states
	planned  map[string]bool // message IDs; nil: there was no plan
}

// selects is the filter of messages, of those that the other ones select. It has that of states: one whose record could not be
// read is not known to be none that is meant.
func (e *export) selects(m *ops.Message) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.selected = append(e.selected, m)
	if e.states != nil && !slices.Contains(e.states, m.State) {
		return false
	}
	if e.planned != nil && !e.planned[m.ID] {
		e.unplanned.Add(1)
		return false
	}
	return true
}

func (a *app) newExport(ctx context.Context, f archiveFlags, operation string) (*export, error) {
	a.flags.hold = f.hold
	d, url, err := a.openDLQ(ctx)
	if err != nil {
		return nil, err
	}
	selection, err := f.of(ctx, a)
	if err != nil {
		return nil, err
	}
	if f.archive, err = filepath.Abs(f.archive); err != nil {
		return nil, err
	}
	done := ops.ActionExported
	if f.drain {
		done = ops.ActionDeleted
	}
	w := &work{a: a, operation: operation, done: done, url: url, archive: f.archive}
	e := &export{work: w, d: d, states: selection.States, byClass: selection.Classes != nil && selection.States == nil && a.flags.consumer != ""}
	selection.States, selection.Filter = nil, with(selection.Filter, e.selects)
	e.o, e.drain = ops.ExportOptions{Selection: selection}, f.drain
	return e, nil
}

// plan asks whether what a dry run has found is to be done, and reports whether it is. What comes later is not: it is not what
// the answer was about.
func (e *export) plan(ctx context.Context, ask func(*queuePlan) error) (ready bool, err error) {
	report, err := e.call(ctx, "", func(o *ops.ExportOptions) { o.DryRun = true })
	if err == nil {
		err = unread(e.selected)
	}
	if err != nil {
		return false, err
	}
	p := newQueuePlan(e.operation, e.done, e.url, report)
	if e.byClass {
		p.mixed = p.mixedClass()
	}
	if e.operation == "delete" {
		e.bind(p, report)
	}
	if err := e.a.asPlanned(p.Hash); err != nil {
		return false, err
	}
	if e.a.flags.dryRun {
		return false, e.a.printPlan(p)
	}
	if err := e.a.expected(p.Count); err != nil {
		return false, err
	}
	if p.Count == 0 {
		return false, errors.Join(e.a.printPlan(p), p.none(false))
	}
	if err := ask(p); err != nil {
		return false, err
	}
	e.total, e.planned = p.Count, p.planned
	return true, nil
}

// bind is for dry runs of a delete, and for --plan.
func (e *export) bind(p *queuePlan, report ops.Report) {
	seen := owners{}
	for _, m := range e.selected {
		seen.add(m)
	}
	p.Hash, p.Typed = p.hash(e.url, report, seen), p.deleteQuestion().typed
}

func (e *export) call(ctx context.Context, file string, optFns ...func(*ops.ExportOptions)) (ops.Report, error) {
	o := e.o
	e.selected = nil
	for _, fn := range optFns {
		fn(&o)
	}
	if !e.drain {
		return e.d.Export(ctx, file, func(to *ops.ExportOptions) { *to = o })
	}
	return e.d.Delete(ctx, file, func(to *ops.ExportOptions) { *to = o })
}

// run writes to the archive. What changes nothing in the queue is not in the audit.
func (e *export) run(ctx context.Context) error {
	do := func(ctx context.Context) (ops.Report, error) { return e.events(e.call(ctx, e.archive)) }
	if e.drain {
		return errors.Join(e.audited(ctx, "archive "+e.archive, do), unread(e.selected))
	}
	report, err := do(ctx)
	return errors.Join(err, e.print(ctx, report, countsOf(report, err), err), unread(e.selected))
}

type restoreFlags struct {
	selection
	skipAhead, otherQueue bool
	archive, journal      string
}

func (a *app) dlqRestore() *cobra.Command {
	f := restoreFlags{selection: newSelection()}
	c := a.command("restore FILE", "Send messages of a file to the dead-letter queue again", `Sends messages from a file of dlq export or dlq delete to the dead-letter queue again, with their keys, reasons and ages. Without
filters it sends all of them. --state selects by the state at the time of the export. A message that is still in the queue, as after an
export without --drain, is then there twice: the command does not check.

The command first shows a plan and asks you, unless you give --yes without --expect. A journal records the messages that were sent: an
interrupted restore prints the command that continues it.

Lines in a pipe: action, number of messages, reason. With --json: an object for each message, for the start and for the end.`,
		"  sqsonce dlq restore --queue orders --consumer billing --table dedup orders.jsonl",
		cobra.ExactArgs(1), nil)
	c.RunE = a.command("", "", "", "", nil, func(ctx context.Context, args []string) error {
		f.archive = args[0]
		return a.restore(ctx, f)
	}).RunE
	c.ValidArgsFunction = archiveNames
	f.flags(c)
	c.Flags().BoolVar(&f.skipAhead, "skip-ahead", false, "also send messages behind others of their FIFO group that stay. Gives up the order")
	c.Flags().BoolVar(&f.otherQueue, "other-queue", false, "also send messages that were archived from another dead-letter queue")
	c.Flags().StringVar(&f.journal, "journal", "",
		"the `file` of the journal. An existing journal continues its interrupted restore (default: a new one next to the audit)")
	_ = c.MarkFlagFilename("journal", "jsonl") // fails for a flag that does not exist
	a.confirmFlags(c)
	a.expectFlag(c)
	return a.queueFlags(c)
}

func (a *app) restore(ctx context.Context, f restoreFlags) error {
	if err := f.check(a, false); err != nil {
		return err
	}
	if f.journal != "" && a.flags.dryRun {
		return fail(exitUsage, "--journal is not for a dry run")
	}
	d, url, err := a.openDLQ(ctx)
	if err != nil {
		return err
	}
	selection, err := f.of(ctx, a)
	if err != nil {
		return err
	}
	archive, err := filepath.Abs(f.archive)
	if err != nil {
		return err
	}
	w := &work{a: a, operation: "restore", done: ops.ActionRestored, url: url, journal: f.journal, archive: archive}
	call := func(ctx context.Context, fn func(*ops.RestoreOptions)) (ops.Report, error) {
		file, err := os.Open(archive)
		if err != nil {
			return ops.Report{}, fail(exitFailed, "the archive cannot be read: %w", err)
		}
		defer file.Close()
		return d.Restore(ctx, file, func(o *ops.RestoreOptions) {
			o.Selection, o.SkipAhead, o.OtherQueue = selection, f.skipAhead, f.otherQueue
		}, fn)
	}
	if !a.flags.yes || a.flags.expect >= 0 || a.flags.dryRun {
		report, err := call(ctx, func(o *ops.RestoreOptions) { o.DryRun = true })
		if err != nil {
			return err
		}
		p := newQueuePlan(w.operation, w.done, url, report)
		if a.flags.dryRun {
			return a.printPlan(p)
		}
		if err := a.expected(p.Count); err != nil {
			return err
		}
		if p.Count == 0 {
			return errors.Join(a.printPlan(p), p.none(false))
		}
		a.showPlan(p)
		if err := a.confirm(ctx, question{verb: w.operation}); err != nil {
			return err
		}
	}
	return w.withJournal(ctx, func(ctx context.Context) (ops.Report, error) {
		return w.events(call(ctx, func(o *ops.RestoreOptions) { o.Journal = w.journal }))
	})
}
