// Package job is what the processes of a run exchange: the role of each process, the job of a contestant, its events, and
// what it used. Contestants written for Node read and write the same JSON.
package job

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
)

// Job is what a contestant has to do.
type Job struct {
	Contestant string `json:"contestant"`
	Endpoint   string `json:"endpoint"`
	QueueURL   string `json:"queueURL"`
	Table      string `json:"table"`
	// Slots is how many handlers run at once, or how many requests of a publisher are under way. InFlight is how many
	// messages are in flight, for contestants that have such a limit.
	Slots    int `json:"slots"`
	InFlight int `json:"inFlight"`
	// Visibility is the queue's visibility timeout in seconds.
	Visibility int `json:"visibility"`
	// Lease is the record lease in seconds, for contestants that have such an option. 0: their default.
	Lease int `json:"lease,omitempty"`
	// Handler is how long a handler takes, in milliseconds. A handler ignores its context.
	Handler int `json:"handler"`
	// Events is how many events there are, and Groups is in how many FIFO groups they are published.
	Events int `json:"events"`
	Groups int `json:"groups"`
	// Profile is the path of the CPU and allocation profiles of a Go contestant, without the extension. "": none.
	Profile string `json:"profile,omitempty"`
}

// VisibilityTime is the visibility timeout. 0: the contestant's default.
func (j Job) VisibilityTime() time.Duration { return time.Duration(j.Visibility) * time.Second }

// HandlerTime is how long a handler takes.
func (j Job) HandlerTime() time.Duration { return time.Duration(j.Handler) * time.Millisecond }

// A process of the bench reads its role from its environment, not from its arguments: Lambda starts bootstraps without
// arguments.
const (
	roleVariable = "SQSONCE_BENCH_ROLE"
	jobVariable  = "SQSONCE_BENCH_JOB"
)

// Environment returns the environment of a process with the given role and job.
func Environment(role string, what any) ([]string, error) {
	raw, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	return []string{roleVariable + "=" + role, jobVariable + "=" + string(raw)}, nil
}

// Role returns the role of this process, or "" for the process that the user started.
func Role() string { return os.Getenv(roleVariable) }

// Read returns the job of this process.
func Read() (Job, error) {
	var j Job
	if err := json.Unmarshal([]byte(os.Getenv(jobVariable)), &j); err != nil {
		return j, fmt.Errorf("%s: %w", jobVariable, err)
	}
	return j, nil
}

// Usage is what a contestant has used since the start signal, and what its handlers did.
type Usage struct {
	CPU     int64 `json:"cpu"`     // microseconds, user and system
	Mallocs int64 `json:"mallocs"` // heap objects; -1: not known
	Doubled int   `json:"doubled"` // events whose handler was started more than once
	Done    Bits  `json:"done"`    // events whose handler returned, or that the queue accepted from a publisher
}

// Bits is a set of events.
type Bits []byte

// NewBits returns an empty set for events 0 to n-1.
func NewBits(n int) Bits { return make(Bits, (n+7)/8) }

// Add adds event n to the set.
func (b Bits) Add(n int) { b[n/8] |= 1 << (n % 8) }

// Has reports whether event n is in the set.
func (b Bits) Has(n int) bool { return n/8 < len(b) && b[n/8]&(1<<(n%8)) != 0 }

// Meter holds what the process had used at the start signal: the start of a process is not measured.
type Meter struct {
	cpu     int64
	mallocs uint64
}

// StartMeter returns a meter that starts now.
func StartMeter() (Meter, error) {
	cpu, err := CPU()
	if err != nil {
		return Meter{}, err
	}
	return Meter{cpu: cpu, mallocs: mallocs()}, nil
}

// Read returns what the process has used since the start of m.
func (m Meter) Read() (Usage, error) {
	cpu, err := CPU() // first: reading the heap's counters stops the world
	if err != nil {
		return Usage{}, err
	}
	return Usage{CPU: cpu - m.cpu, Mallocs: int64(mallocs() - m.mallocs)}, nil
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// The body of an event is {"id":"0000042","pad":"..."}. The number is at a fixed position, so that reading it costs a
// contestant almost nothing: the bench measures the way of a message to its handler.
const (
	bodyHead   = `{"id":"`
	digits     = 7
	bodyMiddle = `","pad":"`
	bodyTail   = `"}`
	// SmallestBody is the smallest size of a body, in bytes.
	SmallestBody = len(bodyHead) + digits + len(bodyMiddle) + len(bodyTail)
)

// Body returns the body of event n. It has size bytes, or SmallestBody where size is less.
func Body(n, size int) string {
	return fmt.Sprintf("%s%0*d%s%s%s", bodyHead, digits, n, bodyMiddle, strings.Repeat("x", max(0, size-SmallestBody)), bodyTail)
}

// Number returns the number of the event in a body, or -1 where the body is not one of the bench.
func Number(body string) int {
	if len(body) < SmallestBody {
		return -1
	}
	n := 0
	for _, c := range []byte(body[len(bodyHead) : len(bodyHead)+digits]) {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// EventID is the ID that a producer gives event n. A second send of the event has the same ID.
func EventID(n int) string { return fmt.Sprintf("event-%0*d", digits, n) }

// Event is one event to be published.
type Event struct {
	N     int // its number: events happen in the order of their numbers
	Group int // its FIFO group
}

// Backlog returns the events of a publisher in the order they happened: bursts of one to four of a group, the groups in
// a mixed order that is the same for every contestant and round.
//
// Every group has the same number of events, or one more, and at no point of the backlog is a group far ahead of another.
// At the end of a publisher's run all groups then end together. With unequal groups the largest ones would be left, with
// one event in flight each, and the rate would depend on the sizes of the groups.
func Backlog(events, groups int) []Event {
	out := make([]Event, 0, events)
	sent := make([]int, groups)
	random := rand.New(rand.NewPCG(1, 2))
	for round := 0; len(out) < events; round++ {
		for _, group := range random.Perm(groups) {
			share := events / groups
			if group < events%groups {
				share++
			}
			// The lengths 1 to 4 take turns, so that each group has ten events in four rounds.
			burst := min(1+(round+group)%4, share-sent[group])
			for range burst {
				out = append(out, Event{N: len(out), Group: group})
			}
			sent[group] += burst
		}
	}
	return out
}

// The outbox in the endpoint's DynamoDB.
const (
	OutboxTable  = "outbox"
	OutboxName   = "bench"
	OutboxSource = "bench"
)

// outboxBody is the size of a body, in bytes: with its attributes the item has more than 1 KB.
const outboxBody = 1024

// OutboxGroup is the name of a group in the outbox.
func OutboxGroup(n int) string { return "group-" + strconv.Itoa(n) }

// OutboxEvent is an event as a producer puts it into the outbox.
func OutboxEvent(e Event) fifo.Event {
	return fifo.Event{ID: EventID(e.N), Group: OutboxGroup(e.Group), Body: Body(e.N, outboxBody)}
}
