package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// act plans for each record that args name, asks once, carries the plans out, and prints what was done. What it refuses is left. alone
// says that a flag is for one record.
func (a *app) act(ctx context.Context, args []string, alone bool, note string, planner func(Store, []string) (func(seen) plan, error),
	do func(context.Context, Store, plan) error,
) error {
	store, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	keys, err := a.recordKeys(store, args)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(keys, func(key string) bool { return strings.HasPrefix(key, host.ControlConsumer+"#") }); i >= 0 {
		return fail(exitRefused, "%s is the state of a consumer: use pause, set-concurrency and resume", keys[i])
	}
	if len(keys) > 1 && (alone || a.flags.plan != "") {
		return fail(exitUsage, "--take, --again, --create and --plan are for one KEY")
	}
	planOf, err := planner(store, keys)
	if err != nil {
		return err
	}
	var ready, same, rest []plan // rest are released, and stay so: they are to be redriven as those that are freed
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
			same = append(same, p)
			err = a.printAct(p, p.state)
			if p.verb == "free" && p.state == dedup.StateReleased && !a.flags.dryRun {
				rest = append(rest, p)
			}
		default:
			a.note("would %s %s: %s", p.verb, p.Key, p.effect)
			err = a.printAct(p, p.after)
		}
		if err != nil {
			return err
		}
	}
	a.noteSame(same)
	if len(refused) == len(keys) {
		return fail(exitRefused, "%w", errors.Join(refused...))
	}
	for _, err := range refused {
		a.note("left: %s", err.Error())
	}
	if len(ready) > 0 {
		ready, err = a.carryOutAll(ctx, store, ready, do)
	}
	if err == nil || len(ready) > 0 {
		err = errors.Join(err, a.noteNext(append(ready, rest...)))
	}
	if len(refused) > 0 {
		err = errors.Join(err, fail(exitPart, "%d of %d records were left", len(refused), len(keys)))
	}
	return err
}

// noteSame says which records are as they should be: one by its key, several by their states.
func (a *app) noteSame(plans []plan) {
	if len(plans) == 1 {
		a.note("nothing to do: %s is %s: %s", plans[0].Key, plans[0].state, plans[0].means())
		return
	}
	for _, kind := range grouped(plans, func(p plan) string { return string(p.state) }) {
		a.note("nothing to do: %s %s: %s", shown.Count(len(kind), "record"), kind[0].state, kind[0].means())
	}
}

// mostListed is how many keys of each verb a plan lists.
const mostListed = 10

// carryOutAll asks once, and ends at the first write of which it is not known whether it was carried out. It returns the plans that it has
// carried out, also with an error.
func (a *app) carryOutAll(ctx context.Context, store Store, plans []plan, do func(context.Context, Store, plan) error) (done []plan, err error) {
	said := map[dedup.RecordState]bool{}
	var verbs []string
	for _, kind := range grouped(plans, verbOf) {
		verbs = append(verbs, kind[0].verb)
		of := kind[0].verb
		if len(plans) > 1 {
			of += fmt.Sprintf(" %d", len(kind))
		}
		a.note("%s: %s", of, kind[0].effect) // several have one effect
		for i, p := range kind {
			if i == mostListed {
				a.note("  and %d more, which --dry-run lists", len(kind)-i)
				break
			}
			text := fmt.Sprintf("%s is %s", p.Key, p.state)
			if !said[p.state] {
				text += ": " + p.means()
			}
			said[p.state] = true
			a.note("  %s", text)
			if earlier := ops.EarlierError(p.Record, p.state); earlier != "" {
				a.note("  the error of an earlier attempt: %s", earlier)
			}
		}
	}
	q := plans[0].question()
	if n := len(plans); n > 1 { // none of which must be typed
		q = ofMany(strings.Join(verbs, " and "), n, "records", strconv.Itoa(n), true)
	}
	if err := a.confirm(ctx, q); err != nil {
		return nil, err
	}
	for i, p := range plans {
		line := auditLine{What: "record " + p.verb, Key: p.Key, Note: p.note, Before: p.state, After: p.after}
		failed := a.change(ctx, p.verb, line, p.Key, func(ctx context.Context) error { return do(ctx, store, p) }, func() error {
			done = append(done, p)
			return a.printAct(p, p.after)
		})
		err = errors.Join(err, failed)
		if left := len(plans) - i - 1; left > 0 && (ctx.Err() != nil || failed != nil && codeOf(ctx, failed) != exitRefused) {
			return done, errors.Join(err, fail(exitPart, "%s still to be done: the same again", shown.Count(left, "record")))
		}
	}
	return done, err
}

// noteNext says with which commands the events go on of which this is done.
func (a *app) noteNext(plans []plan) error {
	if a.flags.json {
		return nil
	}
	err := a.flush() // the results come first
	// Each command has one consumer, and the events that may kill their process have one of their own.
	for _, kind := range grouped(plans, func(p plan) string { return fmt.Sprint(p.verb, " ", consumerOf(p.Key), mayKill(p)) }) {
		if len(kind) == 1 && mayKill(kind[0]) {
			a.note("%s", ops.CrashedWith(kind[0].Key))
		}
		next, nextErr := a.next(kind)
		if err = errors.Join(err, nextErr); nextErr == nil {
			a.note("next: %s", next)
		}
	}
	return err
}

// mayKill says that an event is freed that crashed with its process: it may kill the next one.
func mayKill(p plan) bool { return p.verb == "free" && p.state == dedup.StateCrashed }

func verbOf(p plan) string { return p.verb }

// grouped sorts plans by what they have in common, and returns those of each group.
func grouped(plans []plan, of func(plan) string) (groups [][]plan) {
	slices.SortStableFunc(plans, func(a, b plan) int { return cmp.Compare(of(a), of(b)) })
	for i, p := range plans {
		if i == 0 || of(p) != of(plans[i-1]) {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], p)
	}
	return groups
}

// next is the command for the messages of these events and of no others, with the flags that it needs where nobody can be asked.
func (a *app) next(plans []plan) (string, error) {
	command, flags := []string{"dlq", "redrive"}, a.consent()
	if plans[0].after == dedup.StateCompleted {
		command = []string{"dlq", "delete", "--completed", "--archive", "completed.jsonl"}
		if !a.asks {
			flags = append(flags, "--expect", strconv.Itoa(len(plans)))
		}
	}
	if mayKill(plans[0]) && len(plans) > 1 { // each canary runs when the one before is completed: the one that kills its process ends the redrive
		flags = append([]string{"--canary", strconv.Itoa(len(plans))}, flags...)
	}
	keys, err := a.keyFlags(plans)
	return a.hint(plans[0].Key, slices.Concat(command, keys, flags)...), err
}

// keyFlags select the messages of these events: by a file of their keys, where a command line would be too long.
func (a *app) keyFlags(plans []plan) (flags []string, err error) {
	var lines strings.Builder
	for _, p := range plans {
		flags = append(flags, "--key", p.Key)
		lines.WriteString(p.Key + "\n")
	}
	if len(plans) <= mostNamed || strings.Count(lines.String(), "\n") > len(plans) {
		return flags, nil
	}
	folder, err := a.stateFolder()
	if err != nil {
		return nil, err
	}
	file := newFile(folder, "keys-"+plans[0].verb, ".txt")
	return []string{"--keys", file}, os.WriteFile(file, []byte(lines.String()), 0o600)
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
