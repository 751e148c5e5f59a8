package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

type replayFlags struct {
	note, archive, id string
	again             int64
	committed         bool
	wait              time.Duration
}

func (a *app) replay() *cobra.Command {
	var f replayFlags
	c := a.command("replay [MESSAGE-ID]", "Run a completed event again, from a message of it", `Runs one completed event a second time: from a message of the dead-letter queue, or with --archive and --id from a file of dlq export
or dlq delete. Its effect happens again. Without --again the command changes nothing and prints the command with it. --again names the
run to repeat, so that the same command repeats only that run.

The command reopens the record: from then on any delivery of the event runs it. 65 s later, when consumers no longer remember that the
event was done, it sends a copy to the source queue, deletes the message and waits for the end of the delivery. An interrupted replay
prints the command that continues it. On a FIFO queue the effect comes after those of newer events.

Lines in a pipe: message, key, action, the event's state. With --json: an object for each step.`,
		"  sqsonce replay --queue orders --consumer billing --table dedup --note 'charge was refunded' --again 1767222000000 11111111-1111-1111-1111-111111111111",
		cobra.MaximumNArgs(1), func(ctx context.Context, args []string) error { return a.runReplay(ctx, args, f) })
	flags := c.Flags()
	flags.StringVar(&f.note, "note", "", "the reason, shown with the record: `text`")
	_ = c.MarkFlagRequired("note")
	flags.Int64Var(&f.again, "again", 0, "the `fence` of the completed run that is to be repeated")
	flags.BoolVar(&f.committed, "committed", false, "also where the handler's writes were committed with the record: they are made again")
	flags.StringVar(&f.archive, "archive", "", "the `file` with the message, instead of the dead-letter queue")
	_ = c.MarkFlagFilename("archive", "jsonl") // fail for flags that do not exist
	flags.StringVar(&f.id, "id", "", "the `ID` of the message in the file")
	c.MarkFlagsRequiredTogether("archive", "id")
	flags.DurationVar(&f.wait, "wait", 2*time.Minute, "how long the run may take, behind all messages that wait in the queue. 0: don't wait for it")
	a.limitFlag(c)
	a.confirmFlags(c)
	a.operatorFlag(c)
	return a.queueFlags(c)
}

func (a *app) runReplay(ctx context.Context, args []string, f replayFlags) error {
	switch {
	case (len(args) == 0) == (f.archive == ""):
		return fail(exitUsage, "which message? Give its ID, or --archive and --id")
	case strings.TrimSpace(f.note) == "":
		return fail(exitUsage, "--note is empty: say why the event runs again")
	case a.flags.consumer == "":
		return fail(exitUsage, "whose event? Set --consumer or SQSONCE_CONSUMER")
	}
	d, url, err := a.openDLQ(ctx)
	if err != nil {
		return err
	}
	m, err := a.replayed(ctx, d, args, f)
	if err != nil {
		return err
	}
	store, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	r, err := read(ctx, store, m.RecordKey)
	if err != nil {
		return err
	}
	if err := a.planReplay(r, f); err != nil {
		return err
	}
	if a.flags.dryRun {
		return a.printReplay(ops.Result{ID: m.ID, Group: m.Group, RecordKey: r.Key, State: r.state, Action: ops.ActionPlanned})
	}
	if err := a.confirmReplay(ctx, r); err != nil {
		return err
	}
	change, err := a.audit(ctx, auditLine{What: "replay", Queue: url, Key: r.Key, Note: f.note, Before: r.state, After: dedup.StateCompleted})
	if err != nil {
		return err
	}
	res, err := a.callReplay(ctx, d, url, m, f)
	printErr := a.printReplay(res)
	if errors.Is(err, ops.ErrReopened) || err != nil && res.Action == ops.ActionLeft && codeOf(ctx, err) != exitRefused {
		a.note("to go on: %s", a.again(a.args))
	}
	return errors.Join(err, printErr, change.end(res.After, err))
}

// replayed returns the message that is meant.
func (a *app) replayed(ctx context.Context, d *ops.DLQ, args []string, f replayFlags) (m *ops.Message, err error) {
	if f.archive != "" {
		m, err = archivedMessage(f.archive, f.id)
	} else {
		m, err = a.listed(ctx, d, args[0])
	}
	switch {
	case err != nil:
		return nil, err
	case m.Problem != nil && (denied(m.Problem) || m.RecordKey == ""):
		return nil, m.Problem
	case m.RecordKey == "":
		return nil, fail(exitRefused, "message %s was archived without its key: dlq restore it, and replay it from the dead-letter queue", m.ID)
	}
	return m, nil
}

func (a *app) listed(ctx context.Context, d *ops.DLQ, id string) (*ops.Message, error) {
	l, err := d.List(ctx, a.flags.limit)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(l.Messages, func(m *ops.Message) bool { return m.ID == id })
	if i < 0 {
		return nil, fail(exitFailed, "message %s is not among the %d that were read", id, len(l.Messages))
	}
	return l.Messages[i], nil
}

// archivedMessage returns the first message with the ID, as dlq restore.
func archivedMessage(path, id string) (*ops.Message, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fail(exitFailed, "the archive cannot be read: %w", err)
	}
	defer file.Close()
	for m, err := range ops.ReadArchive(file) {
		if err != nil {
			return nil, err
		}
		if m.ID == id {
			return m, nil
		}
	}
	return nil, fail(exitFailed, "message %s is not in %s", id, path)
}

// planReplay says what is to be done, or why it is not.
func (a *app) planReplay(r seen, f replayFlags) error {
	a.note("%s is %s: %s", r.Key, r.state, r.means())
	ran := time.UnixMilli(r.Fence).UTC().Format(time.RFC3339)
	switch {
	case r.state == dedup.StateReleased && strings.HasPrefix(r.Owner, host.OperatorPrefix):
		a.note("replay: its record was reopened, so that it runs again: that goes on")
		return nil
	case r.state != dedup.StateCompleted:
		return fail(exitRefused, "replay is for a completed event, and %s is %s: %s", r.Key, r.state, ops.Do(r.state))
	case f.again > 0 && r.Fence > f.again:
		return fail(exitRefused, "%w: at %s", ops.ErrRanAgain, ran)
	case r.Fence != f.again || r.Committed && !f.committed:
		what := "it is completed, by the run of " + ran
		if r.Committed {
			what += ", and its effect was committed with the record"
		}
		return fail(exitRefused, "%s. To make its effect once more:\n  %s", what, a.againCommand(r))
	}
	a.note("replay: its run of %s is repeated: its effect is made once more, 65 s after the record is reopened", ran)
	return nil
}

// againCommand is the command line with the fence of the record.
func (a *app) againCommand(r seen) string {
	words := slices.DeleteFunc(withoutFlag(a.args, "--again"), func(arg string) bool { return strings.HasPrefix(arg, "--committed") })
	flags := []string{"--again", strconv.FormatInt(r.Fence, 10)}
	if r.Committed {
		flags = append(flags, "--committed")
	}
	return a.again(words, flags...)
}

// confirmReplay asks for the key where a completed event is to run, and once more where its effect was committed.
func (a *app) confirmReplay(ctx context.Context, r seen) error {
	q := question{verb: "replay"}
	if r.state == dedup.StateCompleted {
		q.typed, q.what = r.Key, "the key"
	}
	if err := a.confirm(ctx, q); err != nil || q.typed == "" || !r.Committed || !a.asks {
		return err
	}
	a.note("replay: the handler's writes were committed with the record, and are made again")
	return a.confirm(ctx, question{verb: "replay"})
}

func (a *app) callReplay(ctx context.Context, d *ops.DLQ, url string, m *ops.Message, f replayFlags) (ops.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	event := a.eventsOr(cancel)
	event(object{
		{"v", 1}, {"event", "start"}, {"operation", "replay"}, {"queue", host.QueueName(url)}, {"id", m.ID}, {"key", m.RecordKey},
	})
	c := countdown{a: a}
	res, err := d.Replay(ctx, m, f.note, func(o *ops.ReplayOptions) {
		o.Again, o.Committed, o.Name, o.Timeout = f.again, f.committed, a.flags.operator, f.wait
		if f.wait == 0 {
			o.Timeout = -1 // 0 is its default
		}
		o.Progress = func(sent bool, left time.Duration) {
			w := untilForgotten
			if sent {
				w = untilEnded
			}
			if w != c.wait {
				event(struct {
					V       int     `json:"v"`
					Event   string  `json:"event"`
					Until   string  `json:"until"`
					Seconds float64 `json:"seconds"` // at most
				}{1, "wait", w, left.Seconds()})
			}
			c.show(w, left)
		}
	})
	c.end()
	return res, err
}

// printReplay prints what was done.
func (a *app) printReplay(res ops.Result) error {
	if a.flags.json {
		return a.printEvent(resultOf(&res))
	}
	return a.printTable([]string{"MESSAGE", "KEY", "ACTION", "AFTER"}, [][]string{{res.ID, res.RecordKey, string(res.Action), string(res.After)}})
}

// The waits of a replay.
const (
	untilForgotten = "until_forgotten" // by the consumers that saw the event completed; nothing is sent yet
	untilEnded     = "until_ended"     // the delivery of the copy
)

// countdown shows on standard error what a replay waits for: on a terminal as one line, else as it begins, and its last second.
type countdown struct {
	a    *app
	wait string // "": nothing was shown
}

func (c *countdown) show(w string, left time.Duration) {
	first := w != c.wait
	if first {
		c.end()
		c.wait = w
	}
	text := "until the copy is sent: a consumer may remember for so long that the event was done"
	if w == untilEnded {
		text = "at most until the run has ended: its copy is in the queue"
	}
	text = fmt.Sprintf("%.0f s %s", left.Seconds(), text)
	switch {
	case c.a.bars:
		fmt.Fprintf(c.a.err, "\r\x1b[K%s", text)
	case first || left <= time.Second:
		c.a.note("%s", text)
	}
}

// end ends the line.
func (c *countdown) end() {
	if c.a.bars && c.wait != "" {
		fmt.Fprintln(c.a.err)
	}
}
