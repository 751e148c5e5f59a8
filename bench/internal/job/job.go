// Package job is what the processes of a run tell each other: which process does what, the events, and what became of
// them. Contestants written for Node read and write the same JSON.
package job

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// A process of the bench knows its part by its environment, not by its arguments: Lambda starts bootstraps without any.
const (
	roleVariable = "SQSONCE_BENCH_ROLE"
	jobVariable  = "SQSONCE_BENCH_JOB"
)

// Job is what a contestant has to do.
type Job struct {
	Contestant string `json:"contestant"`
	Endpoint   string `json:"endpoint"`
	QueueURL   string `json:"queueURL"`
	Table      string `json:"table"`
	// Slots is how many handlers run at once, or requests of a publisher; InFlight how many messages are received and not
	// yet deleted, for contestants that have such a limit.
	Slots    int `json:"slots"`
	InFlight int `json:"inFlight"`
	// Visibility is the queue's visibility timeout in seconds.
	Visibility int `json:"visibility"`
	// Lease is that of a record, in seconds, for contestants that have such an option. 0: their default.
	Lease int `json:"lease,omitempty"`
	// Handler is how long a handler takes, in milliseconds. It ignores its context.
	Handler int `json:"handler"`
	// Events is how many there are; Groups is in how many FIFO groups they are published.
	Events int `json:"events"`
	Groups int `json:"groups"`
	// Profile is where a Go contestant writes its CPU and allocation profiles, without the extension. "": nowhere.
	Profile string `json:"profile,omitempty"`
}

// VisibilityTime is the visibility timeout; 0 is the default of whoever is asked.
func (j Job) VisibilityTime() time.Duration { return time.Duration(j.Visibility) * time.Second }

// HandlerTime is how long a handler takes.
func (j Job) HandlerTime() time.Duration { return time.Duration(j.Handler) * time.Millisecond }

// Usage is what a contestant has used since it began, and what its handlers did.
type Usage struct {
	CPU     int64 `json:"cpu"`     // microseconds, user and system
	Mallocs int64 `json:"mallocs"` // heap objects; -1: not known
	Doubled int   `json:"doubled"` // events whose handler was started more than once
	Done    Bits  `json:"done"`    // events whose handler returned, or that were accepted from a publisher
}

// Bits is a set of events.
type Bits []byte

// NewBits holds n events.
func NewBits(n int) Bits { return make(Bits, (n+7)/8) }

// Add puts event n into the set.
func (b Bits) Add(n int) { b[n/8] |= 1 << (n % 8) }

// Has reports whether event n is in the set.
func (b Bits) Has(n int) bool { return n/8 < len(b) && b[n/8]&(1<<(n%8)) != 0 }

// Environment is the environment of a process with the given role.
func Environment(role string, what any) ([]string, error) {
	raw, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	return []string{roleVariable + "=" + role, jobVariable + "=" + string(raw)}, nil
}

// Role returns the role of this process, "" for the one that the user started.
func Role() string { return os.Getenv(roleVariable) }

// Read decodes what the process has to do.
func Read[T any]() (T, error) {
	var v T
	if err := json.Unmarshal([]byte(os.Getenv(jobVariable)), &v); err != nil {
		return v, fmt.Errorf("%s: %w", jobVariable, err)
	}
	return v, nil
}
