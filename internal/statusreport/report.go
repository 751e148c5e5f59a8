// Package statusreport is the JSON of a status.Handler: the handler writes it, and the commands of sqsonce read it.
package statusreport

import "time"

// Version is the v of the JSON that a status.Handler answers with. Fields may be added to it; a reader ignores those that it does not know.
const Version = 1

// Probe is the JSON of /live and /ready.
type Probe struct {
	V       int           `json:"v"`
	OK      bool          `json:"ok"` // 200; else 503
	Workers []ProbeWorker `json:"workers"`
}

// ProbeWorker is a worker of a Probe.
type ProbeWorker struct {
	Queue  string `json:"queue"` // its name
	State  string `json:"state"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why it is not
}

// Report is the JSON of /stats.
type Report struct {
	V       int       `json:"v"`
	Name    string    `json:"name"`
	Version string    `json:"version,omitempty"` // of the program
	Started time.Time `json:"started"`           // when status.Handler was called
	Now     time.Time `json:"now"`               // by the clock of this process

	Workers    []Worker    `json:"workers,omitempty"`
	Consumers  []Component `json:"consumers,omitempty"`  // dedup.Once, by consumer
	Stores     []Component `json:"stores,omitempty"`     // dynamostore.Store
	Relays     []Component `json:"relays,omitempty"`     // outbox.Relay
	Publishers []Component `json:"publishers,omitempty"` // fifo.Publisher
}

// Worker is a worker of one queue.
type Worker struct {
	Queue    string             `json:"queue"`               // its name
	URL      string             `json:"url,omitempty"`       // with Options.Identifiers only
	State    string             `json:"state"`               // new, running, stopping, ended
	NotLive  string             `json:"not_live,omitempty"`  // why /live is 503
	NotReady string             `json:"not_ready,omitempty"` // why /ready is 503
	Intake   string             `json:"intake"`              // open, full, paused; "" unless it is running
	Options  map[string]float64 `json:"options"`             // those in force; times in seconds, 0: none
	Stats    Stats              `json:"stats"`
}

// Component is anything else that counts.
type Component struct {
	Name  string `json:"name"`
	Stats Stats  `json:"stats"`
}

// Stats are counters and gauges by their names. Package status makes them of the fields of the components' Stats, of which the tag help says
// what each means.
type Stats map[string]float64

// RunningReport is the JSON of /running.
type RunningReport struct {
	V       int       `json:"v"`
	Now     time.Time `json:"now"`
	Total   int       `json:"total"`   // handlers that run, also those that are not listed
	Running []Running `json:"running"` // the oldest first, at most 1,000
}

// Running is a handler that runs.
type Running struct {
	Queue     string  `json:"queue"`
	MessageID string  `json:"message_id"`
	Key       string  `json:"key,omitempty"`   // of the event, without the consumer; with Options.Identifiers only
	Group     string  `json:"group,omitempty"` // the same
	Receives  int     `json:"receives"`
	Seconds   float64 `json:"seconds"`       // since it began
	Lease     float64 `json:"lease_seconds"` // for so long SQS hides the message at least; 0 or less: no longer
	Stuck     bool    `json:"stuck"`
}
