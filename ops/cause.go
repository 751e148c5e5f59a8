package ops

import "github.com/sqsonce/sqsonce/internal/opsview"

// Cause is how a message came to the dead-letter queue.
type Cause string

// The causes.
const (
	CauseRejected       Cause = "rejected"         // by a host: its handler returned Reject, or failed at its last attempt
	CauseReceivesUsedUp Cause = "receives_used_up" // moved by SQS: it was received maxReceiveCount times
	CauseSent           Cause = "sent"             // by somebody else, or by a host whose attributes had no room
)

var causes = []Cause{CauseRejected, CauseReceivesUsedUp, CauseSent}

// StateUnknown is a [Message].State beside those of package dedup: no record was found, or none was read. Message.Problem says why.
const StateUnknown = opsview.StateUnknown
