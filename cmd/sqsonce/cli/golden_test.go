package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
)

const hostile = "{\"order\":1}\n\u009b31m\u202eevil\t\u200b"

// fill puts one message of each state into the dead-letter queue. A second one has the reason of the first but for its details.
func (w *world) fill() (ids map[dedup.RecordState]string) {
	w.Helper()
	ids = map[dedup.RecordState]string{}
	w.put("crashed", dedup.StateCrashed)
	for _, s := range []dedup.RecordState{dedup.StateReleased, dedup.StateCompleted, dedup.StateForeign} {
		w.put(string(s), s)
	}
	w.put("ord-18", dedup.StateReleased)
	time.Sleep(time.Minute)
	rejected := func(n string) []string {
		return []string{sqsonce.AttrRejectReason, "card provider: status 503 for order " + n + "\u009b"}
	}
	ids[dedup.StateReleased] = w.send("orders-dlq", "released", hostile, rejected("17")...)
	time.Sleep(3 * time.Hour)
	w.send("orders-dlq", "ord-18", "b", rejected("18")...)
	for _, s := range []dedup.RecordState{dedup.StateCrashed, dedup.StateCompleted, dedup.StateRunning, dedup.StateForeign, ops.StateUnknown} {
		ids[s] = w.send("orders-dlq", string(s), "b")
	}
	w.put("running", dedup.StateRunning)
	time.Sleep(2 * time.Minute)
	return ids
}

func TestGolden(t *testing.T) {
	bubble(t, func(w *world) {
		ids := w.fill()
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.golden("dlq-ls-pipe", w.run("dlq", "ls"))
		w.golden("dlq-ls-messages-pipe", w.run("dlq", "ls", "--messages", "--state", "crashed,unknown"))
		w.golden("dlq-show-pipe", w.run("dlq", "show", ids[dedup.StateReleased]))
		w.golden("dlq-show-body-pipe", w.run("dlq", "show", ids[dedup.StateReleased], "--body"))
		w.golden("record-show-pipe", w.run("record", "show", "billing#orders|crashed"))
		w.golden("record-show-result-pipe", w.run("record", "show", "orders|completed", "--result"))
		w.golden("record-show-none-pipe", w.run("record", "show", "orders|nobody"))
		w.golden("record-ls-pipe", w.run("record", "ls", "--limit", "2"))
		w.golden("record-free-dry-pipe", w.run("record", "free", "orders|crashed", "--dry-run"))
		w.golden("dlq-ls-json", w.run("dlq", "ls", "--json"))
		w.golden("dlq-ls-messages-json", w.run("dlq", "ls", "--json", "--messages", "--state", "released"))
		w.golden("dlq-show-json", w.run("dlq", "show", ids[dedup.StateReleased], "--json", "--body"))
		w.golden("record-show-json", w.run("record", "show", "orders|completed", "--json", "--result"))
		w.golden("record-ls-json", w.run("record", "ls", "--json", "--state", "crashed,completed"))
		w.golden("record-free-dry-json", w.run("record", "free", "orders|completed", "--again", "--dry-run", "--json"))
		w.golden("record-free-json", w.run("record", "free", "orders|crashed", "--json", "--yes"))
		w.golden("record-complete-json", w.run("record", "complete", "orders|released", "--json", "--yes"))
	})
}

func TestGoldenRedrive(t *testing.T) {
	bubble(t, func(w *world) {
		w.fill()
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.golden("dlq-redrive-dry-pipe", w.run("dlq", "redrive", "--all", "--dry-run"))
		w.golden("dlq-redrive-dry-json", w.run("dlq", "redrive", "--state", "released,crashed", "--dry-run", "--json"))
		w.consume("orders", func(_ context.Context, m *sqsonce.Message) error { time.Sleep(time.Second); return nil })
		w.send("orders-dlq", "again", "b")
		w.golden("dlq-redrive-pipe", w.run("dlq", "redrive", "--all", "--unknown", "--yes"))
		w.send("orders-dlq", "once more", "b")
		w.golden("dlq-redrive-json", w.run("dlq", "redrive", "--all", "--unknown", "--yes", "--json"))
	})
}

func TestGoldenArchive(t *testing.T) {
	bubble(t, func(w *world) {
		w.fill()
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.golden("dlq-export-pipe", w.run("dlq", "export", w.archive()))
		w.golden("dlq-export-json", w.run("dlq", "export", w.archive(), "--state", "unknown", "--json"))
		w.golden("dlq-delete-dry-json", w.run("dlq", "delete", "--archive", w.archive(), "--completed", "--dry-run", "--json"))
		w.golden("dlq-delete-pipe", w.run("dlq", "delete", "--archive", w.archive(), "--completed", "--yes", "--expect", "1"))
		w.golden("dlq-delete-json", w.run("dlq", "delete", "--archive", w.archive(), "--state", "foreign", "--yes", "--expect", "1", "--json"))
		w.golden("dlq-restore-dry-json", w.run("dlq", "restore", w.archive(), "--dry-run", "--json"))
		w.golden("dlq-restore-pipe", w.run("dlq", "restore", w.archive(), "--state", "foreign", "--yes"))
		w.golden("dlq-restore-json", w.run("dlq", "restore", w.archive(), "--state", "completed", "--yes", "--json"))
	})
}

func TestGoldenReplay(t *testing.T) {
	bubble(t, func(w *world) {
		ids := w.fill()
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		w.consume("orders", func(context.Context, *sqsonce.Message) error { time.Sleep(time.Second); return nil })
		id, key := ids[dedup.StateCompleted], consumer+"#orders|completed"
		line := func(flags string) []string { return w.replayLine(id, key, flags+noted) }
		w.golden("replay-refused-pipe", w.run(line("ID")...))
		w.golden("replay-dry-json", w.run(line("ID --again FENCE --dry-run --json")...))
		w.golden("replay-pipe", w.run(line("ID --again FENCE --yes")...))
		id = w.send("orders-dlq", "completed", "b")
		w.golden("replay-json", w.run(line("ID --again FENCE --yes --json")...))
	})
}

// Nothing there is [], not a sentence, and no header.
func TestGoldenEmpty(t *testing.T) {
	bubble(t, func(w *world) {
		w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = consumer, "dedup"
		w.golden("dlq-ls-empty-json", w.run("dlq", "ls", "--queue", "orders", "--json", "--messages", "--exit-code"))
		if got := w.run("dlq", "ls", "--queue", "orders"); got.code != exitDone || got.out != "" || got.err == "" {
			t.Errorf("%+v", got)
		}
		w.golden("record-ls-empty-json", w.run("record", "ls", "--json"))
	})
}

// Whatever a message holds, nothing that a terminal acts on is printed.
func TestNoControls(t *testing.T) {
	bubble(t, func(w *world) {
		id := w.fill()[dedup.StateReleased]
		flags := []string{"--queue", "orders", "--consumer", consumer, "--table", "dedup"}
		for _, width := range []int{0, 80} {
			w.width = width
			for _, args := range [][]string{
				{"dlq", "ls"}, {"dlq", "ls", "--messages"}, {"dlq", "show", id, "--body"}, {"dlq", "show", id, "--body", "--json"},
			} {
				got := w.run(append(args, flags...)...)
				if got.code != exitDone || !strings.Contains(got.out+got.err, "card provider") {
					t.Errorf("%q: %+v", args, got)
				}
				for _, r := range got.out + got.err {
					if r != '\n' && r != '\t' && (r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e || r == 0x200b) {
						t.Errorf("%q prints %U", args, r)
					}
				}
			}
		}
	})
}
