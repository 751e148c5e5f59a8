package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

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

func parkedAs(p outbox.Policy) outboxState {
	switch p {
	case outbox.Halt:
		return halted
	case outbox.Skip:
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
	parked, limit := false, 0
	c := a.command("ls", "List the groups whose events are not published yet", `Lists the groups of an outbox that have events, or with --parked the events that SQS refused. On DynamoDB it scans the table, which
holds only unpublished events. It changes nothing. Events of the last seconds may be missing.

Lines in a pipe: `+inWords(groupColumns)+". With --parked: "+inWords(entryColumns)+".",
		"  sqsonce outbox ls --table outbox --outbox orders --parked",
		cobra.NoArgs, func(ctx context.Context, _ []string) error {
			switch {
			case limit == 0:
				return fail(exitUsage, "--limit is 0")
			case parked:
				return a.listParked(ctx, limit)
			}
			return a.listGroups(ctx, limit)
		})
	c.Flags().BoolVar(&parked, "parked", false, "the events that SQS has refused")
	c.Flags().IntVar(&limit, "limit", 1000, "list at most this many `groups` or events. Negative: no limit")
	return a.outboxFlags(c)
}

// outboxPage is how many groups, or events, one call of the store returns.
const outboxPage = 100

type groupJSON struct {
	Group       string      `json:"group"`
	State       outboxState `json:"state"`
	CommittedAt time.Time   `json:"committed_at,omitzero"`
	Last        int64       `json:"last_seq,omitempty"`
}

var groupColumns = []shownColumn[groupJSON]{
	{"GROUP", "group", func(_ *app, g groupJSON) string { return g.Group }},
	{"STATE", "state of its first event", func(_ *app, g groupJSON) string { return string(g.State) }},
	{"COMMITTED", "when that was committed", func(a *app, g groupJSON) string { return a.when(g.CommittedAt) }},
	{"LAST", "last number", func(_ *app, g groupJSON) string {
		if g.Last == 0 {
			return "" // not known
		}
		return strconv.FormatInt(g.Last, 10)
	}},
}

func (a *app) listGroups(ctx context.Context, limit int) error {
	store, err := a.openOutbox(ctx)
	if err != nil {
		return err
	}
	groups, more := []groupJSON{}, true
	for after := ""; more && (limit < 0 || len(groups) < limit); more = after != "" {
		var found []outbox.Group
		if found, after, err = store.Groups(ctx, after, outboxPage); err != nil {
			break
		}
		for _, g := range found {
			if limit >= 0 && len(groups) == limit {
				break
			}
			groups = append(groups, groupJSON{g.Name, parkedAs(g.Parked), committedAt(g.Age), g.Last})
		}
	}
	if a.flags.json {
		err = errors.Join(err, a.printJSON(struct {
			V      int         `json:"v"`
			Groups []groupJSON `json:"groups"`
		}{1, groups}))
	} else {
		err = errors.Join(err, printColumns(a, groupColumns, groups))
	}
	a.note("%d groups with events were read", len(groups))
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

// entryJSON is an event of an outbox.
type entryJSON struct {
	Group       string                   `json:"group"`
	Seq         int64                    `json:"seq"`
	ID          string                   `json:"id"`
	Type        string                   `json:"type,omitempty"`
	Source      string                   `json:"source"`
	State       outboxState              `json:"state"`
	CommittedAt time.Time                `json:"committed_at,omitzero"`
	Reason      string                   `json:"reason,omitempty"`
	BodyBytes   int                      `json:"body_bytes"`
	Attributes  map[string]attributeJSON `json:"attributes,omitempty"`
	Body        string                   `json:"body,omitempty"`
}

func newEntryJSON(e outbox.Entry, body bool) entryJSON {
	out := entryJSON{
		Group: e.Group, Seq: e.Seq, ID: e.ID, Type: e.Type, Source: e.Source, State: parkedAs(e.Parked), CommittedAt: committedAt(e.Age),
		Reason: e.Reason, BodyBytes: len(e.Body), Attributes: newAttributesJSON(e.Attributes),
	}
	if body {
		out.Body = e.Body
	}
	return out
}

func (a *app) listParked(ctx context.Context, limit int) error {
	store, err := a.openOutbox(ctx)
	if err != nil {
		return err
	}
	most := limit
	if most < 0 {
		most = 1 << 30
	}
	entries, err := store.Parked(ctx, most)
	if err := errors.Join(err, a.printEntries(entries, entryColumns)); err != nil {
		return err
	}
	a.note("%d events are parked", len(entries))
	if len(entries) == limit {
		a.note("there may be more: --limit")
	}
	return nil
}

var entryColumns = []shownColumn[entryJSON]{
	{"GROUP", "group", func(_ *app, e entryJSON) string { return e.Group }},
	{"SEQ", "number", func(_ *app, e entryJSON) string { return strconv.FormatInt(e.Seq, 10) }},
	{"EVENT", "event ID", func(_ *app, e entryJSON) string { return e.ID }},
	{"STATE", "state", func(_ *app, e entryJSON) string { return string(e.State) }},
	{"COMMITTED", "when it was committed", func(a *app, e entryJSON) string { return a.when(e.CommittedAt) }},
	{"REASON", "reason", func(_ *app, e entryJSON) string { return e.Reason }},
}

func (a *app) printEntries(entries []outbox.Entry, columns []shownColumn[entryJSON]) error {
	out := make([]entryJSON, 0, len(entries))
	for _, e := range entries {
		out = append(out, newEntryJSON(e, false))
	}
	if a.flags.json {
		return a.printJSON(struct {
			V      int         `json:"v"`
			Events []entryJSON `json:"events"`
		}{1, out})
	}
	return printColumns(a, columns, out)
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
	j := newEntryJSON(e, body)
	if a.flags.json {
		return a.printJSON(struct {
			V     int       `json:"v"`
			Event entryJSON `json:"event"`
		}{1, j})
	}
	pairs := []pair{
		{"event", e.ID}, {"group", e.Group}, {"seq", strconv.FormatInt(e.Seq, 10)}, {"state", string(j.State)}, {"means", j.State.means()}, {"do", j.State.do()},
		{"reason", e.Reason}, {"committed", a.when(j.CommittedAt)}, {"type", e.Type}, {"source", e.Source}, {"bytes", strconv.Itoa(len(e.Body))},
	}
	for _, name := range slices.Sorted(maps.Keys(e.Attributes)) {
		pairs = append(pairs, pair{"attribute " + name, attributeText(e.Attributes[name])})
	}
	if body {
		pairs = append(pairs, pair{"body", e.Body})
	}
	return a.printPairs(pairs)
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
