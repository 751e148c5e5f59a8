// Package fault describes the faults that memsqs and memdynamodb inject, as data. A test draws or writes a plan of rules
// before it runs, so that a failure can be printed and repeated. The services apply the plan and record their calls.
package fault

import "time"

// Plan is a list of rules. The first rule that matches a call applies to it.
type Plan struct {
	// Seed makes rules with a probability repeatable. Default: 0.
	Seed  uint64
	Rules []Rule
}

// Rule is a fault and the calls that it applies to.
type Rule struct {
	// Op is the operation, such as "ReceiveMessage". A service panics for an operation that it does not have, because the rule
	// would never apply and the test would not prove anything.
	// Default: any.
	Op string
	// Nth is the first call of Op that the rule applies to, counted from 1. Times is the maximum number of calls that the rule
	// applies to. With Nth these are consecutive calls.
	// Default: Nth 0, Prob selects the calls. Times: one call with Nth, unlimited with Prob.
	Nth, Times int
	// Prob is the probability that the rule applies to a call, if Nth is 0. To switch a rule off, leave it out of the plan.
	// Default: 1, always. Limits: 0 to 1.
	Prob float64
	// Do is the fault.
	Do Kind
	// After makes Error, Reset and Delay happen after the effect of the call instead of before. A response that is delayed after
	// the effect keeps its Date.
	// Default: false.
	After bool
	// Code is the error code for Error and FailEntries.
	// Default: the service's internal error.
	Code string
	// Entries are positions, from 0. For FailEntries and DropEntries they are positions of the entries in the batch, for
	// Duplicate and ExpireEarly of the messages received, and for HalfApplied of the actions that are applied late.
	// Default: all.
	Entries []int
	// Delay is a time that depends on the kind. For the kind Delay it is the time before the effect of the call, or after it. For
	// Replay it is the time until the repetition. For HalfApplied it is the most that an action is late, and each action draws
	// its own time.
	// Default: 0.
	Delay time.Duration
	// Delays are for HalfApplied the lateness of each action, by its position. Actions beyond the end of Delays are not late.
	// Default: drawn from 0 to Delay.
	Delays []time.Duration
}

// Kind is a kind of fault.
type Kind int

const (
	// Error returns the error Code, without the effect of the call or, with After, after it.
	Error Kind = iota + 1
	// LoseReply performs the call and breaks the connection instead of sending the response.
	LoseReply
	// Reset breaks the connection before the effect. With After it is the same as LoseReply.
	Reset
	// Delay delays the call before its effect or, with After, its response.
	Delay
	// FailEntries fails entries of a batch with Code and performs the others.
	FailEntries
	// DropEntries performs a batch and omits Entries from both lists of the response.
	DropEntries
	// Replay performs the call, and performs the same request once more after Delay, like a copy of it that the network
	// delayed.
	Replay
	// Duplicate makes the received messages visible again at once, as second copies (SQS).
	Duplicate
	// ExpireEarly ends the visibility timeout of the received messages at once (SQS).
	ExpireEarly
	// HalfApplied applies the actions of a TransactWriteItems one by one after the transaction was decided (DynamoDB). The call
	// is answered when it is decided, or with After when all of it is applied. Op must be TransactWriteItems. Set Delay or
	// Delays, because the rule would not have an effect without them.
	HalfApplied
)

var kindNames = [...]string{"none", "Error", "LoseReply", "Reset", "Delay", "FailEntries", "DropEntries", "Replay", "Duplicate", "ExpireEarly", "HalfApplied"}

// String returns the kind's name.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

// Call is a completed call of a service.
type Call struct {
	Op      string
	Entries int     // number of entries of a batch or of messages received, 1 for other calls
	Units   float64 // capacity units consumed (DynamoDB)
	Fault   *Rule   // the rule that applied, or nil
}
