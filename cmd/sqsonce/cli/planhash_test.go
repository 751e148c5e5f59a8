package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// dryRun is what a program reads of a dry run.
type dryRun struct{ Hash, Typed, Effect string }

func (w *world) dryRun(args []string) (p dryRun) {
	w.Helper()
	got := w.run(slices.Concat(args, []string{"--dry-run", "--json"})...)
	if must.Do(w, json.Unmarshal([]byte(got.out), &p)); got.code != exitDone || len(p.Hash) != 64 {
		w.Fatalf("%q: %+v", args, got)
	}
	return p
}

// retry has the consumer fail once more: the record's state is the same, its owner and fence are not.
func (w *world) retry(event, owner string) {
	w.Helper()
	l := must.Get(granted.Lease(w.store.Acquire(context.Background(), dedup.Claim{
		Key: consumer + "#orders|" + event, Owner: owner, Lease: lease, Retention: 29 * 24 * time.Hour, ReceiveCount: 4,
	})))(w)
	must.Do(w, w.store.Release(context.Background(), l, errors.New(errFor(event).Error())))
}

// What has changed since a dry run refuses its plan, and changes nothing; what the plan is not about does not.
func TestPlanOfQueue(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w *world, ids []string)
		stale  bool
	}{
		"nothing":        {change: func(*world, []string) {}},
		"time":           {change: func(*world, []string) { time.Sleep(9 * time.Minute) }},
		"a class more":   {change: func(w *world, _ []string) { w.send("orders-dlq", "other", "b") }},
		"a message more": {func(w *world, _ []string) { w.put("e9", dedup.StateReleased); w.send("orders-dlq", "e9", "b") }, true},
		"a message less": {func(w *world, ids []string) {
			w.run("dlq", "delete", "--queue", "orders", "--archive", w.archive(), "--id", ids[0], "--yes", "--expect", "1")
		}, true},
		"another instead": {func(w *world, ids []string) {
			w.run("dlq", "delete", "--queue", "orders", "--archive", w.archive(), "--id", ids[0], "--yes", "--expect", "1")
			w.send("orders-dlq", "e0", "b")
		}, true},
		"a hidden one": {func(w *world, _ []string) { w.hide("orders-dlq") }, true},
		"another try":  {func(w *world, _ []string) { w.retry("e1", "another") }, true},
		"a state": {func(w *world, _ []string) {
			w.run("record", "complete", "orders|e1", "--yes", "--table", "dedup", "--consumer", consumer)
		}, true},
	} {
		for _, command := range []string{"redrive", "delete"} {
			run(t, name+"/"+command, func(w *world) {
				ids := w.deadLetters(3)
				args := []string{"dlq", command, "--queue", "orders", "--consumer", consumer, "--table", "dedup", "--class", "bb9381"}
				if command == "delete" {
					args = append(args, "--archive", w.archive(), "--expect", "3")
				}
				p := w.dryRun(args)
				test.change(w, ids)
				before := left(w)
				audited := len(w.audited())
				if command == "redrive" && !test.stale {
					w.consume("orders", succeeds)
				}
				got := w.run(append(args, "--yes", "--plan", p.Hash)...)
				after := left(w)
				switch {
				case test.stale && (got.code != exitRefused || !strings.Contains(got.err, "changed since you looked") || after != before || len(w.audited()) != audited):
					w.Errorf("%d of %d left, %d audited: %+v", after, before, len(w.audited())-audited, got)
				case !test.stale && (got.code != exitDone || after != before-3):
					w.Errorf("%d of %d left: %+v", after, before, got)
				}
			})
		}
	}
}

// hide receives a message, as another consumer of the queue.
func (w *world) hide(queue string) {
	w.Helper()
	must.Get(w.stack.SQS.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(w.stack.QueueURL[queue]), VisibilityTimeout: 1800}))(w)
}

// What comes between the second plan and the redrive is left: nobody has seen it.
func TestPlanRedrivesOnlyPlanned(t *testing.T) {
	bubble(t, func(w *world) {
		w.deadLetters(3)
		w.consume("orders", succeeds)
		args := append(slices.Clone(redriveLine), "--all", "--json")
		p := w.dryRun(args)
		w.caller = func(context.Context) (string, error) { // just before the run
			w.put("late", dedup.StateReleased)
			w.send("orders-dlq", "late", "b")
			return callerARN, nil
		}
		got := w.run(append(args, "--yes", "--plan="+p.Hash)...)
		if n := left(w); got.code != exitPart || n != 1 || w.hidden("orders-dlq") != 0 || !strings.Contains(got.err, "1 that the plan has not seen") {
			t.Errorf("%d left: %+v", n, got)
		}
	})
}

// The command that goes on has no plan: what is left is another one.
func TestWithoutFlag(t *testing.T) {
	for _, test := range [][]string{{"dlq", "--plan", "h", "--yes"}, {"dlq", "--yes", "--plan=h"}, {"dlq", "--yes"}} {
		if got := withoutFlag(test, "--plan"); !slices.Equal(got, []string{"dlq", "--yes"}) {
			t.Errorf("%q is %q", test, got)
		}
	}
}

// A plan of a record is one of its owner and fence.
func TestPlanOfRecord(t *testing.T) {
	for _, test := range []struct {
		command string // with flags
		state   dedup.RecordState
		typed   bool
		change  func(w *world)
		code    exitCode
		after   dedup.RecordState
	}{
		{"free", dedup.StateCrashed, false, nil, exitDone, dedup.StateReleased},
		{"free --take", dedup.StateRunning, true, nil, exitDone, dedup.StateReleased},
		{"free --again", dedup.StateCompleted, true, nil, exitDone, dedup.StateReleased},
		{"complete", dedup.StateCrashed, false, nil, exitDone, dedup.StateCompleted},
		{"complete --create", ops.StateUnknown, false, nil, exitDone, dedup.StateCompleted},
		{"free", dedup.StateCrashed, false, func(w *world) { w.retry("e", "another") }, exitRefused, dedup.StateReleased},
		{"complete", dedup.StateCrashed, false, func(w *world) { w.retry("e", "another") }, exitRefused, dedup.StateReleased},
		{"complete", dedup.StateReleased, false, func(w *world) { w.retry("e", "another") }, exitRefused, dedup.StateReleased}, // the same state
		{"complete --create", ops.StateUnknown, false, func(w *world) { w.put("e", dedup.StateCompleted) }, exitRefused, dedup.StateCompleted},
		{"free --take", dedup.StateRunning, true, func(*world) { time.Sleep(time.Hour) }, exitRefused, dedup.StateCrashed},
	} {
		run(t, test.command+"/"+string(test.state)+"/"+strconv.FormatBool(test.change != nil), func(w *world) {
			key := w.put("e", test.state)
			args := append(append([]string{"record"}, strings.Fields(test.command)...), "--table", "dedup", key)
			p := w.dryRun(args)
			if (p.Typed == key) != test.typed || p.Typed != "" && !test.typed || p.Effect == "" {
				w.Errorf("types %q for %q", p.Typed, p.Effect)
			}
			if test.change != nil {
				test.change(w)
			}
			got := w.run(append(args, "--yes", "--plan", p.Hash)...)
			if got.code != test.code || w.state(key) != test.after || (len(w.audited()) == 2) != (test.code == exitDone) {
				w.Errorf("%s, %d audited: %+v", w.state(key), len(w.audited()), got)
			}
		})
	}
}

// --plan is no consent, and an empty one is no plan.
func TestPlanFlag(t *testing.T) {
	bubble(t, func(w *world) {
		w.deadLetters(3)
		w.consume("orders", succeeds)
		args := append(slices.Clone(redriveLine), "--all")
		p := w.dryRun(args)
		for _, test := range []struct {
			flags    []string
			terminal bool
			answer   string
			code     exitCode
			says     string
		}{
			{[]string{"--yes", "--plan", ""}, false, "", exitUsage, "is not the hash of a dry run"},
			{[]string{"--yes", "--plan", p.Hash[1:]}, false, "", exitUsage, "is not the hash of a dry run"},
			{[]string{"--dry-run", "--plan", p.Hash}, false, "", exitUsage, "plan"},
			{[]string{"--plan", p.Hash}, false, "", exitRefused, "without a terminal"},
			{[]string{"--plan", p.Hash}, true, "n", exitRefused, asksYesNo},
			{[]string{"--plan", strings.Repeat("0", 64)}, true, "y", exitRefused, "changed since"},
			{[]string{"--plan", p.Hash}, true, "y", exitDone, asksYesNo},
		} {
			w.terminal, w.answer = test.terminal, test.answer
			if got := w.run(append(slices.Clone(args), test.flags...)...); got.code != test.code || !strings.Contains(got.err, test.says) {
				t.Errorf("%q: %+v", test.flags, got)
			}
		}
	})
}
