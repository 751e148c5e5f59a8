// Package endpoint is the process that every contestant of a run talks to: SQS and DynamoDB in memory behind a socket,
// each answer late by the same time, its connections and requests counted. Each measurement has one of its own.
package endpoint

import (
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Table is the name of the idempotency table.
const Table = "records"

// Config is what an endpoint serves.
type Config struct {
	// Latency is added to every request, long polls included.
	Latency time.Duration `json:"latency"`
	// FIFO makes the queue one.
	FIFO bool `json:"fifo"`
	// Visibility is the queue's visibility timeout in seconds.
	Visibility int `json:"visibility"`
	// Events is how many messages the queue gets before the contestant begins; BodySize the size of their bodies.
	Events   int `json:"events"`
	BodySize int `json:"bodySize"`
	// Backlog bounds how many messages are in the queue at once: the rest is sent while the contestant works.
	// 0: all are there from the beginning.
	Backlog int `json:"backlog,omitempty"`
	// Hold sends them when the endpoint is told to.
	Hold bool `json:"hold,omitempty"`
	// EventIDs gives the messages the attributes event-id and event-source.
	EventIDs bool `json:"eventIDs,omitempty"`
	// Resend sends every so-manieth event a second time, as a producer does that had no answer. 0: none.
	Resend int `json:"resend,omitempty"`
	// Duplicates is the chance that a receive leaves a copy of the message in the queue.
	Duplicates float64 `json:"duplicates,omitempty"`
	// Faults is what goes wrong.
	Faults fault.Plan `json:"faults"`
	// Function is what the endpoint invokes as Lambda would. nil: the contestant polls by itself.
	Function *Function `json:"function,omitempty"`
}

// Place is where an endpoint is.
type Place struct {
	URL      string `json:"url"`
	QueueURL string `json:"queueURL"`
}

// State is what an endpoint has seen so far, and what is left in its queue.
type State struct {
	Connections      int64   `json:"connections"`
	SQSRequests      int64   `json:"sqsRequests"`
	DynamoDBRequests int64   `json:"dynamodbRequests"`
	WriteUnits       float64 `json:"writeUnits"`
	// Left are the messages in the queue that were received at least once.
	Left []Left `json:"left"`
}

// Left is a message that was received and is still there.
type Left struct {
	Event    int  `json:"event"`
	InFlight bool `json:"inFlight"`
}

// Emptied says whether the queue is empty, since when, and what CPU time, in microseconds, the endpoint had for it.
type Emptied struct {
	Empty bool      `json:"empty"`
	At    time.Time `json:"at"`
	CPU   int64     `json:"cpu"`
}

// Order is what the queue of a publisher holds.
type Order struct {
	// Inverted counts messages behind a later one of their group.
	Inverted int `json:"inverted"`
	// Doubled counts events that are in the queue more than once, Missing those that are not.
	Doubled int `json:"doubled"`
	Missing int `json:"missing"`
}
