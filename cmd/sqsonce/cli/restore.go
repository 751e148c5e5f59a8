package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/ops"
)

type restoreFlags struct {
	selection
	skipAhead, otherQueue bool
	archive, journal      string
}

func (a *app) dlqRestore() *cobra.Command {
	f := restoreFlags{selection: newSelection()}
	c := a.command("restore FILE", "Send messages of a file to the dead-letter queue again", `Sends messages that dlq export or dlq delete wrote to a file to the dead-letter queue again, with the keys, reasons and ages that they
had. Without filters all are sent; --state is that of the time of the export. It does not look whether a message is still in the queue, as
after an export without --drain: it would be there twice.

First there is a plan and a question; with --yes and no --expect that is left out. What has been sent is in a journal: a restore that was
interrupted says with which command it goes on.

Lines in a pipe: what was done, of how many messages, why. With --json: one object for each message, and more at start and end.`,
		"  sqsonce dlq restore --queue orders --consumer billing --table dedup orders.jsonl",
		cobra.ExactArgs(1), nil)
	c.RunE = a.command("", "", "", "", nil, func(ctx context.Context, args []string) error {
		f.archive = args[0]
		return a.restore(ctx, f)
	}).RunE
	c.ValidArgsFunction = archiveNames
	f.flags(c)
	c.Flags().BoolVar(&f.skipAhead, "skip-ahead", false, "also send what lies behind messages of its FIFO group that are left: the order is given up")
	c.Flags().BoolVar(&f.otherQueue, "other-queue", false, "also send what was archived from another dead-letter queue")
	c.Flags().StringVar(&f.journal, "journal", "",
		"the `file` of the journal; one of a restore that was interrupted: go on with that (default a new one beside the audit)")
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
