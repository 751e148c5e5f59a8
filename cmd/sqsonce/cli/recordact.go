package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/dedup"
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
	take, again bool
	note        string
}

func (a *app) recordFree() *cobra.Command {
	var f freeFlags
	c := a.command("free KEY...", "Let the next delivery of an event run it", `Frees the record of an event whose consumer died, so that the next delivery of the event runs it. Find out first whether the effect
happened. The command sends nothing: redrive a message of the event, which is sent 65 s after this command at the earliest.

`+keyArgument+severalKeys, "  sqsonce record free --table dedup --note 'looked: no charge' 'billing#orders|ord-42'",
		cobra.MinimumNArgs(1), func(ctx context.Context, args []string) error { return a.freeRecords(ctx, args, f) })
	c.Flags().BoolVar(&f.take, "take", false, "also while a consumer runs the event. Its handler is cancelled, but may run on alongside the next")
	c.Flags().BoolVar(&f.again, "again", false, "also where the event is completed: it runs a second time")
	return a.recordActFlags(c, &f.note)
}

const severalKeys = `

The command asks once for all KEYs. It leaves the records that it would refuse, and changes the others. - reads KEYs from standard
input, one a line: sqsonce dlq ls --messages --class CLASS | cut -f5 | sqsonce record free --yes -`

func (a *app) freeRecords(ctx context.Context, args []string, f freeFlags) error {
	planOf := func(r seen) plan { return planFree(r, f) }
	return a.act(ctx, args, f.take || f.again, f.note, planOf, func(ctx context.Context, store Store, p plan) error {
		return store.Reopen(ctx, p.Record, f.note, func(o *dedup.ReopenOptions) {
			o.Name, o.Retention, o.Force = a.flags.operator, time.Duration(a.flags.retention), p.state == dedup.StateRunning
		})
	})
}

func planFree(r seen, f freeFlags) plan {
	p := plan{seen: r, verb: "free", after: dedup.StateReleased, effect: "its next delivery runs it. A redrive sends it 65 s from now at the earliest"}
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
		p.effect = "its next delivery runs it a second time. Processes that saw it completed acknowledge it for a minute: wait 65 s before you send it"
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
	return p
}

func (a *app) recordComplete() *cobra.Command {
	create, note := false, ""
	c := a.command("complete KEY...", "Say that an event is done, so that it never runs again", `Completes the record of an event whose effect has happened. Its deliveries are then acknowledged without a run. The writes of an inbox
did not happen while its record is not completed: free that record instead.

`+keyArgument+severalKeys, "  sqsonce record complete --table dedup --note 'the provider has charge ch_1' 'billing#orders|ord-42'",
		cobra.MinimumNArgs(1), func(ctx context.Context, args []string) error {
			planOf := func(r seen) plan { return planComplete(r, create) }
			return a.act(ctx, args, create, note, planOf, a.complete)
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
		Key: before.Key, Owner: dedup.OperatorPrefix + a.flags.operator + "/" + rand.Text(), Lease: completeLease,
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

// act plans for each record that args name, asks once, carries the plans out, and prints what was done. What it refuses is left. alone
// says that a flag is for one record.
func (a *app) act(ctx context.Context, args []string, alone bool, note string, planOf func(seen) plan, do func(context.Context, Store, plan) error) error {
	store, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	keys, err := a.recordKeys(store, args)
	if err != nil {
		return err
	}
	if len(keys) > 1 && (alone || a.flags.plan != "") {
		return fail(exitUsage, "--take, --again, --create and --plan are for one KEY")
	}
	var ready []plan
	var refused []error
	for _, key := range keys {
		r, err := read(ctx, store, key)
		if err != nil {
			return err
		}
		p := planOf(r)
		p.note = note
		switch err = a.asPlanned(p.hash()); {
		case err != nil:
		case p.refusal != "":
			refused = append(refused, fmt.Errorf("%s %s: %s", p.verb, p.Key, p.refusal))
		case p.after != "" && !a.flags.dryRun:
			ready = append(ready, p)
		case p.after == "":
			a.note("nothing to do: %s is %s: %s", p.Key, p.state, p.means())
			err = a.printAct(p, p.state)
		default:
			a.note("would %s %s: %s", p.verb, p.Key, p.effect)
			err = a.printAct(p, p.after)
		}
		if err != nil {
			return err
		}
	}
	if len(refused) == len(keys) {
		return fail(exitRefused, "%w", errors.Join(refused...))
	}
	for _, err := range refused {
		a.note("left: %s", err.Error())
	}
	if len(ready) > 0 {
		err = a.carryOutAll(ctx, store, ready, do)
	}
	if len(refused) > 0 {
		err = errors.Join(err, fail(exitPart, "%d of %d records were left", len(refused), len(keys)))
	}
	return err
}

// carryOutAll asks once, and ends at the first write of which it is not known whether it was carried out.
func (a *app) carryOutAll(ctx context.Context, store Store, plans []plan, do func(context.Context, Store, plan) error) (err error) {
	for _, p := range plans {
		a.note("%s is %s: %s", p.Key, p.state, p.means())
		if p.LastError != "" {
			a.note("the error of an earlier attempt: %s", p.LastError)
		}
	}
	a.note("%s: %s", plans[0].verb, plans[0].effect) // several have one effect
	q := plans[0].question()
	if n := len(plans); n > mostByYes {
		q.typed, q.what, q.these = strconv.Itoa(n), strconv.Itoa(n), fmt.Sprintf("these %d records", n)
	}
	if err := a.confirm(ctx, q); err != nil {
		return err
	}
	for i, p := range plans {
		line := auditLine{What: "record " + p.verb, Key: p.Key, Note: p.note, Before: p.state, After: p.after}
		failed := a.change(ctx, p.verb, line, p.Key, func(ctx context.Context) error { return do(ctx, store, p) }, func() error { return a.printAct(p, p.after) })
		err = errors.Join(err, failed)
		if left := len(plans) - i - 1; left > 0 && (ctx.Err() != nil || failed != nil && codeOf(ctx, failed) != exitRefused) {
			return errors.Join(err, fail(exitPart, "%d records were not reached: the same again", left))
		}
	}
	if err == nil && !a.flags.json {
		a.note("next: %s", a.commandLine(next(plans)))
	}
	return err
}

// next is the command for the messages of these events.
func next(plans []plan) []string {
	switch {
	case plans[0].after == dedup.StateCompleted:
		return []string{"dlq", "delete", "--completed", "--archive", "FILE"}
	case len(plans) > 1:
		return []string{"dlq", "redrive", "--class", ops.Freed.ID}
	}
	return []string{"dlq", "redrive", "--key", plans[0].Key}
}

// change makes a change between its two lines in the audit.
func (a *app) change(ctx context.Context, verb string, line auditLine, of string, do func(context.Context) error, printed func() error) error {
	change, err := a.audit(ctx, line)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTimeout)
	defer cancel()
	if err := do(ctx); err != nil {
		if codeOf(ctx, err) == exitFailed {
			err = fmt.Errorf("it is not known whether it was done: look again: %w", err)
		}
		return errors.Join(fmt.Errorf("%s %s: %w", verb, of, err), change.end(nil, err))
	}
	return errors.Join(printed(), change.end(line.After, nil))
}

func (p *plan) question() question {
	q := question{verb: p.verb}
	if p.typed {
		q.typed, q.what = p.Key, "the key"
	}
	return q
}

// printAct prints a record's state before and after. They are equal where there was nothing to do.
func (a *app) printAct(p plan, after dedup.RecordState) error {
	if a.flags.json {
		out := struct {
			V         int               `json:"v"`
			Operation string            `json:"operation"`
			DryRun    bool              `json:"dry_run"`
			Key       string            `json:"key"`
			Before    dedup.RecordState `json:"before"`
			After     dedup.RecordState `json:"after"`
			Effect    string            `json:"effect,omitempty"` // of a dry run, as the others
			Hash      planHash          `json:"hash,omitempty"`
			Typed     string            `json:"typed,omitempty"`
		}{1, p.verb, a.flags.dryRun, p.Key, p.state, after, "", "", ""}
		if a.flags.dryRun && p.after != "" {
			out.Effect, out.Hash, out.Typed = p.effect, p.hash(), p.question().typed
		}
		return a.printJSON(out)
	}
	return a.printTable(nil, [][]string{{p.Key, string(p.state), string(after)}})
}
