package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
)

func (a *app) dlqShow() *cobra.Command {
	body := false
	c := a.command("show MESSAGE-ID", "Show one message of a dead-letter queue, and the record of its event", looking+`

SQS cannot be asked for one message: the queue is read as by dlq ls, up to --limit.`,
		"  sqsonce dlq show --queue orders --consumer billing --table dedup 11111111-1111-1111-1111-111111111111",
		cobra.ExactArgs(1), func(ctx context.Context, args []string) error { return a.showMessage(ctx, args[0], body) })
	c.Flags().BoolVar(&body, "body", false, "also show the body")
	a.sameKeysFlag(c)
	a.limitFlag(c)
	return a.queueFlags(c)
}

func (a *app) showMessage(ctx context.Context, id string, body bool) error {
	listing, url, err := a.look(ctx)
	if listing.AsOf.IsZero() {
		return err
	}
	a.summary(listing, url)
	i := slices.IndexFunc(listing.Messages, func(m *ops.Message) bool { return m.ID == id })
	if i < 0 {
		return errors.Join(err, fail(exitFailed, "message %s is not among the %d that were read", id, len(listing.Messages)))
	}
	m := listing.Messages[i]
	if a.flags.json {
		columns := messageColumns
		if body {
			columns = append(slices.Clip(columns), column[*ops.Message]{json: "body,omitzero", value: func(m *ops.Message) any { return m.Body }})
		}
		return errors.Join(err, a.printJSON(object{{"v", 1}, {"message", objectOf(columns, m)}}), unread(listing.Messages[i:i+1]))
	}
	pairs := pairsOf(a, messageColumns, m)
	if m.Problem != nil && m.Problem.Error() != m.Reason {
		pairs = slices.Insert(pairs, len(pairs)-1, pair{"problem", m.Problem.Error()}) // before the body
	}
	if body && a.width == 0 {
		pairs[len(pairs)-1].value = m.Body
	}
	err = errors.Join(err, a.printPairs(pairs), unread(listing.Messages[i:i+1]))
	if body && a.width > 0 {
		_, printErr := fmt.Fprintf(a.out, "\n%s\n", escapedLines(m.Body))
		err = errors.Join(err, printErr)
	}
	err = errors.Join(err, a.flush())
	if m.Record != nil && m.State == dedup.StateCrashed {
		process, _ := m.Record.LastRun()
		died := slices.DeleteFunc(ops.Processes(ops.RecordsOf(listing.Messages)), func(p ops.Process) bool { return p.Name != process })
		a.noteProcesses(died, listedIn(listing, err == nil && ops.AllRead(listing.Messages)))
	}
	return err
}

// expired is true of a message whose missing record may have expired.
type expired bool

func (expired) String() string {
	return "its record may have expired, because the message is older than the retention of records"
}

// size is how long a body is.
type size int

func (s size) String() string { return fmt.Sprintf("%d bytes", int(s)) }

type attributes map[string]attribute

type attribute struct {
	Type   string `json:"type"`
	String string `json:"value,omitempty"`
	Binary []byte `json:"binary,omitempty"` // in base64
}

// attributesOf is nil where there are none.
func attributesOf(all map[string]sqsonce.Attribute) (out attributes) {
	for name, attr := range all {
		if out == nil {
			out = attributes{}
		}
		out[name] = attribute(attr)
	}
	return out
}

// pairs are a line for each.
func (all attributes) pairs(label string) (pairs []pair) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text := all[name].String
		if binary := all[name].Binary; binary != nil {
			text = base64.StdEncoding.EncodeToString(binary)
		}
		pairs = append(pairs, pair{label + " " + name, text})
	}
	return pairs
}
