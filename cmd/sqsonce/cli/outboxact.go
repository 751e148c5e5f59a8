package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

func (a *app) outboxUnpark() *cobra.Command {
	c := a.command("unpark GROUP SEQ", "Publish a refused event again", `Removes the mark of an event that SQS refused. A relay publishes it again: in its place if it halts its group, and after later events
of its group if it was skipped. Fix the reason first. Otherwise SQS refuses the event again.`,
		"  sqsonce outbox unpark --table outbox --outbox orders ord-42 7",
		cobra.ExactArgs(2), func(ctx context.Context, args []string) error {
			return a.actOnParked(ctx, "unpark", args, func(store outbox.Store) func(context.Context, outbox.Entry) error { return store.Unpark })
		})
	return a.outboxActFlags(c)
}

func (a *app) outboxDiscard() *cobra.Command {
	c := a.command("discard GROUP SEQ", "Delete a refused event, unsent", `Deletes an event that SQS refused, and its group continues without it. You state that you don't need the event. It may still be in the
queue, sent by a relay that died before it recorded the send.`,
		"  sqsonce outbox discard --table outbox --outbox orders --dry-run ord-42 7",
		cobra.ExactArgs(2), func(ctx context.Context, args []string) error {
			return a.actOnParked(ctx, "discard", args, func(store outbox.Store) func(context.Context, outbox.Entry) error { return store.Discard })
		})
	return a.outboxActFlags(c)
}

func (a *app) outboxActFlags(c *cobra.Command) *cobra.Command {
	a.confirmFlags(c)
	c.Flags().StringVar(&a.flags.operator, "operator", "", "your `name`, for the audit (default $USER)")
	return a.outboxFlags(c)
}

// actOnParked carries out a verb on one parked event, after its question. A discard needs the event's ID.
func (a *app) actOnParked(ctx context.Context, verb string, args []string, of func(outbox.Store) func(context.Context, outbox.Entry) error) error {
	seq, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil || seq < 1 {
		return fail(exitUsage, "%q is not the number of an event: outbox ls --parked shows it", args[1])
	}
	store, err := a.openOutbox(ctx)
	if err != nil {
		return err
	}
	e, err := findEntry(ctx, store, args[0], seq)
	if err != nil {
		return err
	}
	before := parkedAs(e.Parked)
	if before == waiting {
		return fail(exitRefused, "%s event %d of group %s: SQS has not refused it: %s", verb, e.Seq, escaped(e.Group), before.means())
	}
	a.note("event %s (%d of group %s) is %s: %s", e.ID, e.Seq, e.Group, before, e.Reason)
	q := question{verb: verb}
	after, effect := waiting, "a relay publishes it again in its place, and its group continues"
	switch {
	case verb == "discard":
		after, effect, q.typed, q.what = "deleted", "it is deleted without a send. It may be in the queue, sent by a relay that died", e.ID, "the event's ID"
	case before == skipped:
		effect = "it is sent, after later ones of its group"
	}
	if a.flags.dryRun {
		a.note("would %s it: %s", verb, effect)
		return a.printActOnParked(verb, e, before, after)
	}
	a.note("%s: %s", verb, effect)
	line := auditLine{What: "outbox " + verb, Outbox: a.flags.outbox, Group: e.Group, Seq: e.Seq, EventID: e.ID, Before: before, After: after}
	if err := a.confirm(ctx, q); err != nil {
		return err
	}
	return a.change(ctx, verb, line, fmt.Sprintf("event %d of group %s", e.Seq, escaped(e.Group)),
		func(ctx context.Context) error { return of(store)(ctx, e) }, func() error { return a.printActOnParked(verb, e, before, after) })
}

func (a *app) printActOnParked(verb string, e outbox.Entry, before, after outboxState) error {
	if a.flags.json {
		return a.printJSON(object{
			{"v", 1}, {"operation", verb}, {"dry_run", a.flags.dryRun}, {"group", e.Group}, {"seq", e.Seq}, {"id", e.ID}, {"before", before}, {"after", after},
		})
	}
	return a.printTable([]string{"GROUP", "SEQ", "EVENT", "BEFORE", "AFTER"}, [][]string{
		{e.Group, strconv.FormatInt(e.Seq, 10), e.ID, string(before), string(after)},
	})
}
