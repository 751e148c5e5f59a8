// Package fault describes what goes wrong in the in-memory AWS, as data: a plan of rules, drawn or written down before a
// test runs, so that a failure prints and replays. memsqs and memdynamodb apply it and record what they did.
package fault

import "time"

// Plan is a list of rules. Each call takes the first rule that matches it.
type Plan struct {
	// Seed makes rules with a probability repeatable.
	Seed  uint64
	Rules []Rule
}

// Rule says what goes wrong with which call.
type Rule struct {
	// Op is the operation, such as "ReceiveMessage". "": any.
	Op string
	// Nth is the first call of Op that the rule takes, counted from 1; Times is how many calls in a row it takes.
	// Nth 0: by Prob. Times 0: one with Nth, without end with Prob.
	Nth, Times int
	// Prob is the chance of each call, 0 to 1.
	Prob float64
	// Do is what happens.
	Do Kind
	// After makes Error and Reset strike after the call had its effect instead of before.
	After bool
	// Code is the error code with Error and FailEntries. Default: the service's internal error.
	Code string
	// Entries are the positions, from 0, that FailEntries and DropEntries take of a batch, and Duplicate and ExpireEarly of
	// the messages received. Default: all of them.
	Entries []int
	// Delay is how long Delay holds the call back before its effect, and how much later Replay repeats it.
	Delay time.Duration
}

// Kind is what a rule does.
type Kind int

const (
	// Error answers with Code, before the effect or (After) instead of the reply.
	Error Kind = iota + 1
	// LoseReply lets the call have its effect and breaks the connection instead of answering.
	LoseReply
	// Reset breaks the connection before the effect. With After it is LoseReply.
	Reset
	// Delay holds the call back before its effect.
	Delay
	// FailEntries fails entries of a batch with Code and performs the others.
	FailEntries
	// DropEntries performs a batch and leaves Entries out of both lists of the answer.
	DropEntries
	// Replay performs the call, and performs the same request once more after Delay: a delayed copy of a packet.
	Replay
	// Duplicate delivers the received messages again at once (SQS).
	Duplicate
	// ExpireEarly ends the visibility timeout of the received messages at once (SQS).
	ExpireEarly
)

var kindNames = [...]string{"none", "Error", "LoseReply", "Reset", "Delay", "FailEntries", "DropEntries", "Replay", "Duplicate", "ExpireEarly"}

// String returns the kind's name.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

// Hits reports whether the rule names entry i of a batch.
func (r *Rule) Hits(i int) bool {
	if len(r.Entries) == 0 {
		return true
	}
	for _, e := range r.Entries {
		if e == i {
			return true
		}
	}
	return false
}

// Call is one call a service has answered.
type Call struct {
	Op      string
	Entries int     // of a batch; messages received; 1 otherwise
	Units   float64 // capacity units consumed (DynamoDB)
	Fault   *Rule   // the rule taken, nil for none
}
