package ops_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// Crashed events are grouped by process, in the order of their starts. An event is a suspect only if no other one of its process started
// more than a second later, and innocent only if its record says that its run had ended.
func TestProcesses(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	record := func(process, key string, after time.Duration, state dedup.RecordState) ops.Record {
		return ops.Record{Key: key, Process: process, Started: start.Add(after), State: state, Crashes: 1}
	}
	crashed, released, completed, running := dedup.StateCrashed, dedup.StateReleased, dedup.StateCompleted, dedup.StateRunning
	for name, tt := range map[string]struct {
		records []ops.Record
		want    string
	}{
		"none crashed": {[]ops.Record{record("a", "1", 0, released), record("", "2", 0, completed)}, ""},
		"one started last": {[]ops.Record{record("a", "2", 3*time.Second, crashed), record("a", "1", 0, crashed), record("a", "0", 1999*time.Millisecond, crashed)},
			"a: 1 unknown, 0 unknown, 2 suspect"},
		"several started last": {[]ops.Record{record("a", "2", time.Second, crashed), record("a", "1", 0, crashed)}, "a: 1 suspect, 2 suspect"},
		"others had ended": {[]ops.Record{record("a", "3", 9*time.Second, completed), record("a", "2", 8*time.Second, released), record("a", "1", 0, crashed)},
			"a: 1 suspect, 2 innocent, 3 innocent"},
		"another one may run yet": {[]ops.Record{record("a", "2", 5*time.Second, running), record("a", "1", 0, crashed)}, "a: 1 unknown, 2 suspect"},
		"two processes, the newest last": {[]ops.Record{record("a", "2", 2*time.Second, crashed), record("b", "1", 0, crashed), record("c", "0", 0, running)},
			"b: 1 suspect; a: 2 suspect"},
		"processes that are not known": {[]ops.Record{record("", "2", 2*time.Second, crashed), record("", "3", 3*time.Second, completed), record("b", "1", 3*time.Second, crashed)},
			"b: 1 suspect; : 2 unknown"},
		"two messages of an event": {[]ops.Record{record("a", "1", 0, crashed), record("a", "1", 0, crashed)}, "a: 1 suspect"},
	} {
		var got []string
		for _, p := range ops.Processes(tt.records) {
			var events []string
			for _, e := range p.Events {
				events = append(events, e.Key+" "+string(e.Part))
			}
			got = append(got, p.Name+": "+strings.Join(events, ", "))
		}
		if got := strings.Join(got, "; "); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// The events that were running in a worker that died have one process, under each policy that does not run them again.
func TestProcessOfAWorkerThatDied(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]dedup.CrashPolicy{"block": dedup.OnCrashBlock, "dead letter": dedup.OnCrashDeadLetter} {
		run(t, name, setup{maxReceives: 3}, func(x *fixture) {
			crash := func(o *dedup.Options) { o.OnCrash = policy }
			x.send(x.url, "a1")
			x.send(x.url, "b1")
			x.worker(x.url, x.guarded(hangs, crash)).killAfter(time.Minute) // at first it receives one message
			x.worker(x.url, x.guarded(fails(nil), crash)).stopAfter(15 * time.Minute)
			l := must.Get(x.open().List(context.Background(), 0))(x)
			processes := ops.Processes(ops.RecordsOf(l.Messages))
			if len(processes) != 1 || processes[0].Name == "" || len(processes[0].Events) != 2 || processes[0].Events[0].State != dedup.StateCrashed || processes[0].Events[1].Key != consumer+"#orders|b1" || processes[0].Events[1].Part != "suspect" {
				x.Fatalf("%d messages, processes %+v; want one with two crashed events", len(l.Messages), processes)
			}
			if age := time.Since(processes[0].Events[0].Started); age < 10*time.Minute {
				x.Errorf("started %s ago: that is no start in the process that died", age)
			}
		})
	}
}

// A message keeps its class when an operator frees its crashed event.
func TestFreedKeepsItsClass(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.send(x.url, "a1")
		for len(x.sqs.Messages(x.dlq)) == 0 {
			x.worker(x.url, x.guarded(hangs)).killAfter(time.Minute)
			time.Sleep(2 * time.Minute)
		}
		d := x.redriver()
		before := x.one(d)
		freeing := ops.FreeNote(*before.Record, before.State, note)
		must.Do(x, x.store(x.admin).Reopen(context.Background(), *before.Record, freeing))
		after := x.one(d)
		if before.State != dedup.StateCrashed || after.State != dedup.StateReleased || after.Class != before.Class || !strings.Contains(after.Reason, note) {
			x.Errorf("before %s %+v, after %s %+v, %q", before.State, before.Class, after.State, after.Class, after.Reason)
		}
	})
}

// A message without a record that a host has rejected before says both.
func TestUnknownKeepsTheEarlierReason(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.sendWith(x.url, "a1", map[string]string{sqsonce.AttrEventID: "1", sqsonce.AttrEventSource: "orders", sqsonce.AttrRejectReason: errCard.Error()})
		for len(x.sqs.Messages(x.dlq)) == 0 {
			x.receive(x.url)
			time.Sleep(2 * visibility)
		}
		m := x.one(x.redriver())
		if m.Cause != ops.CauseReceivesUsedUp || m.State != ops.StateUnknown || !strings.Contains(m.Reason, errCard.Error()) || !strings.Contains(m.Reason, ops.ErrNoRecord.Error()) || m.Class != ops.ClassOf(errCard.Error()) {
			x.Errorf("%s, %s, %q of class %q", m.Cause, m.State, m.Reason, fmt.Sprint(m.Class))
		}
	})
}

// The note of a crash is no error of an attempt before it. The time in a note of an earlier crash can be read.
func TestEarlierError(t *testing.T) {
	t.Parallel()
	const note = "dedup: was running in a process that crashed, started at 1764442800123, crash 1: runs apart from other messages"
	ended := dedup.Record{}
	ended.LastError = note
	running := ended
	running.Until = time.UnixMilli(1764442900000)
	for want, r := range map[string]dedup.Record{"": ended, "dedup: was running in a process that crashed, started at 2025-11-29 19:00:00.123 UTC, crash 1: runs apart from other messages": running} {
		if got := ops.NewRecord(r, dedup.StateCrashed).EarlierError; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
