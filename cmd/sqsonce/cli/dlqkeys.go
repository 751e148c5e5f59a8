package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// hintSameKeys says what is known of keys, where records were not found, and how those go back that never started if this command looks
// under the consumer's keys. It says that of no message by itself: a key function may make the default key of some.
func (a *app) hintSameKeys(ctx context.Context, all, found []*ops.Message, classes []string) {
	type class struct {
		id      string
		count   int    // of messages without a record
		missing string // the key of one that has not expired
		known   bool   // a message has a record, or may have one
	}
	var of []*class
	by := map[string]*class{}
	missing, provable := 0, 0
	for _, m := range found {
		c := by[m.Class.ID]
		if c == nil {
			c = &class{id: m.Class.ID}
			by[c.id], of = c, append(of, c)
		}
		switch none := errors.Is(m.Problem, ops.ErrNoRecord); {
		case m.Record != nil:
			c.known = true
		case none && m.Expired:
			c.count++
		case none:
			if missing++; m.NeverStarted {
				provable++
			}
			c.count, c.missing = c.count+1, m.RecordKey
		case m.RecordKey != "": // it was not read
			c.known = true
		}
	}
	if missing == 0 {
		return
	}
	without := slices.DeleteFunc(slices.Clone(of), func(c *class) bool { return c.known || c.missing == "" })
	slices.SortStableFunc(without, func(a, b *class) int { return b.count - a.count })
	for i, c := range without {
		if i == mostListed {
			a.note("and of %d more classes", len(without)-i)
			break
		}
		if c.count == 1 {
			a.note("the message of class %s has no record under its key, %s", c.id, c.missing)
			continue
		}
		a.note("none of the %d messages of class %s has a record under its key, such as %s", c.count, c.id, c.missing)
	}
	if len(without) > 0 {
		a.note("%s", a.otherKeys(ctx))
	}
	if provable > 0 {
		a.noteNeverStarted(provable, all, classes)
	}
}

// noteNeverStarted is about n messages that never started, if this command looks under the consumer's keys.
func (a *app) noteNeverStarted(n int, all []*ops.Message, classes []string) {
	there, keys := 0, "default key"
	for _, m := range all {
		if m.Record != nil {
			there++
		}
	}
	if a.opts.Key != nil {
		keys = "key of this program's key function"
	}
	have := "have"
	if n == 1 {
		have = "has"
	}
	redrive := []string{"dlq", "redrive", "--state", string(ops.StateNone)}
	for _, class := range classes {
		redrive = append(redrive, "--class", class)
	}
	a.note("%s %s no record under the %s, and %d of the others have one", shown.Count(n, "message"), have, keys, there)
	a.note("If %s, and no record was deleted, the events without one never started. To look again: %s", a.keysMade(), a.again(a.args, "--same-keys"))
	a.note("Redrive these before the others, whose records are the proof: %s", a.hint("", slices.Concat(redrive, []string{"--same-keys"}, a.consent())...))
}

// otherKeys says which keys the consumer's records have, as far as a few seconds tell: a name, a store and a key function that are not
// the consumer's look alike by the messages alone.
func (a *app) otherKeys(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	has := "it has a key function (docs/operating.md#own-commands), TrustDedupID or envelopes"
	if a.opts.Key != nil {
		has = "it has another key function than this program"
	}
	store, err := a.openStore(ctx)
	if err == nil {
		for r, listErr := range store.List(ctx, func(o *dedup.ListOptions) { o.Consumer, o.Limit = a.flags.consumer, 1 }) {
			if err = listErr; err == nil {
				return "Consumer " + a.flags.consumer + " has records under keys such as " + r.Key + ": if that form is another one, " + has
			}
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "In 3 s no record of consumer " + a.flags.consumer + " was found. To search on: " + a.hint("", "record", "ls", "--state", string(dedup.StateReleased)+","+string(dedup.StateCompleted))
	case err != nil:
		return "The keys of its records were not listed: " + reason(err)
	}
	return "Consumer " + a.flags.consumer + " has no records here: are its name and the store right? sqsonce-full --store reads SQL and Redis"
}
