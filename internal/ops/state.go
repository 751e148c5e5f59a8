package ops

import (
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// StateUnknown is a [Message].State in addition to those of package dedup. It says that the record was not found, or not read.
// Message.Problem says why.
const StateUnknown dedup.RecordState = "unknown"

// StateNone is a [Message].State, too. It says that the event never started: it has no record, and Options.SameKeys says that it
// would have one.
const StateNone dedup.RecordState = "none"

// StateOf is the state of a record for an operator: one that was put aside after a crash, and has not run since, is crashed.
func StateOf(r dedup.Record, now time.Time) dedup.RecordState {
	s := r.State(now)
	if s == dedup.StateReleased && r.Crashes(now) > 0 {
		return dedup.StateCrashed
	}
	return s
}

// states is the one table of what a state means, and of what to do with a message whose event is in it.
var states = []struct {
	state     dedup.RecordState
	means, do string
}{
	{dedup.StateReleased, "free: its next delivery runs it; a run that failed may have had its effect", "if its effect happened complete the record, else redrive it when you have fixed the cause; if it can never work, archive it with dlq delete"},
	{dedup.StateRunning, "a consumer is running it", "wait until it has ended, and look again"},
	{dedup.StateCrashed, "its consumer died, was frozen, or lost its store, while it ran; the effect may have happened", "fix the crash and find out whether the effect happened; if so complete the record, if not free it and redrive"},
	{dedup.StateCompleted, "done: its message is a second copy, or was not deleted", "archive the message with dlq delete --completed --archive FILE; the event runs again only by replay, or record free --again"},
	{dedup.StateForeign, "its record was written by a program that does not check ownership", "leave it to that program"},
	{StateNone, "never started: it has no record, and you said --same-keys", "redrive it before the others: their records prove that it never started"},
	{StateUnknown, "its record was not found, or not read", "find out whether it was done, before you redrive it; sqsonce-full --store reads records in SQL and Redis, a command of your own those of a key function: docs/operating.md#own-commands"},
}

// States returns all states, in the order of the table.
func States() []dedup.RecordState {
	out := make([]dedup.RecordState, 0, len(states))
	for _, s := range states {
		out = append(out, s.state)
	}
	return out
}

// Means says in words what happened to an event in this state.
func Means(s dedup.RecordState) string { means, _ := row(s); return means }

// Do says what to do with a message whose event is in this state, and with its record.
func Do(s dedup.RecordState) string { _, do := row(s); return do }

func row(s dedup.RecordState) (means, do string) {
	for _, row := range states {
		if row.state == s {
			return row.means, row.do
		}
	}
	return "", ""
}
