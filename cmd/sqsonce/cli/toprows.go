package cli

import (
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
)

// snapshot is what top shows at one time, and the JSON of it. A figure that is not known is not there.
type snapshot struct {
	V       int          `json:"v"`
	At      time.Time    `json:"at"`
	Workers []*workerRow `json:"workers"`
	Queues  []*queueRow  `json:"queues"`
	Notes   []string     `json:"notes,omitempty"`
}

// workerRow is a worker of a process, or a process that has none or has not answered.
type workerRow struct {
	Name     string    `json:"name,omitempty"`
	URL      string    `json:"url"`
	Version  string    `json:"version,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Error    string    `json:"error,omitempty"`
	Queue    string    `json:"queue,omitempty"`
	QueueURL string    `json:"queue_url,omitempty"`
	State    string    `json:"state"` // "unknown": see Error
	Intake   string    `json:"intake,omitempty"`
	NotLive  string    `json:"not_live,omitempty"`
	NotReady string    `json:"not_ready,omitempty"`

	Done          *float64 `json:"done_per_second,omitempty"`
	Failed        *float64 `json:"failed_per_second,omitempty"`
	Received      *float64 `json:"received_per_second,omitempty"`
	Running       *float64 `json:"running,omitempty"`
	Concurrency   *float64 `json:"concurrency,omitempty"`
	InFlight      *float64 `json:"in_flight,omitempty"`
	Held          *float64 `json:"held,omitempty"`
	OldestRunning *float64 `json:"oldest_running_seconds,omitempty"`
	Stuck         *float64 `json:"stuck,omitempty"`
	LeasesLost    *float64 `json:"leases_lost,omitempty"`

	err error
}

func workerRows(workers []fleet.Worker, rates map[fleet.Of]fleet.Rate) []*workerRow {
	rows := []*workerRow{} // [] in JSON
	for _, w := range workers {
		if w.Err != nil {
			rows = append(rows, &workerRow{URL: w.URL, State: "unknown", Error: w.Err.Error(), err: w.Err})
			continue
		}
		process := workerRow{Name: w.Report.Name, URL: w.URL, Version: w.Report.Version, Started: w.Report.Started}
		if len(w.Report.Workers) == 0 {
			process.State = "no worker"
			rows = append(rows, &process)
		}
		for i, of := range w.Report.Workers {
			stat := func(name string) *float64 {
				if v, ok := of.Stats[name]; ok {
					return &v
				}
				return nil
			}
			row := process
			row.Queue, row.QueueURL, row.State, row.Intake = of.Queue, of.URL, of.State, of.Intake
			row.NotLive, row.NotReady = of.NotLive, of.NotReady
			row.Running, row.Concurrency = stat(fleet.RunningNow), stat(fleet.Concurrency)
			row.InFlight, row.Held = stat(fleet.InFlight), stat(fleet.Held)
			row.OldestRunning, row.Stuck, row.LeasesLost = stat(fleet.OldestRunning), stat(fleet.Stuck), stat(fleet.LeasesLost)
			if r, ok := rates[fleet.Of{URL: w.URL, Worker: i}]; ok {
				row.Done, row.Failed, row.Received = &r.Done, &r.Failed, &r.Received
			}
			rows = append(rows, &row)
		}
	}
	return rows
}

// why is what somebody should look at.
func (w *workerRow) why() string {
	var all []string
	add := func(what, text string) {
		if text != "" {
			all = append(all, what+text)
		}
	}
	add("", w.Error)
	add("not live: ", w.NotLive)
	add("not ready: ", w.NotReady)
	if w.Intake == "paused" {
		add("", "paused")
	}
	return strings.Join(all, "; ")
}

// queueRow is a queue with its dead-letter queue.
type queueRow struct {
	Queue    string    `json:"queue"`
	URL      string    `json:"url,omitempty"`
	Error    string    `json:"error,omitempty"`
	Visible  *int      `json:"visible,omitempty"`
	InFlight *int      `json:"in_flight,omitempty"`
	Delayed  *int      `json:"delayed,omitempty"`
	Oldest   *float64  `json:"oldest_seconds,omitempty"`
	OldestAt time.Time `json:"oldest_as_of,omitzero"`
	NoOldest string    `json:"oldest_unknown,omitempty"` // why
	Done     *float64  `json:"done_per_second,omitempty"`
	Change   *float64  `json:"change_per_second,omitempty"`
	EmptyIn  *float64  `json:"empty_in_seconds,omitempty"`
	DLQ      string    `json:"dlq,omitempty"`
	DLQURL   string    `json:"dlq_url,omitempty"`
	InDLQ    *int      `json:"dlq_messages,omitempty"` // hidden ones too: whoever lists them hides them
	DLQError string    `json:"dlq_error,omitempty"`

	named       bool // by a flag
	err, dlqErr error
}

func (q *queueRow) why() string {
	var all []string
	for _, p := range []pair{{"", q.Error}, {"DLQ: ", q.DLQError}, {"oldest: ", q.NoOldest}} {
		if p.value != "" {
			all = append(all, p.name+p.value)
		}
	}
	return strings.Join(all, "; ")
}
