package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// hostileGroup is a group that no publisher accepts, but a person may paste.
const hostileGroup = "ord\u009b2J\u202e"

// outboxOf makes the table "outbox" with the outbox "orders": two events of ord-1, the first of which halts it; ord-2 waits;
// ord-3 has skipped one.
func (w *world) outboxOf() *dynamooutbox.Outbox {
	w.Helper()
	ctx, box := context.Background(), w.emptyOutbox()
	for _, e := range []struct {
		group, id string
		seq       int64
		parked    outbox.RefusedPolicy
	}{{"ord-1", "ord-1/v1", 1, outbox.OnRefusedHalt}, {"ord-1", "ord-1/v2", 2, 0}, {"ord-2", "ord-2/v1", 1, 0}, {"ord-3", "ord-3/v1", 1, outbox.OnRefusedSkip}, {"ord-3", "ord-3/v2", 2, 0}} {
		event := fifo.Event{ID: e.id, Group: e.group, Type: "placed", Body: `{"n":1}`}
		w.commit(box, event, e.seq)
		if e.parked != 0 {
			must.Do(w, box.Park(ctx, outbox.Entry{Event: event, Source: "orders", Seq: e.seq}, e.parked, "InvalidMessageContents: too long\u009b\nforged"))
		}
	}
	time.Sleep(2 * time.Hour)
	return box
}

// outboxFrom2 makes the table "outbox" with two groups in the outbox "orders", each with its second event: that of ord-1 halts it, and
// before that of ord-2 is shown a read asks for the first one.
func (w *world) outboxFrom2() {
	w.Helper()
	box := w.emptyOutbox()
	event := fifo.Event{ID: "ord-1/v2", Group: "ord-1", Body: "{}"}
	w.commit(box, event, 2)
	must.Do(w, box.Park(context.Background(), outbox.Entry{Event: event, Source: "orders", Seq: 2}, outbox.OnRefusedHalt, "too long"))
	w.commit(box, fifo.Event{ID: "ord-2/v2", Group: "ord-2", Body: "{}"}, 2)
}

func (w *world) emptyOutbox() *dynamooutbox.Outbox {
	w.Helper()
	must.Do(w, dynamooutbox.CreateTable(context.Background(), w.stack.DynamoDB, "outbox"))
	box := must.Get(dynamooutbox.New(w.stack.DynamoDB, "outbox", "orders", "orders"))(w)
	w.env["SQSONCE_OUTBOX_TABLE"], w.env["SQSONCE_OUTBOX"] = "outbox", "orders"
	return box
}

func (w *world) commit(box *dynamooutbox.Outbox, e fifo.Event, seq int64) {
	w.Helper()
	put := must.Get(box.Put(e, seq))(w)
	must.Get(w.stack.DynamoDB.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{{Put: put}}}))(w)
}

func TestOutboxGolden(t *testing.T) {
	bubble(t, func(w *world) {
		w.outboxOf()
		w.golden("outbox-ls-pipe", w.run("outbox", "ls"))
		w.golden("outbox-ls-parked-pipe", w.run("outbox", "ls", "--parked"))
		w.golden("outbox-show-pipe", w.run("outbox", "show", "ord-1"))
		w.golden("outbox-show-seq-pipe", w.run("outbox", "show", "ord-1", "--seq", "1", "--body"))
		w.golden("outbox-unpark-dry-pipe", w.run("outbox", "unpark", "ord-1", "1", "--dry-run"))
		w.golden("outbox-ls-json", w.run("outbox", "ls", "--json"))
		w.golden("outbox-ls-parked-json", w.run("outbox", "ls", "--parked", "--json"))
		w.golden("outbox-show-json", w.run("outbox", "show", "ord-1", "--json"))
		w.golden("outbox-show-seq-json", w.run("outbox", "show", "ord-3", "--seq", "2", "--json"))
		w.golden("outbox-discard-dry-json", w.run("outbox", "discard", "ord-1", "1", "--dry-run", "--json"))
	})
}

// What each verb does with an event in each state: its question, its exit code, whether it is still parked, still there.
func TestOutboxActs(t *testing.T) {
	const asksID = "Type the event's ID"
	for _, test := range []struct {
		args     string
		answer   string // on a terminal; "": there is none
		question string
		code     exitCode
		left     outboxState // "": the event is gone
	}{
		{"unpark ord-1 1", "y", asksYesNo, exitDone, waiting},
		{"unpark ord-1 1", "n", asksYesNo, exitRefused, halted},
		{"unpark ord-1 1", "", "", exitRefused, halted},
		{"unpark --yes ord-1 1", "", "", exitDone, waiting},
		{"unpark --dry-run ord-1 1", "y", "", exitDone, halted},
		{"unpark --yes ord-3 1", "", "", exitDone, waiting},
		{"unpark --yes ord-2 1", "", "", exitRefused, waiting},
		{"discard ord-1 1", "ord-1/v1", asksID, exitDone, ""},
		{"discard ord-1 1", "y", asksID, exitRefused, halted},
		{"discard --yes ord-1 1", "y", asksID, exitRefused, halted},
		{"discard --yes ord-1 1", "", "", exitDone, ""},
		{"discard ord-1 1", "", "", exitRefused, halted},
		{"discard --yes ord-3 1", "", "", exitDone, ""},
		{"discard --yes ord-2 1", "", "", exitRefused, waiting},
		{"discard --yes ord-3 2", "", "", exitRefused, waiting},
		{"unpark --yes " + hostileGroup + " 1", "", "", exitFailed, ""},
		{"discard --yes " + hostileGroup + " 1", "", "", exitFailed, ""},
	} {
		run(t, test.args+" "+test.answer, func(w *world) {
			box := w.outboxOf()
			w.answer, w.terminal = test.answer, test.answer != ""
			words := strings.Fields(test.args)
			r := w.run(append([]string{"outbox"}, words...)...)
			if strings.Contains(r.out+r.err, "\nforged") || strings.ContainsAny(r.out+r.err, "\u009b\u202e") {
				w.Errorf("a group or a reason acts on the terminal: %q%q", r.out, r.err)
			}
			if r.code != test.code {
				w.Errorf("exit code %d, want %d: %s", r.code, test.code, r.err)
			}
			if asked := strings.Contains(r.err, asksID) || strings.Contains(r.err, asksYesNo); asked != (test.question != "") || !strings.Contains(r.err, test.question) {
				w.Errorf("asked %q, want %q", r.err, test.question)
			}
			group, seq := words[len(words)-2], words[len(words)-1]
			left := outboxState("")
			entries := must.Get(box.Read(context.Background(), outbox.Group{Name: group}, outbox.Known{}, 10))(w)
			for _, e := range entries {
				if seq == map[int64]string{1: "1", 2: "2"}[e.Seq] {
					left = parkedAs(e.Parked)
				}
			}
			if left != test.left {
				w.Errorf("it is %q now, want %q", left, test.left)
			}
			if lines := w.audited(); (test.code == exitDone && !strings.Contains(test.args, "dry-run")) != (len(lines) == 2) {
				w.Errorf("%d lines of the audit: %v", len(lines), lines)
			} else if len(lines) == 2 && (lines[0].Group != group || lines[0].EventID == "" || lines[1].ID != lines[0].ID || lines[1].Group != group) {
				w.Errorf("the audit says %+v", lines)
			}
		})
	}
}

func TestOutboxRefusals(t *testing.T) {
	for _, test := range []struct {
		args string
		code exitCode
		want string
	}{
		{"ls --limit 0", exitUsage, "--limit is 0"},
		{"show --limit 0 ord-1", exitUsage, "--limit is 0"},
		{"show ord-1 --seq 9", exitFailed, "event 9 of group ord-1"},
		{"unpark ord-1 first", exitUsage, "not the number of an event"},
		{"unpark ord-1 0", exitUsage, "not the number of an event"},
		{"unpark ord-1", exitUsage, "accepts 2 arg"},
		{"ls --table nothing", exitFailed, "nothing"},
		{"ls --outbox a#b", exitUsage, "name"},
	} {
		bubble(t, func(w *world) {
			w.outboxOf()
			if r := w.run(append([]string{"outbox"}, strings.Fields(test.args)...)...); r.code != test.code || !strings.Contains(r.err, test.want) {
				t.Errorf("%s: exit code %d, %q: want %d and %q", test.args, r.code, r.err, test.code, test.want)
			}
		})
	}
	bubble(t, func(w *world) {
		if r := w.run("outbox", "ls"); r.code != exitUsage || !strings.Contains(r.err, "SQSONCE_OUTBOX_TABLE") {
			t.Errorf("without a table: exit code %d, %q", r.code, r.err)
		}
	})
}

// A table that does not answer, a relay that is faster, a write whose answer is lost.
func TestOutboxFaults(t *testing.T) {
	for name, test := range map[string]struct {
		rule fault.Rule
		args []string
		code exitCode
		want string
	}{
		"ls":           {fault.Rule{Op: "Scan", Do: fault.Error, Code: "AccessDeniedException"}, []string{"ls"}, exitDenied, "needs: dynamodb:Scan"},
		"show":         {fault.Rule{Op: "Query", Do: fault.Error, Code: "AccessDeniedException"}, []string{"show", "ord-1"}, exitDenied, ""},
		"unpark":       {fault.Rule{Op: "UpdateItem", Do: fault.Error, Code: "AccessDeniedException"}, []string{"unpark", "--yes", "ord-1", "1"}, exitDenied, "unpark event 1 of group ord-1"},
		"discard":      {fault.Rule{Op: "DeleteItem", Do: fault.Error, Code: "InternalServerError"}, []string{"discard", "--yes", "ord-1", "1"}, exitFailed, "it is not known whether it was done"},
		"gone already": {fault.Rule{Op: "UpdateItem", Do: fault.Error, Code: "ConditionalCheckFailedException"}, []string{"unpark", "--yes", "ord-1", "1"}, exitRefused, ""},
	} {
		bubble(t, func(w *world) {
			w.outboxOf()
			w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{test.rule}})
			if r := w.run(append([]string{"outbox"}, test.args...)...); r.code != test.code || !strings.Contains(r.err, test.want) {
				t.Errorf("%s: exit code %d, %q: want %d and %q", name, r.code, r.err, test.code, test.want)
			}
		})
	}
}
