package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/classes"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

const looking = `SQS has no peek, so the command receives the messages and gives them back. Each receive count grows by one, and the messages are hidden
from other consumers for seconds. If the command is killed, they stay hidden for a minute, or a minute for each 10,000 messages.
Nothing else changes.`

const unknowing = `A message without a record is unknown: it may have run. A host's copy names the record of a key function, where there was room. For other
messages of such a consumer build your own program with the package cmd/sqsonce/cli, see examples/operate. For records in SQL or Redis:
sqsonce-full --store URL.`

type dlqLsFlags struct {
	classes  []string
	state    states
	messages bool
	exitCode bool
}

func (a *app) dlqLs() *cobra.Command {
	f := dlqLsFlags{state: states{of: ops.States()}}
	c := a.command("ls", "List a dead-letter queue by reason", looking+`

A class is the messages with the same reason, apart from details, which are a *. It has a row for each state of their events. LAST is when
the newest message was sent. On a terminal --class shows ten reasons with their details. Crashed events are listed by the process in which
they ran, in the order of their starts: the suspect is the one that started last. Events whose messages are still in the source queue are
missing: record ls has them. CRASHES counts since the last free or other outcome, and the record's note has the count before a free.

`+unknowing+`

Lines in a pipe: `+inWords(classColumns)+". With --messages: "+inWords(messageColumns)+`. Without messages there
are no lines: a script reads --exit-code, or total and complete of --json.`,
		`  sqsonce dlq ls --queue orders --consumer billing --table dedup
  sqsonce dlq ls --dlq orders-dlq --consumer billing --table dedup --state crashed --messages`,
		cobra.NoArgs, func(ctx context.Context, _ []string) error { return a.listDLQ(ctx, f) })
	c.Flags().StringArrayVar(&f.classes, "class", nil, "only the class with this `ID` (repeatable)")
	f.state.add(c, "only events in this state")
	c.Flags().BoolVar(&f.messages, "messages", false, "one line for each message")
	c.Flags().BoolVar(&f.exitCode, "exit-code", false, "end with 3 where there are messages")
	a.sameKeysFlag(c)
	a.limitFlag(c)
	return a.queueFlags(c)
}

func (a *app) listDLQ(ctx context.Context, f dlqLsFlags) error {
	if err := checkClasses(f.classes); err != nil {
		return err
	}
	listing, url, err := a.look(ctx)
	if listing.AsOf.IsZero() {
		return err
	}
	var found, all []*ops.Message
	others := 0
	for _, m := range listing.Messages {
		if errors.Is(m.Problem, ops.ErrOtherSource) {
			others++
			continue
		}
		all = append(all, m)
		if (f.classes == nil || slices.Contains(f.classes, m.Class.ID)) && (f.state.values == nil || slices.Contains(f.state.values, m.State)) {
			found = append(found, m)
		}
	}
	a.summary(listing, url)
	if others > 0 {
		a.note("%d of them came from other queues, and are not shown. All of them: %s", others, a.again(withoutFlag(a.args, "--queue"), "--dlq", host.QueueName(url)))
	}
	for _, class := range f.classes {
		if !slices.ContainsFunc(found, func(m *ops.Message) bool { return m.Class.ID == class }) {
			a.note("no message of class %s was found. All classes: %s", class, a.hint("", "dlq", "ls"))
		}
	}
	a.hintSameKeys(ctx, all, found, f.classes)
	records := ops.RecordsOf(found)
	died := slices.DeleteFunc(ops.Processes(ops.RecordsOf(all)), func(p ops.Process) bool { // a filter hides no event of theirs
		return !slices.ContainsFunc(records, func(r ops.Record) bool { return r.State == dedup.StateCrashed && r.Process == p.Name })
	})
	switch {
	case a.flags.json:
		out := object{
			{"v", 1}, {"queue", url}, {"as_of", listing.AsOf}, {"total", listing.Total}, {"read", len(listing.Messages)}, {"hidden", listing.Hidden},
			{"behind", listing.Behind}, {"complete", listing.Complete}, {"lost_at,omitzero", classes.LostAt(listing.Messages)},
			{"classes", objectsOf(classColumns, classes.Of(found))}, processesIn(died),
		}
		if f.messages {
			out = append(out, member{"messages", objectsOf(messageColumns, found)})
		}
		err = errors.Join(err, a.printJSON(out))
	case f.messages:
		err = errors.Join(err, printColumns(a, messageColumns, found), a.printStates(found))
	default:
		of := classes.Of(found)
		err = errors.Join(err, printColumns(a, classColumns, of), a.printStates(found))
		if f.classes != nil {
			err = errors.Join(err, a.printTexts(of))
		}
	}
	if err = errors.Join(err, a.flush()); !a.flags.json {
		in := listedIn(listing, err == nil && ops.AllRead(all))
		if !f.messages {
			a.noteLedger(found, died, in.whole, f.classes)
		}
		a.noteProcesses(died, in)
	}
	if err == nil {
		err = unread(found)
	}
	switch {
	case err != nil || !f.exitCode:
	case len(found) > 0:
		return &exitError{code: exitFound}
	case !listing.Complete || listing.Hidden > 0:
		return fail(exitPart, "none found so far: not all messages were read")
	}
	return err
}

// look lists the queue that the flags name. A listing with a time is what was read before an error.
func (a *app) look(ctx context.Context) (ops.Listing, string, error) {
	d, url, err := a.openDLQ(ctx)
	if err != nil {
		return ops.Listing{}, "", err
	}
	l, err := d.List(ctx, a.flags.limit)
	return l, url, err
}

// unread is an error where records could not be read: State Unknown is then no property of the message.
func unread(messages []*ops.Message) error {
	n, why := 0, error(nil)
	for _, m := range messages {
		if m.Problem != nil && (denied(m.Problem) || errors.Is(m.Problem, sqsonce.ErrUnavailable)) {
			n, why = n+1, m.Problem
		}
	}
	switch {
	case n == 0:
		return nil
	case denied(why):
		return fail(exitDenied, "the records of %s were not read: %w", shown.Count(n, "message"), why)
	case errors.Is(why, dynamostore.ErrNoTable):
		return fail(exitPart, "the records of %s were not read, because the table does not exist: check --table, AWS_REGION and the account. For records in SQL or Redis use sqsonce-full --store", shown.Count(n, "message"))
	default:
		return fail(exitPart, "the records of %s were not read: %s", shown.Count(n, "message"), shown.Short(why.Error(), 500)) // the whole advice, and not a page of a proxy
	}
}

// summary says on standard error what was read, and what that has changed.
func (a *app) summary(l ops.Listing, url string) {
	kind := "standard"
	if strings.HasSuffix(url, ".fifo") {
		kind = "FIFO"
	}
	text := host.QueueName(url) + " (" + kind + "): " + shown.Count(len(l.Messages), "message")
	if l.Complete {
		text += ", all that SQS shows and counts"
	} else {
		text += " of about " + strconv.Itoa(max(l.Total, len(l.Messages)))
	}
	if l.Hidden > 0 {
		text += ", " + strconv.Itoa(l.Hidden) + " hidden by another consumer or listing"
	}
	if l.Behind > 0 {
		text += ", " + strconv.Itoa(l.Behind) + " behind them: SQS shows the first of each group only"
	}
	if lost := classes.LostAt(l.Messages); !lost.IsZero() {
		text += ". SQS deletes the oldest in " + shown.Brief(time.Until(lost), true)
		if kind == "FIFO" { // it counts from its own move, which no message tells
			text += ", or later"
		}
	}
	text += ". As of " + l.AsOf.UTC().Format(time.TimeOnly) + " UTC"
	if len(l.Messages) > 0 {
		text += ". Each was received once for this list"
	}
	a.note("%s", text)
}

var classColumns = []column[classes.Class]{
	{"CLASS", "class", "", "class", func(c classes.Class) any { return c.ID }},
	{"COUNT", "count", "", "count", func(c classes.Class) any { return c.Count }},
	{"STATE", "state", "", "state", func(c classes.Class) any { return c.State }},
	{"LAST", "last", "", "last,omitzero", func(c classes.Class) any { return c.Last }},
	{"", "different reasons", "", "texts", func(c classes.Class) any { return c.Texts }},
	{"REASON", "", "", "", func(c classes.Class) any { return reasonOnScreen(c) }},
	{"", "reason", "", "reason", func(c classes.Class) any { return c.Reason }},
	{"", "what to do", "", "do", func(c classes.Class) any { return c.Do }},
	{"", "", "", "reasons", func(c classes.Class) any { return c.Reasons }},
}

// reasonOnScreen has how many texts a class has, which has more than one.
func reasonOnScreen(c classes.Class) string {
	if c.Texts < 2 {
		return c.Reason
	}
	return fmt.Sprintf("%s (%d texts)", c.Reason, c.Texts)
}

// messageColumns has no bodies: they are shown on request.
var messageColumns = []column[*ops.Message]{
	{"MESSAGE", "ID", "message", "id", func(m *ops.Message) any { return m.ID }},
	{"STATE", "state", "state", "state", func(m *ops.Message) any { return m.State }},
	{"", "", "means", "", func(m *ops.Message) any { return ops.Means(m.State) }},
	{"", "", "do", "do", func(m *ops.Message) any { return ops.Do(m.State) }},
	{"CLASS", "class", "class", "class", func(m *ops.Message) any { return m.Class.ID }},
	{"SENT", "sent", "sent", "sent_at,omitzero", func(m *ops.Message) any { return m.SentAt }},
	{"", "", "lost", "lost_at,omitzero", func(m *ops.Message) any { return m.LostAt }},
	{"KEY", "key", "key", "key,omitzero", func(m *ops.Message) any { return m.RecordKey }},
	{"CAUSE", "cause", "cause", "cause", func(m *ops.Message) any { return m.Cause }},
	{"REASON", "reason", "reason", "reason", func(m *ops.Message) any { return m.Reason }},
	{"", "", "receives", "receives", func(m *ops.Message) any { return m.ReceiveCount }},
	{"", "", "source", "source,omitzero", func(m *ops.Message) any { return m.QueueARN }},
	{"", "", "group", "group,omitzero", func(m *ops.Message) any { return m.Group }},
	{"", "", "sequence", "sequence,omitzero", func(m *ops.Message) any { return m.Sequence }},
	{"", "", "dedup id", "dedup_id,omitzero", func(m *ops.Message) any { return m.DedupID }},
	{"", "", "trace", "trace,omitzero", func(m *ops.Message) any { return m.TraceHeader }},
	{"", "", "expired", "expired,omitzero", func(m *ops.Message) any { return expired(m.Expired) }},
	{"", "", "", "problem", func(m *ops.Message) any { return m.Problem }},
	{"", "", "record", "record", func(m *ops.Message) any {
		if m.Record == nil {
			return nil
		}
		return ops.NewRecord(*m.Record, m.State)
	}},
	{"", "", "attribute", "attributes,omitzero", func(m *ops.Message) any { return attributesOf(m.Attributes) }},
	{"", "", "body", "body_bytes", func(m *ops.Message) any { return size(len(m.Body)) }},
}

// printTexts lists under a table on a terminal the reasons of classes.
func (a *app) printTexts(of []classes.Class) error {
	var rows []pair
	for _, c := range of {
		for _, reason := range c.Reasons {
			rows = append(rows, pair{string(c.State), reason})
		}
	}
	if a.width == 0 || len(rows) == 0 {
		return nil
	}
	_, err := a.out.Write([]byte("\n"))
	return errors.Join(err, a.printPairs(rows))
}

// printStates says under a table on a terminal what the states in it mean.
func (a *app) printStates(found []*ops.Message) error {
	if a.width == 0 || len(found) == 0 {
		return nil
	}
	var rows []pair
	for _, s := range ops.States() {
		if slices.ContainsFunc(found, func(m *ops.Message) bool { return m.State == s }) {
			rows = append(rows, pair{string(s), ops.Means(s) + ". Do: " + ops.Do(s)})
		}
	}
	if _, err := a.out.Write([]byte("\n")); err != nil {
		return err
	}
	return a.printPairs(rows)
}

// alike are the reasons to leave a message that are the same for all messages of which they are so.
var alike = []error{
	ops.ErrNotSelected, ops.ErrStopped, ops.ErrNoDestination, ops.ErrNoSource, ops.ErrS3, ops.ErrTooOften, ops.ErrArrivedLater, ops.ErrCameBack, ops.ErrOtherQueue, ops.ErrHeldBehind, ops.ErrRemembered,
}

var notSelected = ops.ErrNotSelected.Error()

// why says why a message was left, in the same words for all messages of which that is so.
func why(res *ops.Result) string {
	for _, err := range alike {
		if errors.Is(res.Err, err) {
			return err.Error()
		}
	}
	switch {
	case res.Err == nil && res.After == dedup.StateCrashed:
		return "its process died, and it is crashed"
	case res.Err == nil:
		return ""
	case !errors.Is(res.Err, ops.ErrState):
		return strings.ReplaceAll(res.Err.Error(), res.ID, "*")
	case errors.Is(res.Err, ops.ErrCrashLoop):
		return ops.ErrCrashLoop.Error()
	case res.State == dedup.StateCrashed:
		return string(res.State) + ": " + ops.Do(res.State) + ". --crashed sends it anyway"
	case errors.Is(res.Err, ops.ErrExpired):
		return "no record under its key, and its record may have expired: find out whether the event was done. --expired sends it anyway"
	case errors.Is(res.Err, ops.ErrNoRecordOwnKey):
		return ops.ErrNoRecordOwnKey.Error() + ". --unknown sends it anyway"
	case errors.Is(res.Err, ops.ErrNoRecord):
		return "no record under its key: the consumer may use a key function or another store, and docs/operating.md#own-commands says how to read it. --unknown sends it anyway"
	default:
		return string(res.State) + ": " + ops.Do(res.State)
	}
}
