package cli

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
)

// A consumer with a key function has its records under other keys than the command asks for. Nothing says then that its events never
// ran: they are unknown, and sent where that is said for this run of the command.
func TestKeyFunctionUnknownToTheCommand(t *testing.T) {
	for name, test := range map[string]struct {
		flags  []string
		answer string // on a terminal; "": there is none
		code   exitCode
		sent   int
	}{
		"all":                  {flags: []string{"--all", "--yes"}, code: exitPart},
		"all, with a plan":     {flags: []string{"--all", "--yes", "--expect", "0"}, code: exitPart},
		"one message":          {flags: []string{"--id", "ID", "--yes"}, code: exitPart},
		"by state":             {flags: []string{"--state", "unknown", "--yes"}, code: exitPart},
		"crashed and expired":  {flags: []string{"--all", "--yes", "--crashed", "--expired"}, code: exitPart},
		"yes on a terminal":    {flags: []string{"--all", "--yes"}, answer: "y\ny", code: exitPart},
		"asked, no":            {flags: []string{"--all"}, answer: "n", code: exitPart},
		"asked, no answer":     {flags: []string{"--all"}, answer: "\n", code: exitPart},
		"asked, yes":           {flags: []string{"--all"}, answer: "y\ny", code: exitDone, sent: 4},
		"asked, and not done":  {flags: []string{"--all"}, answer: "y\nn", code: exitRefused},
		"asked of one message": {flags: []string{"--id", "ID"}, answer: "y\ny", code: exitDone, sent: 1},
		"said":                 {flags: []string{"--all", "--yes", "--unknown"}, code: exitDone, sent: 4},
		"said of one message":  {flags: []string{"--id", "ID", "--yes", "--unknown"}, code: exitDone, sent: 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				ids := w.keyFunction()
				list := w.run("dlq", "ls", "--queue", "orders", "--consumer", consumer, "--table", "dedup")
				shown := w.run("dlq", "show", ids[0], "--json", "--queue", "orders", "--consumer", consumer, "--table", "dedup")
				if !strings.Contains(list.out, "\t4\tunknown\t") || strings.Contains(list.out, "never") || !strings.Contains(shown.out, `"state":"unknown"`) {
					t.Errorf("%s%s", list.out, shown.out)
				}
				for i, flag := range test.flags {
					test.flags[i] = strings.Replace(flag, "ID", ids[0], 1)
				}
				w.terminal, w.answer = test.answer != "", test.answer
				got := w.redrive(append(slices.Clone(test.flags), "--canary", "0")...)
				if sent := len(w.stack.MemSQS().Messages("orders")); got.code != test.code || sent != test.sent {
					t.Errorf("exit %d, %d sent, want %d, %d: %s%s", got.code, sent, test.code, test.sent, got.out, got.err)
				}
				if says := strings.Contains(got.out+got.err, "--unknown sends it all the same"); says != (test.code == exitPart) {
					t.Errorf("it says how: %t: %s%s", says, got.out, got.err)
				}
			})
		})
	}
}

// keyFunction makes four events of a consumer with a key function, one that crashed and three that are completed, and puts their
// messages into the dead-letter queue.
func (w *world) keyFunction() (ids []string) {
	w.Helper()
	once, err := dedup.New(w.store, consumer, func(o *dedup.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
		o.Key = func(m *sqsonce.Message) (string, error) { return sqsonce.EventKey("shop", m.Body) }
	})
	w.must(err)
	for _, order := range []string{"1", "2", "3", "4"} {
		m := &sqsonce.Message{ID: order, Body: order}
		key, err := once.Key(m)
		w.must(err)
		want := dedup.StateCompleted
		if order == "1" {
			want = dedup.StateCrashed
			_, err = granted.Lease(w.store.Acquire(context.Background(), dedup.Claim{Key: key, Owner: "killed", Lease: lease, Retention: 29 * 24 * time.Hour}))
			time.Sleep(lease + 10*time.Second)
		} else {
			err = once.Handler(succeeds)(context.Background(), m)
		}
		w.must(err)
		if state := w.state(key); state != want {
			w.Fatalf("%s is %s", key, state)
		}
		ids = append(ids, w.send("orders-dlq", "event-"+order, order))
	}
	return ids
}
