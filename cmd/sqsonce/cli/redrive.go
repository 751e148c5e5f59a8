package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

type redriveFlags struct {
	selection
	crashed, crashLoops, unknown, expired, withoutRecords, skipAhead bool
	rate, canary, maxRedriven                                        int
	canaryTimeout, hold                                              time.Duration
	journal                                                          string
}

func (a *app) dlqRedrive() *cobra.Command {
	f := redriveFlags{selection: newSelection()}
	c := a.command("redrive", "Send messages of a dead-letter queue back, as the same events", `Sends messages back to their source queues as the same events, and deletes each one once SQS has its copy. It leaves events that run,
have run or have no record: see --crashed, --unknown, --expired and --same-keys. A released event may have had its effect before it
failed, and runs again from the beginning. Select the messages, if only with --all.

The command first receives the messages, like dlq ls, shows a plan and asks you, unless you give --yes without --expect. The first
message sent is a canary: the others wait until its event is completed. A journal records sends and deletes: an interrupted redrive
prints the command that continues it.

Lines in a pipe: action, number of messages, reason. With --json: an object for each step.`,
		`  sqsonce dlq redrive --queue orders --consumer billing --table dedup --class 89e451
  sqsonce dlq redrive --queue orders --consumer billing --table dedup --sent-after 3d --dry-run`,
		cobra.NoArgs, nil)
	c.RunE = a.command("", "", "", "", nil, func(ctx context.Context, _ []string) error { return a.redrive(ctx, f, c.Flags().Changed("canary")) }).RunE
	f.flags(c)
	flags := c.Flags()
	flags.BoolVar(&f.crashed, "crashed", false, "also send events whose consumer died while it ran: they may have had their effect, and run again")
	flags.BoolVar(&f.crashLoops, "crash-loops", false, "with --crashed also send events whose consumers died twice or more often: they may kill the next one. The command asks you on a terminal")
	flags.BoolVar(&f.unknown, "unknown", false, "also send events without a record under their key, for example of a consumer with a key function or another store. They may have run, and may run a second time: a canary that completes proves only that such an event runs now. The command asks you on a terminal")
	flags.BoolVar(&f.expired, "expired", false, "also send messages so old that their record may have expired: they may be done, and run again")
	flags.BoolVar(&f.withoutRecords, "without-records", false, "send without a look at records, where there is no --consumer")
	flags.BoolVar(&f.skipAhead, "skip-ahead", false, "also send messages behind others of their FIFO group that stay. Gives up the order")
	flags.IntVar(&f.rate, "rate", 50, "send at most this many `messages` a second. 0: no limit")
	flags.IntVar(&f.canary, "canary", 1, "send this many `messages` first, each once the record under its key says completed. Without such a record the redrive stops, whether or not the event ran. 0: none")
	flags.DurationVar(&f.canaryTimeout, "canary-timeout", 2*time.Minute, "how long a canary may take behind all messages that wait in the queue, besides the queue's delay")
	flags.IntVar(&f.maxRedriven, "max-redriven", 3, "leave messages that were redriven this many `times` before. 0: no limit")
	flags.DurationVar(&f.hold, "hold", time.Minute, "how long messages stay hidden at most if the command is killed")
	flags.StringVar(&f.journal, "journal", "", "the `file` of the journal. An existing journal continues its interrupted redrive (default: a new one next to the audit)")
	_ = c.MarkFlagFilename("journal", "jsonl") // fails for a flag that does not exist
	a.confirmFlags(c)
	a.sameKeysFlag(c)
	a.expectFlag(c)
	a.planFlag(c)
	return a.queueFlags(c)
}

// redrive plans, asks, and redrives.
func (a *app) redrive(ctx context.Context, f redriveFlags, canarySet bool) error {
	if err := a.checkRedrive(&f, canarySet); err != nil {
		return err
	}
	a.flags.hold = f.hold
	d, url, err := a.openDLQ(ctx)
	if err != nil {
		return err
	}
	options, err := a.redriveOptions(ctx, f)
	if err != nil {
		return err
	}
	r := &redrive{&work{a: a, operation: "redrive", done: ops.ActionRedriven, url: url, journal: f.journal}, d, options, f.named() && f.journal == "", nil}
	if !a.flags.yes || a.flags.expect >= 0 || a.flags.dryRun || a.flags.plan != "" {
		p, err := r.plan(ctx)
		if err != nil {
			return err
		}
		if p, err = r.askMore(ctx, p); err != nil {
			return err
		}
		if err := a.asPlanned(p.Hash); err != nil {
			return err
		}
		if a.flags.dryRun || p.Count == 0 {
			return errors.Join(a.printPlan(p), p.none(a.flags.dryRun))
		}
		if err := a.expected(p.Count); err != nil {
			return err
		}
		a.showPlan(p)
		if err := a.confirm(ctx, question{verb: "redrive"}); err != nil {
			return err
		}
		r.total = p.Count
		if a.flags.plan != "" { // what has come since was on no list
			r.options = r.onlyPlanned(r.options, p.planned)
		}
	} else if a.flags.consumer != "" { // the plan would have said so
		r.warned = map[dedup.RecordState]bool{}
	}
	signal.Ignore(syscall.SIGPIPE) // a result that nobody reads is an error, after which all is given back
	return r.withJournal(ctx, r.redrive)
}

// checkRedrive refuses what the flags do not say clearly.
func (a *app) checkRedrive(f *redriveFlags, canarySet bool) error {
	if err := f.check(a, true); err != nil {
		return err
	}
	switch {
	case a.flags.consumer == "" && !f.withoutRecords:
		return fail(exitUsage, "whose records? Set --consumer, or --without-records, which also sends completed events (the consumer drops them)")
	case a.flags.consumer != "" && f.withoutRecords:
		return fail(exitUsage, "--without-records is for a redrive without --consumer")
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
	selection, err := f.of(ctx, a)
	if err != nil {
		return nil, err
	}
	none := func(n int) int {
		if n == 0 {
			return -1
		}
		return n
	}
	return func(o *ops.RedriveOptions) {
		o.Selection = selection
		o.Crashed, o.CrashLoops, o.Unknown, o.Expired, o.WithoutRecords, o.SkipAhead = f.crashed, f.crashLoops, f.unknown, f.expired, f.withoutRecords, f.skipAhead
		o.Rate, o.Canary, o.MaxRedriven = none(f.rate), none(f.canary), none(f.maxRedriven)
		o.CanaryTimeout = f.canaryTimeout
	}, nil
}

// redrive is a redrive that is under way.
type redrive struct {
	*work
	d       *ops.DLQ
	options func(*ops.RedriveOptions)
	named   bool                       // the selection names what it means
	warned  map[dedup.RecordState]bool // nil: a plan has warned of all states
}

// warn says once for each state that is sent what the redrive may do to such events.
func (r *redrive) warn(p *progress, res *ops.Result) {
	if r.warned == nil || r.warned[res.State] || res.Action == ops.ActionLeft || res.Action == ops.ActionSendFailed {
		return
	}
	r.warned[res.State] = true
	for _, risk := range risks(func(s dedup.RecordState) bool { return s == res.State }) {
		p.line("%s", risk)
	}
}

// onlyPlanned has the messages left that are not in the plan.
func (r *work) onlyPlanned(options func(*ops.RedriveOptions), planned map[string]bool) func(*ops.RedriveOptions) {
	leave := only(func(m *ops.Message) bool {
		if !planned[m.ID] {
			r.unplanned.Add(1)
		}
		return planned[m.ID]
	})
	return func(o *ops.RedriveOptions) { options(o); leave(o) }
}

func (r *redrive) redrive(ctx context.Context) (ops.Report, error) {
	a := r.a
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := a.newProgress(r.total)
	defer p.stop()
	event := a.eventsOr(cancel)
	event(r.start())
	report, err := r.d.Redrive(ctx, r.options, func(o *ops.RedriveOptions) {
		o.Journal = r.journal
		o.OnResult = func(res *ops.Result) {
			r.warn(p, res)
			p.result(res)
			event(resultOf(res))
		}
	})
	selected := func(res *ops.Result) bool { return !errors.Is(res.Err, ops.ErrNotSelected) }
	if err == nil && !r.given && r.unplanned.Load() == 0 && report.Total <= len(report.Results) && !slices.ContainsFunc(report.Results, selected) {
		err = os.Remove(r.journal) // which says nothing
		if r.journal = ""; r.named && len(report.Results) > 0 {
			err = errors.Join(errNoneSelected, err)
		}
		return report, err
	}
	crashed := func(res *ops.Result) bool { return res.After == dedup.StateCrashed }
	free := func(res *ops.Result) bool {
		return res.State == dedup.StateReleased && errors.Is(res.Err, ops.ErrCanary)
	}
	others := report.Total > len(report.Results) || slices.ContainsFunc(report.Results, free)
	blocked := slices.IndexFunc(report.Results, func(res *ops.Result) bool {
		return res.Canary > 0 && res.State == dedup.StateCrashed && res.After == ops.StateUnknown
	})
	switch {
	case !errors.Is(err, ops.ErrCanary):
	case slices.ContainsFunc(report.Results, crashed) && others:
		if args := a.withoutCrashed(ctx, report.Results); args != nil {
			err = fmt.Errorf("%w. The others, without it: %s", err, a.again(releasedOnly(args), "--state", string(dedup.StateReleased)))
		}
	case blocked >= 0:
		key := report.Results[blocked].RecordKey
		err = fmt.Errorf("%w. To free it: %s", err, a.hint(key, "record", "free", key))
	}
	return report, err
}

// withoutCrashed is the command line of this call without the keys of events that crashed, or nil where it has no other key: it would send
// more than was meant.
func (a *app) withoutCrashed(ctx context.Context, results []*ops.Result) (args []string) {
	store, err := a.openStore(ctx)
	if err != nil {
		return nil
	}
	crashed, others := false, false
	for i := 0; i < len(a.args); i++ {
		words := a.args[i : i+1]
		key, is := strings.CutPrefix(words[0], "--key=")
		if words[0] == "--key" && i+1 < len(a.args) {
			i++
			words, key, is = a.args[i-1:i+1], a.args[i], true
		}
		if is {
			if key, err = a.recordKey(store, key); err != nil {
				return nil
			}
			if slices.ContainsFunc(results, func(res *ops.Result) bool { return res.RecordKey == key && res.After == dedup.StateCrashed }) {
				crashed = true
				continue
			}
			others = true
		}
		args = append(args, words...)
	}
	if crashed && !others {
		return nil
	}
	return args
}

// releasedOnly is the command line of a redrive without the flags that released events do not need.
func releasedOnly(args []string) []string {
	for _, flag := range []string{"--state", "--plan", "--expect", "--journal"} {
		args = withoutFlag(args, flag)
	}
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains([]string{"--all", "--crashed", "--crash-loops"}, name)
	})
}

// resultOf is what became of a message. It came back if this run has sent it before.
func resultOf(res *ops.Result) object {
	return object{
		{"v", 1}, {"event", "result"}, {"id", res.ID}, {"action", res.Action}, {"why,omitzero", why(res)}, {"error", res.Err},
		{"state,omitzero", res.State}, {"class,omitzero", res.Class.ID}, {"key,omitzero", res.RecordKey}, {"group,omitzero", res.Group},
		{"destination,omitzero", host.QueueName(res.Destination)}, {"sent_id,omitzero", res.SentID}, {"after,omitzero", res.After},
		{"came_back,omitzero", errors.Is(res.Err, ops.ErrCameBack)},
	}
}

// count is how many messages had the same end.
type count struct {
	Action ops.Action `json:"action"`
	Count  int        `json:"count"`
	Why    string     `json:"why,omitempty"`
}

// countsOf counts what a report knows. A run that has failed has left what it had not received by then.
func countsOf(r ops.Report, failed error) []count {
	counts := []count{} // [] in JSON
	for _, res := range r.Results {
		i := slices.IndexFunc(counts, func(c count) bool { return c.Action == res.Action && c.Why == why(res) })
		if i < 0 {
			i = len(counts)
			counts = append(counts, count{Action: res.Action, Why: why(res)})
		}
		counts[i].Count++
	}
	if unseen := r.Total - len(r.Results); failed != nil && unseen > 0 {
		counts = append(counts, count{ops.ActionLeft, unseen, "not received before the end, and perhaps not selected"})
	}
	slices.SortStableFunc(counts, func(a, b count) int {
		return cmp.Or(-cmp.Compare(a.Action, b.Action), b.Count-a.Count, cmp.Compare(a.Why, b.Why))
	})
	return counts
}

// printEvent prints a line of --json at once.
func (a *app) printEvent(v any) error {
	if err := a.printJSON(v); err != nil {
		return err
	}
	return a.flush()
}

// eventsOr returns what prints a line of --json, and cancels where it cannot.
func (a *app) eventsOr(cancel func(error)) func(any) {
	return func(v any) {
		if !a.flags.json {
			return
		}
		if err := a.printEvent(v); err != nil {
			cancel(err)
		}
	}
}

func (a *app) flush() error {
	if out, ok := a.out.(interface{ Flush() error }); ok {
		if err := out.Flush(); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
	return nil
}
