package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/cut"
	"github.com/sqsonce/sqsonce/internal/host"
)

// resumed is how long the record of a resume is kept: workers log who asked for it.
const resumed = time.Hour

const watches = `Workers obey that have the hooks of package control. Others go on: sqsonce status --worker shows which.`

// controlPlan is what a command would ask of a consumer.
type controlPlan struct {
	verb   string
	seen   control.Snapshot
	to     control.State
	length time.Duration
	effect string
}

type controlFlags struct {
	until  days
	reason string
	lose   bool

	function functionName
	role     string // with function, as yesRole
	yesRole  bool
}

func (a *app) pause() *cobra.Command {
	var f controlFlags
	c := a.command("pause", "Stop the workers of a consumer, or a function, for a time", `Has the workers of a consumer stop receiving, within 6 s. Long polls that are under way may bring messages until they end. Handlers that
run go on to their end. The pause ends after --until, or by sqsonce resume.

The queue keeps deleting messages whose retention ends. The command refuses a pause in which that would happen, and where it doesn't
know: set --queue, and allow cloudwatch:GetMetricData. Of a standard queue it knows only if the queue is empty, because CloudWatch's age
leaves out messages that were received three times. `+watches+`

With --function it switches the function's event source mappings off. EventBridge Scheduler switches them on after --until, by --role,
also if this computer is off by then.`, "  sqsonce pause --table dedup --consumer billing --queue orders --until 2h --reason 'bank is down'\n"+
		"  sqsonce pause --function billing --role arn:aws:iam::111122223333:role/switch-back --until 2h --reason 'bank is down'",
		cobra.NoArgs, func(ctx context.Context, _ []string) error {
			switch {
			case f.function != "":
				return a.pauseFunction(ctx, f)
			case f.role != "" || f.yesRole:
				return fail(exitUsage, "--role and --yes-role need --function")
			}
			return a.control(ctx, "pause", f, control.State{Paused: true}, func(ctx context.Context) error { return a.checkLoss(ctx, a.flags.consumer, a.flags.queue, f) })
		})
	c.Flags().StringVar(&a.flags.queue, "queue", "", "the `queue` of the workers, by name, URL or ARN: for how long it keeps its messages. With --function: only its mappings from this queue")
	c.Flags().BoolVar(&f.lose, "yes-lose", false, "also if SQS may delete messages before the pause ends")
	c.Flags().StringVar(&f.role, "role", "", "with --function: the `ARN` of the role by which EventBridge Scheduler switches the mappings on. Required")
	c.Flags().BoolVar(&f.yesRole, "yes-role", false, "with --function: also if it is not known whether the role may do that")
	return a.functionFlag(a.controlFlags(c, &f, true), &f.function)
}

func (a *app) setConcurrency() *cobra.Command {
	var f controlFlags
	c := a.command("set-concurrency N", "Limit the handlers of each worker of a consumer for a time", `Has each worker of a consumer run at most N handlers at once. The limit never raises the concurrency of the program. It replaces an
earlier limit or pause, and ends after --until, or by sqsonce resume. `+watches, "  sqsonce set-concurrency --table dedup --consumer billing --until 1h --reason 'bank is slow' 2",
		cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 1 {
				return fail(exitUsage, "%q is not a number of handlers: to stop them all, sqsonce pause", args[0])
			}
			return a.control(ctx, "set-concurrency", f, control.State{Concurrency: n}, func(context.Context) error { return nil })
		})
	return a.controlFlags(c, &f, true)
}

func (a *app) resume() *cobra.Command {
	f := controlFlags{until: days(resumed)}
	c := a.command("resume", "End a pause or a limit", `Ends the pause or the limit of a consumer. Its workers go on within 6 s, and with messages that they hold within 16 s.

With --function it switches on the mappings that sqsonce pause has switched off, and no others.`,
		"  sqsonce resume --table dedup --consumer billing --reason 'bank is back'\n  sqsonce resume --function billing --reason 'bank is back'",
		cobra.NoArgs, func(ctx context.Context, _ []string) error {
			if f.function != "" {
				return a.resumeFunction(ctx, f)
			}
			return a.control(ctx, "resume", f, control.State{}, func(context.Context) error { return nil })
		})
	return a.functionFlag(a.controlFlags(c, &f, false), &f.function)
}

// functionFlag is for commands that are about a function too. It has neither a consumer nor records.
func (a *app) functionFlag(c *cobra.Command, function *functionName) *cobra.Command {
	c.Flags().Var(function, "function", "a Lambda function's `name` or ARN, in place of a consumer")
	for _, other := range []string{"consumer", "table", "store", "worker"} {
		if c.Flags().Lookup(other) != nil {
			c.MarkFlagsMutuallyExclusive("function", other)
		}
	}
	return c
}

// functionName is a flag that is not empty where it is set: without it another command is meant.
type functionName string

func (f *functionName) Set(s string) error {
	if s == "" {
		return errors.New("it is empty: is a variable not set?")
	}
	*f = functionName(s)
	return nil
}

func (f *functionName) String() string { return string(*f) }
func (f *functionName) Type() string   { return "name" }

func (a *app) controlFlags(c *cobra.Command, f *controlFlags, ends bool) *cobra.Command {
	c.Flags().StringVar(&f.reason, "reason", "", "why, which workers log and status shows: `text`. Required")
	if ends {
		c.Flags().Var(&f.until, "until", "how long it lasts, as 30m, 2h or 3d: 30 s to 7 days. Required")
	}
	a.confirmFlags(c)
	a.operatorFlag(c)
	a.planFlag(c)
	return a.recordFlags(c)
}

// openKeeper opens the store of a consumer's state.
func (a *app) openKeeper(ctx context.Context) (dedup.Keeper, error) {
	if a.flags.consumer == "" {
		return nil, fail(exitUsage, "which consumer? Set --consumer or SQSONCE_CONSUMER")
	}
	store, err := a.openStore(ctx)
	return able[dedup.Keeper](store, err, fail(exitFailed, "the store is no dedup.Keeper: it can't keep the state of a consumer"))
}

// control asks a consumer for a state, after its question.
func (a *app) control(ctx context.Context, verb string, f controlFlags, to control.State, check func(context.Context) error) error {
	store, err := a.openKeeper(ctx)
	if err != nil {
		return err
	}
	length := time.Duration(f.until)
	switch {
	case f.reason == "":
		return fail(exitUsage, "why? Set --reason")
	case length < host.LeastControl || length > host.MostControl:
		return fail(exitUsage, "--until must be 30s to 7d")
	}
	seen, err := control.Read(ctx, store, a.flags.consumer)
	key := host.ControlConsumer + "#" + a.flags.consumer
	if broken := errors.Is(err, control.ErrState); broken {
		r, gone := store.Inspect(ctx, key)
		switch {
		case gone != nil:
			return gone
		case !r.Completed || r.Owner == "" || r.Fence == 0: // Set does not replace it
			return fail(exitRefused, "%w. No command can replace it: delete the item %s by hand", err, key)
		}
		a.note("workers ignore the record of %s, and it is replaced: %s", a.flags.consumer, err.Error())
	} else if err != nil {
		return err
	} else if to.Open() && seen.Open() {
		a.note("nothing to do: %s is open", a.flags.consumer)
		return a.printControl(controlPlan{verb: verb, seen: seen}, seen.State)
	}
	a.caller = a.who(ctx) // the audit has it too
	to.Reason, to.By = f.reason, a.caller.by()
	p := controlPlan{verb: verb, seen: seen, to: to, length: length}
	ends := time.Now().Add(length).UTC().Format("2006-01-02 15:04 UTC")
	switch {
	case to.Paused:
		p.effect = "for " + shown.Brief(length, true) + ", until about " + ends + ", workers that watch receive nothing and start no handler, from 6 s on. Handlers that run go on"
	case to.Open():
		p.effect = "its workers go on within 6 s"
	default:
		p.effect = fmt.Sprintf("for %s, until about %s, each worker that watches runs at most %d handlers at once, from 6 s on", shown.Brief(length, true), ends, to.Concurrency)
	}
	if err := a.asPlanned(p.hash(a.flags.consumer)); err != nil {
		return err
	}
	a.note("%s is %s", a.flags.consumer, seen.State.String())
	if err := check(ctx); err != nil {
		return err
	}
	if a.flags.dryRun {
		a.note("would %s %s: %s", verb, a.flags.consumer, p.effect)
		to.Until = time.Now().Add(length)
		return a.printControl(p, to)
	}
	a.note("%s %s: %s", verb, a.flags.consumer, p.effect)
	if err := a.confirm(ctx, question{verb: verb}); err != nil {
		return err
	}
	after := stateObject(to) // without its end, which Set gives
	line := auditLine{What: verb, Key: key, Note: f.reason, Before: stateObject(seen.State), After: &after}
	set := seen
	err = a.change(ctx, verb, line, a.flags.consumer, func(ctx context.Context) (err error) {
		set, err = control.Set(ctx, store, seen, to, length)
		after = stateObject(set.State)
		return err
	}, func() error { return a.printControl(p, set.State) })
	if err == nil && !a.flags.json {
		err = a.flush() // the results come first
		a.note("to see which workers obey, add --worker URL: %s", a.hint("", "status"))
	}
	return err
}

// hash covers the state that was seen, and the one that is to be.
func (p controlPlan) hash(consumer string) planHash {
	return hashOf(p.verb, consumer, p.seen.ID(), p.to.Paused, p.to.Concurrency, p.to.Reason, p.length)
}

// by is who makes a change, as a state says it.
func (w *who) by() string {
	by := cmp.Or(w.ARN, strings.Trim(w.User+"@"+w.Host, "@"), "unknown")
	return cut.Text(escaped(by), 500)
}

// stateObject is a state in JSON.
func stateObject(s control.State) object {
	return object{
		{"paused", s.Paused}, {"concurrency,omitzero", s.Concurrency}, {"by,omitzero", s.By}, {"reason,omitzero", s.Reason}, {"until,omitzero", s.Until},
	}
}

// printControl prints the state before and after. They are equal where there was nothing to do.
func (a *app) printControl(p controlPlan, after control.State) error {
	if a.flags.json {
		o := object{
			{"v", 1}, {"operation", p.verb}, {"dry_run", a.flags.dryRun}, {"consumer", a.flags.consumer}, {"before", stateObject(p.seen.State)}, {"after", stateObject(after)},
		}
		if a.flags.dryRun && p.effect != "" {
			o = append(o, member{"effect", p.effect}, member{"hash", p.hash(a.flags.consumer)})
		}
		return a.printJSON(o)
	}
	return a.printTable(nil, [][]string{{a.flags.consumer, p.seen.State.String(), after.String()}})
}
