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
	Limits     []Limit     `json:"limits,omitempty"`     // rules of limit.Limiter
	Relays     []Component `json:"relays,omitempty"`     // outbox.Relay
	Publishers []Component `json:"publishers,omitempty"` // fifo.Publisher

	Controls []Control `json:"controls,omitempty"` // control.Control, by consumer
}

// Control is what operators ask of a consumer, as a process knows it.
type Control struct {
	Consumer    string    `json:"consumer"`
	Paused      bool      `json:"paused,omitempty"`
	Concurrency int       `json:"concurrency,omitempty"` // 0: not limited
	By          string    `json:"by,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	Until       time.Time `json:"until,omitzero"`
	Read        time.Time `json:"read,omitzero"`   // when the state was last read
	Error       string    `json:"error,omitempty"` // why it was not read since
	Text        string    `json:"text"`            // the state in words
}

// Banner is a line about a consumer that is paused or limited; else it is empty.
func (c Control) Banner() string {
	if !c.Paused && c.Concurrency == 0 {
		return ""
	}
	return c.Consumer + " is " + c.Text
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

// Limit is a rule of a limiter.
type Limit struct {
	Component
	Plan    string     `json:"plan,omitempty"`    // such as "10/s"; "": it depends on the key
	Scope   string     `json:"scope,omitempty"`   // "fleet": its Counter is for all processes; "process"
	Longest []LimitKey `json:"longest,omitempty"` // the keys with the most waiting messages, with Options.Identifiers only
}

// LimitKey is a key of a rule.
type LimitKey struct {
	Key     string  `json:"key"`
	Waiting int64   `json:"waiting"`
	Running int64   `json:"running"`
	Paused  float64 `json:"paused_seconds,omitempty"` // until the end of its pause
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
