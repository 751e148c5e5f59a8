package cli

import (
	"context"
	"errors"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/ops"
)

type redriveFlags struct {
	classes, ids, keys, groups                                []string
	state                                                     states
	after, before                                             moment
	all                                                       bool
	crashed, expired, withoutRecords, neverStarted, skipAhead bool
	rate, canary, maxRedriven                                 int
	canaryTimeout, hold                                       time.Duration
	journal                                                   string
}

func (a *app) dlqRedrive() *cobra.Command {
	f := redriveFlags{state: states{of: ops.States()}}
	c := a.command("redrive", "Send messages of a dead-letter queue back, as the same events", `Sends messages back to the queues that they came from, as the same events, and deletes each one when SQS has its copy. What runs
or has run is left: see --crashed and --expired. Which messages are meant must be said, if only by --all.

First the messages are received, as by dlq ls, for a plan and a question; with --yes and no --expect that is left out. The first
message that is sent is a canary: the others wait until its event is completed. What has been sent and deleted is in a journal: a
redrive that was interrupted says with which command it goes on.

Lines in a pipe: what was done, of how many messages, why. With --json: one object for each thing that happens.`,
		`  sqsonce dlq redrive --queue orders --consumer billing --table dedup --class 7f0044
  sqsonce dlq redrive --queue orders --consumer billing --table dedup --sent-after 3d --dry-run`,
		cobra.NoArgs, nil)
	c.RunE = a.command("", "", "", "", nil, func(ctx context.Context, _ []string) error { return a.redrive(ctx, f, c.Flags().Changed("canary")) }).RunE
	flags := c.Flags()
	flags.StringArrayVar(&f.classes, "class", nil, "only the class with this `ID`; can be repeated, as --id, --key and --group")
	f.state.add(c, "only events in this state")
	flags.StringArrayVar(&f.ids, "id", nil, "only the message with this `ID`")
	flags.StringArrayVar(&f.keys, "key", nil, "only messages of the event with this `key`")
	flags.StringArrayVar(&f.groups, "group", nil, "only messages of this FIFO `group`")
	flags.Var(&f.after, "sent-after", "only messages sent after this time, as 2026-01-31T12:00:00Z, or so long ago, as 12h or 3d")
	flags.Var(&f.before, "sent-before", "only messages sent before this time")
	flags.BoolVar(&f.all, "all", false, "all messages")
	flags.BoolVar(&f.crashed, "crashed", false, "also send events whose consumer died while it ran: they may have had their effect, and run again")
	flags.BoolVar(&f.expired, "expired", false, "also send messages so old that their record may be gone: they may be done, and run again")
	flags.BoolVar(&f.withoutRecords, "without-records", false, "send without a look at records, where there is no --consumer")
	flags.BoolVar(&f.neverStarted, "never-started", false, "no message need have a record: the consumer's name is right")
	flags.BoolVar(&f.skipAhead, "skip-ahead", false, "also send what lies behind messages of its FIFO group that are left: the order is given up")
	flags.IntVar(&f.rate, "rate", 50, "how many `messages` a second are sent; 0: no limit")
	flags.IntVar(&f.canary, "canary", 1, "how many `messages` are sent first, each when the event of the one before is completed; 0: none")
	flags.DurationVar(&f.canaryTimeout, "canary-timeout", 2*time.Minute, "how long a canary may take, behind all that waits in the queue")
	flags.IntVar(&f.maxRedriven, "max-redriven", 3, "leave messages that were redriven so many `times` before; 0: no limit")
	flags.DurationVar(&f.hold, "hold", time.Minute, "for how long messages are hidden at most where the command is killed")
	flags.StringVar(&f.journal, "journal", "", "the `file` of the journal; one of a redrive that was interrupted: go on with that (default a new one beside the audit)")
	_ = c.MarkFlagFilename("journal", "jsonl") // fails for a flag that does not exist
	a.confirmFlags(c)
	a.expectFlag(c)
	return a.queueFlags(c)
}

// redrive plans, asks, and redrives.
func (a *app) redrive(ctx context.Context, f redriveFlags, canarySet bool) error {
	if err := a.checkRedrive(&f, canarySet); err != nil {
		return err
	}
	d, url, err := a.openDLQ(ctx)
	if err != nil {
		return err
	}
	options, err := a.redriveOptions(ctx, f)
	if err != nil {
		return err
	}
	total := 0 // not known
	if !a.flags.yes || a.flags.expect >= 0 || a.flags.dryRun {
		p, err := a.planRedrive(ctx, d, url, options)
		if err != nil {
			return err
		}
		if a.flags.dryRun || p.Count == 0 {
			return errors.Join(a.printPlan(p), p.left(a.flags.dryRun))
		}
		if err := a.expected(p.Count); err != nil {
			return err
		}
		a.showPlan(p)
		if err := a.confirm(ctx, question{verb: "redrive"}); err != nil {
			return err
		}
		total = p.Count
	}
	signal.Ignore(syscall.SIGPIPE) // a result that nobody reads is an error, after which all is given back
	r := &redrive{a: a, d: d, url: url, options: options, total: total, journal: f.journal}
	return r.run(ctx)
}

// checkRedrive refuses what the flags do not say clearly.
func (a *app) checkRedrive(f *redriveFlags, canarySet bool) error {
	filtered := f.classes != nil || f.state.values != nil || f.ids != nil || f.keys != nil || f.groups != nil ||
		!time.Time(f.after).IsZero() || !time.Time(f.before).IsZero()
	switch {
	case !filtered && !f.all:
		return fail(exitUsage, "which messages? Set --class, --state, --id, --key, --group, --sent-after or --sent-before, or --all")
	case filtered && f.all:
		return fail(exitUsage, "--all is not all beside another filter")
	case a.flags.consumer == "" && !f.withoutRecords:
		return fail(exitUsage, "whose records? Set --consumer, or --without-records: then also what is done is sent, which the consumer drops")
	case a.flags.consumer != "" && f.withoutRecords:
		return fail(exitUsage, "--without-records is for a redrive without --consumer")
	case a.flags.consumer == "" && (f.keys != nil || f.state.values != nil):
		return fail(exitUsage, "--key and --state need --consumer")
	case f.journal != "" && a.flags.dryRun:
		return fail(exitUsage, "--journal is not for a dry run")
	}
	if a.flags.consumer == "" && !canarySet {
		f.canary = 0
	}
	return nil
}

// redriveOptions returns what the flags say to ops. Its 0 is the default.
func (a *app) redriveOptions(ctx context.Context, f redriveFlags) (func(*ops.RedriveOptions), error) {
	var keys []string
	for _, arg := range f.keys {
		store, err := a.openStore(ctx)
		if err != nil {
			return nil, err
		}
		key, err := a.recordKey(store, arg)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	none := func(n int) int {
		if n == 0 {
			return -1
		}
		return n
	}
	return func(o *ops.RedriveOptions) {
		o.Classes, o.States, o.IDs, o.Keys, o.Groups = f.classes, f.state.values, f.ids, keys, f.groups
		o.SentAfter, o.SentBefore = time.Time(f.after), time.Time(f.before)
		o.Crashed, o.Expired, o.WithoutRecords, o.NeverStarted, o.SkipAhead = f.crashed, f.expired, f.withoutRecords, f.neverStarted, f.skipAhead
		o.Rate, o.Canary, o.MaxRedriven = none(f.rate), none(f.canary), none(f.maxRedriven)
		o.CanaryTimeout, o.Hold, o.SpendReceives = f.canaryTimeout, f.hold, a.flags.spendReceives
	}, nil
}

// whys are the reasons why ops leaves a message, in this command's words.
var whys = []struct {
	err error
	why string
}{
	{ops.ErrNotSelected, "not selected"},
	{ops.ErrNoDestination, "nothing says which queue it came from: --source"},
	{ops.ErrNoSource, "its key depends on the queue, and nothing says which one it came from: --source"},
	{ops.ErrTooOften, "redriven too often before: --max-redriven"},
	{ops.ErrArrivedLater, "came after the start"},
	{ops.ErrCameBack, "redriven by this run, and came back"},
	{ops.ErrHeldBehind, "behind a message of its group that was not redriven: --skip-ahead"},
}

// why says why a message was not redriven, in the same words for all messages of which that is so.
func why(res *ops.Result) string {
	for _, w := range whys {
		if errors.Is(res.Err, w.err) {
			return w.why
		}
	}
	switch {
	case res.Err == nil:
		return ""
	case !errors.Is(res.Err, ops.ErrState):
		return strings.ReplaceAll(res.Err.Error(), res.ID, "*")
	case res.State == ops.Crashed:
		return string(res.State) + ": " + res.State.Do() + "; --crashed sends it all the same"
	case res.State == ops.None:
		return "so old that its record may be gone: find out whether it was done; --expired sends it all the same"
	default:
		return string(res.State) + ": " + res.State.Do()
	}
}

// queueName is the last part of a queue's URL.
func queueName(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }
