// Package endpoint is the process that a contestant sends its requests to: SQS and DynamoDB in memory behind a socket.
// Every request is delayed by the same time; connections and requests are counted. Each measurement has a new endpoint.
package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/bench/internal/pipe"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
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

type server struct {
	cfg      Config
	sqs      *memsqs.Server
	dynamodb *memdynamodb.Server
	direct   *sqs.Client // in memory: neither delayed nor counted
	address  Address
	function *function

	connections, sqsRequests, dynamodbRequests atomic.Int64
	fed                                        atomic.Bool // everything was sent
}

// start listens, creates the queue and the table, and feeds the queue.
func start(ctx context.Context, cfg Config) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{cfg: cfg, address: Address{URL: "http://" + l.Addr().String()}}
	s.sqs = memsqs.New(func(o *memsqs.Options) {
		o.Seed, o.Faults, o.BaseURL, o.Duplicates = 1, cfg.Faults, s.address.URL, cfg.Duplicates
	})
	s.dynamodb = memdynamodb.New()
	s.direct = sqs.New(sqs.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("bench", "bench", ""),
		BaseEndpoint: aws.String(s.address.URL), HTTPClient: &http.Client{Transport: s.sqs},
	})
	if err := s.create(ctx); err != nil {
		return nil, err
	}
	h := &http.Server{Handler: s.count(localstack.Handler(s.sqs, s.dynamodb)), ConnState: s.connState}
	// It serves until the process exits. If it fails, every request of the contestant fails, and so does the measurement.
	go func() { _ = h.Serve(l) }()
	if cfg.FeedLater {
		return s, nil
	}
	return s, s.feed(ctx)
}

// create creates the queue and the table, or the outbox, as a client would. There is no dead-letter queue: a message that is received many
// times stays.
func (s *server) create(ctx context.Context) error {
	name, attributes := "jobs", map[string]string{}
	if s.cfg.Visibility > 0 {
		attributes[string(sqstypes.QueueAttributeNameVisibilityTimeout)] = strconv.Itoa(s.cfg.Visibility)
	}
	if s.cfg.FIFO {
		// High throughput mode: deduplication and throughput limit apply to each group, not to the queue.
		name, attributes["FifoQueue"], attributes["DeduplicationScope"] = "jobs.fifo", "true", "messageGroup"
		attributes["FifoThroughputLimit"] = "perMessageGroupId"
	}
	out, err := s.direct.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
	if err != nil {
		return err
	}
	s.address.QueueURL = aws.ToString(out.QueueUrl)
	ddb := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("bench", "bench", ""),
		BaseEndpoint: aws.String(s.address.URL), HTTPClient: &http.Client{Transport: s.dynamodb},
	})
	if s.cfg.OutboxGroups > 0 {
		return s.fillOutbox(ctx, ddb)
	}
	return dynamostore.CreateTable(ctx, ddb, Table)
}

// count counts requests and delays them. A client that cancels its request does not shorten the delay: the request still
// arrives, and the messages that it receives stay hidden.
func (s *server) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB") {
			s.dynamodbRequests.Add(1)
		} else {
			s.sqsRequests.Add(1)
		}
		time.Sleep(s.cfg.Latency)
		next.ServeHTTP(w, r)
	})
}

func (s *server) connState(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		s.connections.Add(1)
	}
}
