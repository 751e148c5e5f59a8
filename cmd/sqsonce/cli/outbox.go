package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
)

// outboxState is what an event of an outbox is, or the first one of a group.
type outboxState string

const (
	waiting outboxState = "waiting"
	halted  outboxState = "halted"
	skipped outboxState = "skipped"
)

func parkedAs(p outbox.RefusedPolicy) outboxState {
	switch p {
	case outbox.OnRefusedHalt:
		return halted
	case outbox.OnRefusedSkip:
		return skipped
	}
	return waiting
}

func (s outboxState) means() string {
	switch s {
	case halted:
		return "SQS refused it for good, and its group waits for you"
	case skipped:
		return "SQS refused it for good, and its group goes on without it"
	}
	return "no relay has published it yet"
}

func (s outboxState) do() string {
	switch s {
	case halted:
		return "fix the reason, then outbox unpark. Or outbox discard, if you don't need it"
	case skipped:
		return "outbox unpark sends it after later events. outbox discard deletes it"
	}
	return ""
}

func (a *app) outboxLs() *cobra.Command {
	parked, later, limit := false, false, 0
	c := a.command("ls", "List the groups whose events are not published yet", `Lists the groups of an outbox that have events, or with --parked the events that SQS refused. With --later it
lists the events that are scheduled for a due time, which an outbox in SQL has, and the first to be due comes first. On DynamoDB it
scans the table, which holds only unpublished events. It changes nothing. Events of the last seconds may be missing.

Lines in a pipe: `+inWords(groupColumns)+". With --parked: "+inWords(entryColumns)+". With --later: "+inWords(scheduledColumns)+".",
		"  sqsonce outbox ls --table outbox --outbox orders --parked",
		cobra.NoArgs, func(ctx context.Context, _ []string) error {
			switch {
			case limit == 0:
				return fail(exitUsage, "--limit is 0")
			case parked && later:
				return fail(exitUsage, "--parked or --later, not both")
			case later:
				return a.listScheduled(ctx, limit)
			case parked:
				return a.listParked(ctx, limit)
			}
			return a.listGroups(ctx, limit)
		})
	c.Flags().BoolVar(&parked, "parked", false, "the events that SQS has refused")
	c.Flags().BoolVar(&later, "later", false, "the events that are scheduled for a due time")
	c.Flags().IntVar(&limit, "limit", 1000, "list at most this many `groups` or events. Negative: no limit")
	return a.outboxFlags(c)
}

// outboxPage is how many groups, or events, one call of the store returns.
const outboxPage = 100

// seenGroup is a group as it was read.
type seenGroup struct {
	outbox.Group
	committed time.Time
}

var groupColumns = []column[seenGroup]{
	{"GROUP", "group", "", "group", func(g seenGroup) any { return g.Name }},
	{"STATE", "state of its first event", "", "state", func(g seenGroup) any { return parkedAs(g.Parked) }},
	{"COMMITTED", "when that was committed", "", "committed_at,omitzero", func(g seenGroup) any { return g.committed }},
	{"LAST", "last number", "", "last_seq,omitzero", func(g seenGroup) any { return g.Last }},
}

func (a *app) listGroups(ctx context.Context, limit int) error {
	store, err := a.openOutbox(ctx)
	if err != nil {
		return err
	}
	groups, more := []seenGroup{}, true
	for after := ""; more && (limit < 0 || len(groups) < limit); more = after != "" {
		var found []outbox.Group
		if found, after, err = store.Groups(ctx, after, outboxPage); err != nil {
			break
		}
		for _, g := range found {
			if limit >= 0 && len(groups) == limit {
				break
			}
			groups = append(groups, seenGroup{g, committedAt(g.Age)})
		}
	}
	if a.flags.json {
		err = errors.Join(err, a.printJSON(object{{"v", 1}, {"groups", objectsOf(groupColumns, groups)}}))
	} else {
		err = errors.Join(err, printColumns(a, groupColumns, groups))
	}
	a.note("groups with events: %d", len(groups))
	if len(groups) == limit {
		a.note("there may be more: --limit")
	}
	return err
}

func committedAt(age time.Duration) time.Time {
	if age == 0 {
		return time.Time{} // not known
	}
	return time.Now().Add(-age).UTC()
}

func (a *app) listParked(ctx context.Context, limit int) error {
	store, err := a.openOutbox(ctx)
	if err != nil {
		return err
	}
	entries, err := store.Parked(ctx, atMost(limit))
	if err := errors.Join(err, a.printEntries(entries, entryColumns)); err != nil {
		return err
	}
	a.note("parked: %s", shown.Count(len(entries), "event"))
	if len(entries) == limit {
		a.note("there may be more: --limit")
	}
	return nil
}

// atMost is a limit for a store.
func atMost(limit int) int {
	if limit < 0 {
		return 1 << 30
	}
	return limit
}

// entryColumns begin with the group, which one group's table leaves out. They have no bodies: they are shown on request.
var entryColumns = []column[outbox.Entry]{
	{"GROUP", "group", "group", "group", func(e outbox.Entry) any { return e.Group }},
	{"SEQ", "number", "seq", "seq", func(e outbox.Entry) any { return e.Seq }},
	{"EVENT", "event ID", "event", "id", func(e outbox.Entry) any { return e.ID }},
	{"", "", "type", "type,omitzero", func(e outbox.Entry) any { return e.Type }},
	{"", "", "source", "source", func(e outbox.Entry) any { return e.Source }},
	{"STATE", "state", "state", "state", func(e outbox.Entry) any { return parkedAs(e.Parked) }},
	{"", "", "means", "", func(e outbox.Entry) any { return parkedAs(e.Parked).means() }},
	{"", "", "do", "", func(e outbox.Entry) any { return parkedAs(e.Parked).do() }},
	{"COMMITTED", "when it was committed", "committed", "committed_at,omitzero", func(e outbox.Entry) any { return committedAt(e.Age) }},
	{"REASON", "reason", "reason", "reason,omitzero", func(e outbox.Entry) any { return e.Reason }},
	{"", "", "bytes", "body_bytes", func(e outbox.Entry) any { return len(e.Body) }},
	{"", "", "attribute", "attributes,omitzero", func(e outbox.Entry) any { return attributesOf(e.Attributes) }},
}

func (a *app) printEntries(entries []outbox.Entry, columns []column[outbox.Entry]) error {
	if a.flags.json {
		return a.printJSON(object{{"v", 1}, {"events", objectsOf(entryColumns, entries)}})
	}
	return printColumns(a, columns, entries)
}

func (a *app) outboxShow() *cobra.Command {
	var f struct {
		seq   int64
		body  bool
		limit int
	}
	c := a.command("show GROUP", "Show the events of a group, or one of them", `Shows the unpublished events of a group, in the order in which a relay reads them. It changes nothing.

Lines in a pipe: `+inWords(entryColumns[1:])+".",
		"  sqsonce outbox show --table outbox --outbox orders ord-42\n  sqsonce outbox show --table outbox --outbox orders --seq 7 --body ord-42",
		cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
			if f.seq != 0 {
				return a.showEntry(ctx, args[0], f.seq, f.body)
			}
			return a.showGroup(ctx, args[0], f.limit)
		})
	c.Flags().Int64Var(&f.seq, "seq", 0, "one event, by its `number` in the group")
	c.Flags().BoolVar(&f.body, "body", false, "also show the body of that event")
	c.Flags().IntVar(&f.limit, "limit", 10, "how many `events` are shown at most")
	return a.outboxFlags(c)
}

func (a *app) showGroup(ctx context.Context, group string, limit int) error {
	if limit <= 0 {
		return fail(exitUsage, "--limit is %d, must be above 0", limit)
	}
	store, err := a.openOutbox(ctx)
	if err != nil {
		return err
	}
	entries, err := store.Read(ctx, outbox.Group{Name: group}, outbox.Known{}, limit)
	if err := errors.Join(err, a.printEntries(entries, entryColumns[1:])); err != nil {
		return err
	}
	if len(entries) == 0 {
		a.note("group %s has no unpublished event", group)
	}
	return nil
}

func (a *app) showEntry(ctx context.Context, group string, seq int64, body bool) error {
	store, err := a.openOutbox(ctx)
	if err != nil {
		return err
	}
	e, err := findEntry(ctx, store, group, seq)
	if err != nil {
		return err
	}
	columns := entryColumns
	if body {
		columns = append(slices.Clip(columns), column[outbox.Entry]{label: "body", json: "body,omitzero", value: func(e outbox.Entry) any { return e.Body }})
	}
	if a.flags.json {
		return a.printJSON(object{{"v", 1}, {"event", objectOf(columns, e)}})
	}
	return a.printPairs(pairsOf(a, columns, e))
}

// findEntry looks among the first events of the group, where a halted one is, and then among all parked ones.
func findEntry(ctx context.Context, store outbox.Store, group string, seq int64) (outbox.Entry, error) {
	is := func(e outbox.Entry) bool { return e.Group == group && e.Seq == seq }
	entries, err := store.Read(ctx, outbox.Group{Name: group}, outbox.Known{}, outboxPage)
	if i := slices.IndexFunc(entries, is); i >= 0 {
		return entries[i], nil
	}
	parked, parkedErr := store.Parked(ctx, 1<<30)
	if i := slices.IndexFunc(parked, is); i >= 0 {
		return parked[i], nil
	}
	if err := errors.Join(err, parkedErr); err != nil {
		return outbox.Entry{}, err
	}
	return outbox.Entry{}, fail(exitFailed, "event %d of group %s is not among the first %d of the group, and not parked", seq, group, outboxPage)
}

// openOutbox opens the outbox that the flags name.
func (a *app) openOutbox(ctx context.Context) (outbox.Store, error) {
	if a.opts.Outbox != nil {
		return a.opts.Outbox(ctx)
	}
	if a.flags.outboxTable == "" || a.flags.outbox == "" {
		return nil, fail(exitUsage, "which outbox? Set --table or SQSONCE_OUTBOX_TABLE, and --outbox or SQSONCE_OUTBOX")
	}
	s, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	// The source is for writers: this command has none.
	return dynamooutbox.New(s.dynamo, a.flags.outboxTable, a.flags.outbox, "sqsonce")
}

// outboxFlags adds the flags that say which outbox is meant.
func (a *app) outboxFlags(c *cobra.Command) *cobra.Command {
	if a.opts.Outbox == nil {
		c.Flags().StringVar(&a.flags.outboxTable, "table", "", "the DynamoDB `table` of the outbox")
		c.Flags().StringVar(&a.flags.outbox, "outbox", "", "the `name` of the outbox in it")
	}
	return c
}
