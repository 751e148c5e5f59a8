package ops

import (
	"cmp"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// Process is a process in which events crashed, with the events that it ran, as far as their records are known.
type Process struct {
	Name   string `json:"process"` // "": unknown, and perhaps several
	Events []Run  `json:"events"`  // in the order of their starts
}

// Run is the last run of an event.
type Run struct {
	Key     string            `json:"key"`
	Started time.Time         `json:"started_at,omitzero"`
	State   dedup.RecordState `json:"state"`
	Crashes int               `json:"crashes,omitempty"`
	Part    part              `json:"part"`
}

// part is what an event had to do with the end of its process, as far as records prove it.
type part string

// The parts.
const (
	partSuspect  part = "suspect"  // it started last, or up to startsApart earlier, and had not ended
	partInnocent part = "innocent" // its run had ended, or had not begun: the process released or completed its record
	partUnknown  part = "unknown"
)

// startsApart is more than the time between an acquire and its handler's start, which no record has, and between two clocks.
const startsApart = time.Second

// Processes groups records by the process of their last run, where at least one crashed. The newest process is the last one,
// before the events of which the process is not known.
func Processes(records []Record) (processes []Process) {
	crashed := map[string]bool{}
	for _, r := range records {
		if r.State == dedup.StateCrashed {
			crashed[r.Process] = true
		}
	}
	by, seen := map[string]int{}, map[string]bool{}
	for _, r := range records {
		if !crashed[r.Process] || seen[r.Key] || r.Process == "" && r.State != dedup.StateCrashed {
			continue
		}
		seen[r.Key] = true
		i, known := by[r.Process]
		if !known {
			i = len(processes)
			by[r.Process], processes = i, append(processes, Process{Name: r.Process})
		}
		processes[i].Events = append(processes[i].Events, Run{Key: r.Key, Started: r.Started, State: r.State, Crashes: r.Crashes, Part: partUnknown})
	}
	for _, p := range processes {
		p.judge()
	}
	slices.SortFunc(processes, func(a, b Process) int {
		if known := cmp.Compare(b.Name, "") - cmp.Compare(a.Name, ""); known != 0 {
			return known
		}
		return cmp.Or(a.last().Compare(b.last()), cmp.Compare(a.Name, b.Name))
	})
	return processes
}

// last is when the newest event started.
func (p Process) last() time.Time { return p.Events[len(p.Events)-1].Started }

// judge sorts the events, and says of each what is proven.
func (p Process) judge() {
	slices.SortFunc(p.Events, func(a, b Run) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Key, b.Key)) })
	if p.Name == "" {
		return
	}
	var last time.Time // of those that had not ended
	for i := range p.Events {
		switch e := &p.Events[i]; e.State {
		case dedup.StateReleased, dedup.StateCompleted:
			e.Part = partInnocent
		case dedup.StateCrashed, dedup.StateRunning:
			last = e.Started
		}
	}
	for i := range p.Events {
		if e := &p.Events[i]; e.Part == partUnknown && !e.Started.Before(last.Add(-startsApart)) {
			e.Part = partSuspect
		}
	}
}

// ShownProcess is a process as lists show it.
type ShownProcess struct {
	Process         // with the events that started last
	Earlier  int    // events that started before these
	Crashed  int    // of all events
	Suspects int    // of all events
	Suspect  string // the key of one
	Only     bool   // it is the only suspect, and the only crashed event. There may have been others: each change replaces an owner
}

const (
	mostProcesses = 10
	mostRuns      = 20
)

// Newest returns what lists show of processes: the last ones, and how many there are before them.
func Newest(all []Process) (newest []ShownProcess, earlier int) {
	earlier = max(0, len(all)-mostProcesses)
	for _, p := range all[earlier:] {
		s := ShownProcess{Process: p, Earlier: max(0, len(p.Events)-mostRuns)}
		for _, e := range p.Events {
			if e.State == dedup.StateCrashed {
				s.Crashed++
			}
			if e.Part == partSuspect {
				s.Suspects, s.Suspect, s.Only = s.Suspects+1, e.Key, e.State == dedup.StateCrashed
			}
		}
		s.Only = s.Only && s.Suspects == 1 && s.Crashed == 1
		s.Events = slices.Clone(p.Events[s.Earlier:])
		newest = append(newest, s)
	}
	return newest, earlier
}

// CrashedWith is the advice for an event of which one crash is known. It may have killed its process, or something else has.
func CrashedWith(key string) string {
	return key + " crashed with its process: if it may have killed the process, fix that first"
}

// AllRead reports whether the record of each message was read, or is missing. Where it is false, an event of a process may be unknown.
func AllRead(messages []*Message) bool {
	return !slices.ContainsFunc(messages, func(m *Message) bool { return m.Problem != nil && !m.noRecord() })
}

// RecordsOf returns what is shown of the records of messages.
func RecordsOf(messages []*Message) (records []Record) {
	for _, m := range messages {
		if m.Record != nil {
			records = append(records, NewRecord(*m.Record, m.State))
		}
	}
	return records
}
