package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// scheduler is an outbox with events that are scheduled for a due time.
type scheduler interface {
	Scheduled(ctx context.Context, limit int, ids ...string) ([]outbox.Scheduled, error)
	CancelScheduled(ctx context.Context, id string) error
}

func (a *app) openScheduler(ctx context.Context) (scheduler, error) {
	store, err := a.openOutbox(ctx)
	return able[scheduler](store, err, fail(exitUsage, "this outbox has no scheduled events: one in SQL has"))
}

var scheduledColumns = []column[outbox.Scheduled]{
	{"DUE", "when it is due", "", "due_at", func(e outbox.Scheduled) any { return e.Due }},
	{"GROUP", "group", "", "group", func(e outbox.Scheduled) any { return e.Group }},
	{"EVENT", "event ID", "", "id", func(e outbox.Scheduled) any { return e.ID }},
	{"TYPE", "type", "", "type,omitzero", func(e outbox.Scheduled) any { return e.Type }},
	{"SOURCE", "source", "", "source", func(e outbox.Scheduled) any { return e.Source }},
}

func (a *app) listScheduled(ctx context.Context, limit int) error {
	store, err := a.openScheduler(ctx)
	if err != nil {
		return err
	}
	es, err := store.Scheduled(ctx, atMost(limit))
	if a.flags.json {
		err = errors.Join(err, a.printJSON(object{{"v", 1}, {"events", objectsOf(scheduledColumns, es)}}))
	} else {
		err = errors.Join(err, printColumns(a, scheduledColumns, es))
	}
	if err != nil {
		return err
	}
	a.note("scheduled: %s", shown.Count(len(es), "event"))
	if len(es) == limit {
		a.note("there may be more: --limit")
	}
	return nil
}

const (
	scheduled outboxState = "scheduled"
	cancelled outboxState = "cancelled"
)

func (a *app) outboxCancel() *cobra.Command {
	c := a.command("cancel EVENT", "Delete a scheduled event, unsent", `Deletes an event that is scheduled for a due time, by its ID. It is never published. An event that a relay has added to the outbox
is not scheduled any more, and is published. Only an outbox in SQL has scheduled events.`,
		"  sqsonce outbox cancel --dry-run ord-42/expire",
		cobra.ExactArgs(1), func(ctx context.Context, args []string) error { return a.cancelScheduled(ctx, args[0]) })
	return a.outboxActFlags(c)
}

func (a *app) cancelScheduled(ctx context.Context, id string) error {
	store, err := a.openScheduler(ctx)
	if err != nil {
		return err
	}
	es, err := store.Scheduled(ctx, 1, id)
	var e outbox.Scheduled
	broken, isBroken := errors.AsType[*outbox.GroupError](err)
	switch {
	case isBroken: // its ID is enough to cancel it
		e.ID, e.Group = id, broken.Group
		a.note("event %s of group %s can't be decoded, so its due time isn't known: %s", e.ID, e.Group, broken.Err.Error())
	case err != nil:
		return err
	case len(es) == 0:
		return fail(exitRefused, "event %s is not scheduled: it was added to the outbox, was cancelled, or never was", escaped(id))
	default:
		e = es[0]
		a.note("event %s of group %s is due at %s", e.ID, e.Group, e.Due.Format(time.RFC3339))
	}
	print := func() error { return a.printCancelled(e) }
	if a.flags.dryRun {
		a.note("would cancel it: it is deleted, and never published")
		return print()
	}
	a.note("cancel: it is deleted, and never published")
	if err := a.confirm(ctx, question{verb: "cancel"}); err != nil {
		return err
	}
	line := auditLine{What: "outbox cancel", Outbox: a.flags.outbox, Group: e.Group, EventID: e.ID, Before: scheduled, After: cancelled}
	return a.change(ctx, "cancel", line, "event "+escaped(e.ID), func(ctx context.Context) error { return store.CancelScheduled(ctx, id) }, print)
}

func (a *app) printCancelled(e outbox.Scheduled) error {
	if a.flags.json {
		return a.printJSON(object{
			{"v", 1}, {"operation", "cancel"}, {"dry_run", a.flags.dryRun}, {"group", e.Group}, {"id", e.ID}, {"due_at,omitzero", e.Due}, {"before", scheduled}, {"after", cancelled},
		})
	}
	return a.printTable([]string{"GROUP", "EVENT", "BEFORE", "AFTER"}, [][]string{{e.Group, e.ID, string(scheduled), string(cancelled)}})
}
