package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// laterBox is an outbox with scheduled events.
type laterBox struct {
	outbox.Store
	es     []outbox.Scheduled
	broken string // the ID of one that can't be decoded
	lost   error  // in place of the answer to a cancel
}

func newLaterBox() *laterBox {
	due := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	b := &laterBox{}
	for _, e := range []fifo.Event{{ID: "ord-42/expire", Group: "ord-42", Type: "order.expired"}, {ID: "ord-43/\u009bforged", Group: "ord-43"}} {
		b.es = append(b.es, outbox.Scheduled{Event: e, Source: "orders", Due: due})
		due = due.Add(time.Hour)
	}
	return b
}

func (b *laterBox) open(context.Context) (outbox.Store, error) { return b, nil }

func (b *laterBox) Scheduled(_ context.Context, limit int, ids ...string) (es []outbox.Scheduled, err error) {
	for _, e := range b.es {
		switch {
		case len(es) == limit || len(ids) > 0 && !slices.Contains(ids, e.ID):
		case e.ID == b.broken:
			err = &outbox.GroupError{Group: e.Group, Err: fmt.Errorf("%w: no JSON", outbox.ErrBroken)}
		default:
			es = append(es, e)
		}
	}
	return es, err
}

func (b *laterBox) CancelScheduled(_ context.Context, id string) error {
	was := len(b.es)
	b.es = slices.DeleteFunc(b.es, func(e outbox.Scheduled) bool { return e.ID == id })
	if len(b.es) == was {
		return outbox.ErrNotFound
	}
	return b.lost
}

func TestOutboxLaterGolden(t *testing.T) {
	bubble(t, func(w *world) {
		w.opts.Outbox = newLaterBox().open
		w.golden("outbox-ls-later-pipe", w.run("outbox", "ls", "--later"))
		w.golden("outbox-ls-later-json", w.run("outbox", "ls", "--later", "--json"))
		w.golden("outbox-cancel-dry-pipe", w.run("outbox", "cancel", "ord-42/expire", "--dry-run"))
		w.golden("outbox-cancel-dry-json", w.run("outbox", "cancel", "ord-42/expire", "--dry-run", "--json"))
	})
}

func TestOutboxCancel(t *testing.T) {
	for _, test := range []struct {
		args, answer string
		code         exitCode
		left         int
	}{
		{"ord-42/expire", "y", exitDone, 1},
		{"ord-42/expire", "n", exitRefused, 2},
		{"ord-42/expire", "", exitRefused, 2},
		{"--yes ord-42/expire", "", exitDone, 1},
		{"--yes ord-42/paid", "", exitRefused, 2},
		{"--dry-run ord-42/expire", "y", exitDone, 2},
	} {
		run(t, test.args+" "+test.answer, func(w *world) {
			b := newLaterBox()
			w.opts.Outbox, w.answer, w.terminal = b.open, test.answer, test.answer != ""
			if r := w.run(append([]string{"outbox", "cancel"}, strings.Fields(test.args)...)...); r.code != test.code || len(b.es) != test.left {
				w.Errorf("exit code %d, %d left: %s", r.code, len(b.es), r.err)
			}
			lines := w.audited()
			if (test.left == 1) != (len(lines) == 2) {
				w.Errorf("the audit says %+v", lines)
			} else if len(lines) == 2 && (lines[0].EventID != "ord-42/expire" || lines[0].Group != "ord-42" || lines[1].ID != lines[0].ID) {
				w.Errorf("the audit says %+v", lines)
			}
		})
	}
	run(t, "an event that can't be decoded", func(w *world) {
		b := newLaterBox()
		b.broken = "ord-42/expire"
		w.opts.Outbox = b.open
		r := w.run("outbox", "cancel", "--yes", "--json", b.broken)
		if r.code != exitDone || len(b.es) != 1 || !strings.Contains(r.err, "no JSON") || strings.Contains(r.out, "due_at") {
			w.Errorf("exit code %d, %d left: %s%s", r.code, len(b.es), r.out, r.err)
		}
		if lines := w.audited(); len(lines) != 2 || lines[0].EventID != b.broken || lines[0].Group != "ord-42" {
			w.Errorf("the audit says %+v", lines)
		}
	})
	bubble(t, func(w *world) {
		w.outboxOf() // in DynamoDB
		for _, args := range [][]string{{"ls", "--later"}, {"cancel", "ord-42/expire"}} {
			if r := w.run(append([]string{"outbox"}, args...)...); r.code != exitUsage || !strings.Contains(r.err, "SQL") {
				w.Errorf("%v: exit code %d, %q", args, r.code, r.err)
			}
		}
	})
}

// A list that has failed counts nothing, and a cancel without an answer claims nothing.
func TestOutboxLaterFails(t *testing.T) {
	bubble(t, func(w *world) {
		b := newLaterBox()
		b.broken, b.lost = "ord-42/expire", errors.New("connection reset")
		w.opts.Outbox = b.open
		if r := w.run("outbox", "ls", "--later"); r.code != exitPart || strings.Contains(r.err, "scheduled") || !strings.Contains(r.out, "ord-43") {
			w.Errorf("%+v", r)
		}
		if r := w.run("outbox", "cancel", "--yes", "ord-42/expire"); r.code != exitFailed || r.out != "" || !strings.Contains(r.err, "look again") {
			w.Errorf("%+v", r)
		}
	})
}
