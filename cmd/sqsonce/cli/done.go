package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
)

// doneKeys returns the KEYs that are lines of the file of --done. A line that is neither a KEY nor the key of a record of their consumer
// refuses all: it may mean one of them, whose event would be freed and have its effect again.
func (a *app) doneKeys(ctx context.Context, store Store, file string, keys []string) (done []string, err error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fail(exitFailed, "--done: %w", err)
	}
	given, consumers, parts := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, key := range keys {
		given[key], consumers[consumerOf(key)] = true, true
		for i, r := range key {
			if r == '#' || r == '|' {
				parts[key[i+1:]] = key
			}
		}
	}
	seen := map[string]bool{}
	var others []ledgerLine // that are none of the KEYs
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		l := ledgerLine{number: n, text: strings.TrimSpace(line)}
		l.meant = parts[l.text]
		if exact, _ := a.recordKey(store, strings.TrimRight(line, "\r\n")); given[exact] { // also a key that ends with a blank
			l.key = exact
		} else if l.key, err = a.recordKey(store, l.text); err != nil || !consumers[consumerOf(l.key)] {
			l.key = ""
		}
		switch {
		case l.text == "" || l.key != "" && seen[l.key]:
		case given[l.key]:
			done = append(done, l.key)
		default:
			others = append(others, l)
		}
		seen[l.key] = true
	}
	if len(done)+len(others) == 0 {
		return nil, fail(exitRefused, "--done: %s is empty: nothing was changed%s", file, a.noneDone())
	}
	wrong, err := wrongLines(ctx, store, others)
	if err != nil {
		return nil, fmt.Errorf("--done: %s: %w", file, err)
	}
	if len(wrong) > 0 {
		return nil, refuseLines(file, wrong, keys[0])
	}
	if len(done) == 0 { // the file may be of another process: it proves nothing of these
		return nil, fail(exitRefused, "--done: nothing was changed, because all lines of %s are keys of other events: it may be the file of another process%s", file, a.noneDone())
	}
	if len(others) > 0 {
		a.note("%d of %d keys in %s are of other events, and change nothing", len(others), len(others)+len(done), file)
	}
	if missing := len(keys) - len(done); missing > 0 {
		a.note("%s not in %s: those of them that can run are freed, or stay released, and run again. Is the ledger complete?", shown.Count(missing, "KEY"), file)
	}
	return done, nil
}

// ledgerLine is a line of the file of --done.
type ledgerLine struct {
	number     int
	text, key  string // key is "" where the line can be none of the consumer's
	meant      string // the KEY of which the line is a part, or ""
	unrecorded bool   // the store has no record under the key
}

func consumerOf(key string) string { consumer, _, _ := strings.Cut(key, "#"); return consumer }

const readsAtOnce = 16

// wrongLines returns the lines that are no key of a record, or only a part of one of the KEYs.
func wrongLines(ctx context.Context, store Store, lines []ledgerLine) ([]ledgerLine, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	host.InParallel(len(lines), readsAtOnce, func(i int) {
		l := &lines[i]
		if l.key == "" || l.meant != "" || ctx.Err() != nil {
			return
		}
		_, err := store.Inspect(ctx, l.key)
		if l.unrecorded = errors.Is(err, dedup.ErrNotFound); err != nil && !l.unrecorded {
			cancel(err)
		}
	})
	wrong := slices.DeleteFunc(lines, func(l ledgerLine) bool { return l.key != "" && l.meant == "" && !l.unrecorded })
	return wrong, context.Cause(ctx)
}

// refuseLines shows the form of a key.
func refuseLines(file string, wrong []ledgerLine, key string) error {
	text := fmt.Sprintf("--done: nothing was changed, because %s of %s can be no KEY and no key of another record of the consumer", shown.Count(len(wrong), "line"), file)
	for _, l := range wrong[:min(len(wrong), mostNamed)] {
		text += fmt.Sprintf("\n  line %d: %s", l.number, l.text)
		switch {
		case l.meant != "":
			text += ": a part of " + l.meant
		case l.unrecorded:
			text += ": no record under this key, or it has expired"
		}
	}
	if more := len(wrong) - mostNamed; more > 0 {
		text += fmt.Sprintf("\n  and %d more", more)
	}
	return fail(exitRefused, "%s\nWrite whole keys, in the form of %s, and leave out events whose records have expired", text, key)
}

// noneDone is the command of this call for events of which no effect happened, behind the reason why it is printed.
func (a *app) noneDone() string {
	args := withoutFlag(a.args, "--done")
	switch {
	case slices.Contains(args, "-"):
		return ". If none of the effects happened, run it without --done, on the same standard input"
	case hasFlag(args, "--process"):
		return ". If none of the effects happened: " + a.again(args, "--none-happened")
	}
	return ". If none of the effects happened: " + a.commandLine(args)
}
