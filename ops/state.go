package ops

import "github.com/sqsonce/sqsonce/dedup"

// Cause is how a message came to the dead-letter queue.
type Cause string

// The causes.
const (
	CauseRejected       Cause = "rejected"         // by a host: its handler returned Reject, or failed at its last try
	CauseReceivesUsedUp Cause = "receives_used_up" // moved by SQS: it was received maxReceiveCount times
	CauseSent           Cause = "sent"             // by somebody else, or by a host whose attributes had no room
)

// Causes returns all causes.
func Causes() []Cause { return []Cause{CauseRejected, CauseReceivesUsedUp, CauseSent} }

// State is what the record of a message's event says.
type State string

// The states. Those of records have the names of the dedup package.
const (
	StateUnknown   State = "unknown" // no record was found, or none was read: Message.Problem says which
	StateReleased        = State(dedup.StateReleased)
	StateRunning         = State(dedup.StateRunning)
	StateCrashed         = State(dedup.StateCrashed)
	StateCompleted       = State(dedup.StateCompleted)
	StateForeign         = State(dedup.StateForeign)
)

// states is the one table of what a state means, and of what to do with a message whose event is in it.
var states = []struct {
	state     State
	means, do string
}{
	{StateReleased, "failed; its next delivery runs it", "redrive it when the cause is mended"},
	{StateRunning, "a consumer is running it", "wait until it has ended, and look again"},
	{StateCrashed, "its consumer died, or lost its store, while it ran; the effect may have happened", "find out whether the effect happened: then complete the record, else free it and redrive"},
	{StateCompleted, "done: the delete failed, or a second copy", "delete it; nothing runs it again but a replay"},
	{StateForeign, "its record was written by a program that does not check ownership", "leave it to that program"},
	{StateUnknown, "its record was not found, or not read", "find out why its record is not known, and whether the event was done, before you redrive it"},
}

// States returns all states, in the order of the table.
func States() []State {
	out := make([]State, 0, len(states))
	for _, s := range states {
		out = append(out, s.state)
	}
	return out
}

// Means says in words what happened to an event in this state.
func (s State) Means() string { means, _ := s.row(); return means }

// Do says what to do with a message whose event is in this state, and with its record.
func (s State) Do() string { _, do := s.row(); return do }

func (s State) row() (means, do string) {
	for _, row := range states {
		if row.state == s {
			return row.means, row.do
		}
	}
	return "", ""
}
