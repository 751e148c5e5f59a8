// Package endpoint is the process that a contestant sends its requests to: SQS and DynamoDB in memory behind a socket.
// Every request is delayed by the same time; connections and requests are counted. Each measurement has a new endpoint.
package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime/debug"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/pipe"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Table is the name of the DynamoDB table for records.
const Table = "records"

// Config is what an endpoint serves.
type Config struct {
	// Latency is added to every request, long polls included.
	Latency time.Duration `json:"latency"`
	// FIFO makes the queue a FIFO queue. Its messages come from the contestant.
	FIFO bool `json:"fifo"`
	// Visibility is the queue's visibility timeout in seconds.
	Visibility int `json:"visibility"`
	// Events is how many events are sent to the queue, BodySize the size of their bodies in bytes.
	Events   int `json:"events"`
	BodySize int `json:"bodySize"`
	// Backlog is the most messages that are in the queue at once: the rest is sent while the contestant works.
	// 0: all are sent before the contestant starts.
	Backlog int `json:"backlog,omitempty"`
	// FeedLater sends the messages at the call "feed", not at the start.
	FeedLater bool `json:"feedLater,omitempty"`
	// EventIDs gives the messages the attributes event-id and event-source.
	EventIDs bool `json:"eventIDs,omitempty"`
	// Resend sends every Resend-th event twice, as a producer does whose first send got no response. 0: none.
	Resend int `json:"resend,omitempty"`
	// Duplicates is the probability that a receive leaves a copy of its message in the queue.
	Duplicates float64 `json:"duplicates,omitempty"`
	// OutboxGroups is in how many groups the events are in an outbox, from which the contestant publishes. 0: there is none.
	OutboxGroups int `json:"outboxGroups,omitempty"`
	// Faults are injected into SQS.
	Faults fault.Plan `json:"faults"`
	// Function is what the endpoint invokes as Lambda would. nil: the contestant polls the queue itself.
	Function *Function `json:"function,omitempty"`
}

// Address is how a contestant reaches an endpoint.
type Address struct {
	URL      string `json:"url"`
	QueueURL string `json:"queueURL"`
}

var errNotStarted = errors.New("endpoint: not started")

// Serve is the main function of an endpoint's process. It serves these calls until in ends:
//
//	start    starts the servers by a Config, feeds the queue, and returns the Address
//	feed     sends the messages, where Config.FeedLater is set
//	await    waits until the queue is empty, for a time.Duration at most, and returns an Emptied
//	state    returns the State
//	order    returns the Order
//	warm     starts the function's process and returns its ID
//	mapping  starts the event source mapping
//	usage    returns the job.Usage of the function
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	// The endpoint shares the contestant's CPUs, which AWS would not: a larger heap gives some of that time back.
	debug.SetGCPercent(400)
	var s *server
	started := func(h func(json.RawMessage) (any, error)) pipe.Handler {
		return func(with json.RawMessage) (any, error) {
			if s == nil {
				return nil, errNotStarted
			}
			return h(with)
		}
	}
	return pipe.Serve(in, out, map[string]pipe.Handler{
		"start": func(with json.RawMessage) (any, error) {
			var cfg Config
			if err := json.Unmarshal(with, &cfg); err != nil {
				return nil, err
			}
			var err error
			if s, err = start(ctx, cfg); err != nil {
				return nil, err
			}
			return s.address, nil
		},
		"feed":    started(func(json.RawMessage) (any, error) { return nil, s.feed(ctx) }),
		"await":   started(func(with json.RawMessage) (any, error) { return s.awaitEmpty(ctx, with) }),
		"state":   started(func(json.RawMessage) (any, error) { return s.state(), nil }),
		"order":   started(func(json.RawMessage) (any, error) { return s.order(), nil }),
		"warm":    started(func(json.RawMessage) (any, error) { return s.warm(ctx) }),
		"mapping": started(func(json.RawMessage) (any, error) { return nil, s.startMapping(ctx) }),
		"usage":   started(func(json.RawMessage) (any, error) { return s.usage(ctx) }),
	})
}
