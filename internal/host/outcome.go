package host

import "github.com/sqsonce/sqsonce"

// Outcomes says of each outcome how it is counted and reported. The hosts have what they do with the messages that are not done.
var Outcomes = [...]struct {
	Metric  string // of emf
	Done    bool   // a success: the host deletes the message at once
	Line    string // the line that a host logs of a success
	Debug   string // the line that a host logs of a message that waits, and has not failed
	Ended   bool   // the host deletes the message
	Told    bool   // Options.OnError is called
	Failure bool   // the span of its handler is an error
}{
	sqsonce.OutcomeDone:        {Metric: "Done", Done: true, Ended: true},
	sqsonce.OutcomeSkipped:     {Metric: "Skipped", Done: true, Line: "message skipped", Ended: true},
	sqsonce.OutcomeFailed:      {Metric: "Failed", Told: true, Failure: true},
	sqsonce.OutcomeInProgress:  {Metric: "InProgress", Debug: "event in progress elsewhere"},
	sqsonce.OutcomeRejected:    {Metric: "Rejected", Ended: true, Told: true, Failure: true},
	sqsonce.OutcomeLeaseLost:   {Metric: "LeaseLost", Failure: true},
	sqsonce.OutcomeUnavailable: {Metric: "Unavailable", Told: true, Failure: true},
	sqsonce.OutcomeShutdown:    {Metric: "Shutdown"},
	sqsonce.OutcomeAbandoned:   {Metric: "Abandoned", Failure: true},
	sqsonce.OutcomeNotStarted:  {Metric: "NotStarted"},
	sqsonce.OutcomePostponed:   {Metric: "Postponed", Debug: "postponed"},
}

// Void reports whether an error ends its message as a success without an effect, as [sqsonce.Skip] does: the event is completed, and
// its record says why.
func Void(err error) bool { return err != nil && Outcomes[sqsonce.OutcomeOf(err).Kind].Done }
