package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

const (
	// actTimeout bounds a write, which an interrupt does not end: its answer says what happened.
	actTimeout = 30 * time.Second
	// completeLease is for the two writes of a complete by hand.
	completeLease = actTimeout
)

// plan is what a command would do to a record.
type plan struct {
	seen
	verb    string            // "free"
	after   dedup.RecordState // "": nothing to do
	effect  string            // what it means
	refusal string            // why it is not done; "": it is
	typed   bool              // the key must be typed
	note    string            // why
}

type freeFlags struct {
	take, again  bool
	note, done   string
	process      string   // in place of keys
	except       []string // of the process's keys
	noneHappened bool     // in place of done
}

func (a *app) recordFree() *cobra.Command {
	var f freeFlags
	c := a.command("free KEY...", "Let the next delivery of an event run it", `Frees the record of an event whose consumer died, so that the next delivery of the event runs it. Find out first whether the effect
happened. The command sends nothing: redrive a message of the event.

`+keyArgument+severalKeys, "  sqsonce record free --table dedup --note 'looked: no charge' 'billing#orders|ord-42'",
		func(c *cobra.Command, args []string) error {
			if f.process != "" {
				return nil
			}
			return cobra.MinimumNArgs(1)(c, args)
		}, func(ctx context.Context, args []string) error { return a.freeRecords(ctx, args, f) })
	c.Flags().StringVar(&f.process, "process", "", "in place of KEYs: the events of the dead-letter queue that crashed in this process: its `name`, as dlq ls shows it, or unknown. With KEYs: refuse those that have run in another process since")
	c.Flags().StringArrayVar(&f.except, "except", nil, "with --process: leave this `KEY`, which kills its process (repeatable)")
	a.dlqFlags(c)
	a.limitFlag(c)
	c.Flags().BoolVar(&f.take, "take", false, "also while a consumer runs the event. Its handler is cancelled, but may run on alongside the next")
	c.Flags().BoolVar(&f.again, "again", false, "also where the event is completed: it runs a second time")
	c.Flags().StringVar(&f.done, "done", "", "complete those KEYs instead that are lines of this `file`: the events whose effect happened. Each other line must be the key of a record, which is read")
	c.Flags().BoolVar(&f.noneHappened, "none-happened", false, "with --process in place of --done: none of the effects happened, or an inbox prevents a second one")
	c.MarkFlagsMutuallyExclusive("done", "none-happened")
	return a.recordActFlags(c, &f.note)
}

const severalKeys = `

The command asks once for all KEYs, which may be in different states. It leaves the records that it would refuse, and changes the
others. - reads KEYs from standard input, one a line:
sqsonce dlq ls --messages --class CLASS | cut -f5 | sqsonce record free --yes -`

func (a *app) freeRecords(ctx context.Context, args []string, f freeFlags) error {
	var kept []string
	switch {
	case f.process != "" && f.done == "" && !f.noneHappened:
		return fail(exitRefused, "which effects happened? Nothing was changed. Make sure that the process is dead: a frozen one goes on. Then write the keys whose effects happened into the file happened, one a line: these events are completed, and the others freed: %s\nIf none happened, or with an inbox: %s",
			a.again(a.args, "--done", "happened"), a.again(a.args, "--none-happened"))
	case f.process != "" && len(args) == 0:
		var err error
		if args, kept, err = a.neighboursOf(ctx, f.process, f.except); err != nil {
			return err
		}
	case f.except != nil:
		return fail(exitUsage, "--except needs --process without KEYs")
	case f.noneHappened && f.process == "":
		return fail(exitUsage, "--none-happened needs --process")
	}
	planner := func(store Store, keys []string) (func(seen) plan, error) {
		done, err := a.doneKeys(ctx, store, f.done, keys)
		return func(r seen) plan {
			if slices.Contains(done, r.Key) {
				return planComplete(r, false)
			}
			return planFree(r, f)
		}, err
	}
	err := a.act(ctx, args, f.take || f.again, f.note, planner, func(ctx context.Context, store Store, p plan) error {
		if p.after == dedup.StateCompleted {
			return a.complete(ctx, store, p)
		}
		return store.Reopen(ctx, p.Record, ops.FreeNote(p.Record, p.state, f.note), func(o *dedup.ReopenOptions) {
			o.Name, o.Retention, o.Force = a.flags.operator, time.Duration(a.flags.retention), p.state == dedup.StateRunning
		})
	})
	if !a.flags.json && !a.flags.dryRun && (err == nil || codeOf(ctx, err) == exitPart) {
		for _, key := range kept {
			a.note("%s is as before. When it is fixed, and if its effect has not happened: %s", key, a.hint(key, "record", "free", key, "--note", "fixed"))
		}
	}
	return err
}

func planFree(r seen, f freeFlags) plan {
	p := plan{seen: r, verb: "free", after: dedup.StateReleased, effect: "its next delivery runs it"}
	switch r.state {
	case ops.StateUnknown:
		p.refusal = noRecord
	case dedup.StateReleased:
		p.after = ""
	case dedup.StateRunning:
		p.effect = "the running handler is cancelled, but may run on alongside the next"
		p.refusal, p.typed = fmt.Sprintf("a consumer runs it, until %s at least: wait, or --take", r.Until.UTC().Format(time.RFC3339)), true
		if f.take {
			p.refusal = ""
		}
	case dedup.StateCompleted:
		p.effect = "its next delivery runs it a second time. Send it with dlq redrive, or in 65 s: processes that saw it completed acknowledge other messages for a minute"
		if r.Committed {
			p.effect += ". Its effect was committed with the record, and happens again"
		}
		p.refusal, p.typed = "it is completed: --again runs it a second time", true
		if f.again {
			p.refusal = ""
		}
	case dedup.StateForeign:
		p.refusal = ops.Do(dedup.StateForeign)
	}
	if process, _ := r.LastRun(); f.process != "" && p.after != "" && cmp.Or(process, unknownName) != f.process {
		p.refusal = "it has run in another process since"
	}
	return p
}

func (a *app) recordComplete() *cobra.Command {
	create, note := false, ""
	c := a.command("complete KEY...", "Say that an event is done, so that it never runs again", `Completes the record of an event whose effect has happened. Its deliveries are then acknowledged without a run. The writes of an inbox
did not happen while its record is not completed: free that record instead.

`+keyArgument+severalKeys, "  sqsonce record complete --table dedup --note 'the provider has charge ch_1' 'billing#orders|ord-42'",
		cobra.MinimumNArgs(1), func(ctx context.Context, args []string) error {
			planner := func(Store, []string) (func(seen) plan, error) {
				return func(r seen) plan { return planComplete(r, create) }, nil
			}
			return a.act(ctx, args, create, note, planner, a.complete)
		})
	c.Flags().BoolVar(&create, "create", false, "also if no record exists under the key. The event then never runs")
	return a.recordActFlags(c, &note)
}

func (a *app) recordActFlags(c *cobra.Command, note *string) *cobra.Command {
	c.Flags().StringVar(note, "note", "", "the reason, shown with the record: `text`")
	a.actFlags(c)
	a.planFlag(c)
	return c
}

func planComplete(r seen, create bool) plan {
	p := plan{seen: r, verb: "complete", after: dedup.StateCompleted, effect: "it never runs again"}
	switch r.state {
	case ops.StateUnknown:
		if !create {
			p.refusal = noRecord + ". See that its records have such keys, then --create"
		}
	case dedup.StateRunning:
		p.refusal = fmt.Sprintf("a consumer runs it, until %s at least: wait", r.Until.UTC().Format(time.RFC3339))
	case dedup.StateCompleted:
		p.after = ""
	case dedup.StateForeign:
		p.refusal = ops.Do(dedup.StateForeign)
	}
	return p
}

// complete acquires the record as one more owner, and completes it. It looks again first: the answer to a question may have
// taken minutes. Where the complete has no answer, the record is not released: what looks crashed stays so.
func (a *app) complete(ctx context.Context, store Store, before plan) error {
	now, err := read(ctx, store, before.Key)
	if err != nil {
		return err
	}
	if now.Owner != before.Owner || now.Fence != before.Fence || now.state != before.state {
		return dedup.ErrChanged
	}
	g, err := store.Acquire(ctx, dedup.Claim{
		Key: before.Key, Owner: host.OperatorPrefix + a.flags.operator + "/" + rand.Text(), Lease: completeLease,
		Retention: a.flags.retention.orDefault(),
	})
	switch {
	case err != nil:
		return err
	case g.Verdict == dedup.VerdictInProgress:
		return &dedup.InProgressError{Until: g.Until}
	case g.Verdict != dedup.VerdictGranted:
		return dedup.ErrChanged
	}
	if err := store.Complete(ctx, g.Lease, dedup.Result{Note: before.note}); err != nil {
		return fmt.Errorf("acquired, and perhaps not completed: look again when the lease ends, in %s: %w", completeLease, err)
	}
	return nil
}
