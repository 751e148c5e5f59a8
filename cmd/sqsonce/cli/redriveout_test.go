package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

// What a redrive has not seen it does not call done.
func TestRedriveUnseen(t *testing.T) {
	bubble(t, func(w *world) {
		w.deadLetters(20)
		w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Nth: 2, Do: fault.LoseReply}}})
		if got := w.redrive("--all", "--canary=0", "--yes"); got.code != exitPart || !strings.Contains(got.err, "10 not seen: hidden") {
			t.Errorf("%+v", got)
		}
		if got := w.redrive("--all", "--canary=0"); got.code != exitPart || !strings.Contains(got.err, "10 were not seen") {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Minute)
		if got := w.redrive("--all", "--canary=0", "--yes"); got.code != exitDone || len(w.stack.MemSQS().Messages("orders")) != 20 {
			t.Errorf("%+v", got)
		}
	})
}

// How far it is stands on standard error: as a bar on a terminal that knows of how many, else as lines.
func TestProgress(t *testing.T) {
	for name, test := range map[string]struct {
		bars  bool
		flags []string
		want  []string
	}{
		"bar":      {true, nil, []string{"200 / 200 redriven", "0 came back", "canary "}},
		"no plan":  {true, []string{"--yes"}, []string{" redriven, 0 left, 0 came back\n", "is completed, after"}},
		"no bar":   {false, nil, []string{" redriven, 0 left, 0 came back\n", "is completed, after"}},
		"expected": {false, []string{"--yes", "--expect=200"}, []string{" redriven, 0 left, 0 came back\n"}},
	} {
		run(t, name, func(w *world) {
			w.deadLetters(200)
			w.consume("orders", succeeds)
			w.terminal, w.bars, w.answer = true, test.bars, "y"
			got := w.redrive(append([]string{"--all", "--rate=10"}, test.flags...)...)
			if got.code != exitDone || got.out != "redriven\t200\t\n" {
				w.Errorf("%+v", got)
			}
			for _, text := range test.want {
				if !strings.Contains(got.err, text) {
					w.Errorf("no %q in %q", text, got.err)
				}
			}
		})
	}
}
