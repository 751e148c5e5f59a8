package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

// feed sends the messages: all of them, or Config.Backlog of them and the rest while the contestant works.
func (s *server) feed(ctx context.Context) error {
	if s.cfg.FIFO {
		s.fed.Store(true)
		return nil // the contestant is its publisher
	}
	events := s.events()
	first := len(events)
	if s.cfg.Backlog > 0 {
		first = min(first, s.cfg.Backlog)
	}
	if err := s.send(ctx, events[:first]); err != nil {
		return err
	}
	if first == len(events) {
		s.fed.Store(true)
		return nil
	}
	go func() {
		// Without its messages the measurement ends at its time limit. The log line says why.
		if err := s.refill(ctx, events[first:]); err != nil {
			slog.Error("endpoint: the queue was not fed", "error", err)
		}
		s.fed.Store(true)
	}()
	return nil
}

// events are the events in the order they are sent. An event that is sent twice is sent again after fifty others.
func (s *server) events() []int {
	const behind = 50
	out := make([]int, 0, s.cfg.Events)
	for n := range s.cfg.Events {
		out = append(out, n)
		if r := s.cfg.Resend; r > 0 && n >= behind && (n-behind)%r == 0 {
			out = append(out, n-behind)
		}
	}
	return out
}

// refill sends events whenever the queue has space for a thousand below its backlog.
func (s *server) refill(ctx context.Context, events []int) error {
	const chunk = 1000
	for len(events) > 0 {
		n, err := s.depth(ctx)
		if err != nil {
			return err
		}
		if n > s.cfg.Backlog-chunk {
			time.Sleep(time.Millisecond)
			continue
		}
		k := min(chunk, len(events))
		if err := s.send(ctx, events[:k]); err != nil {
			return err
		}
		events = events[k:]
	}
	return nil
}

func (s *server) send(ctx context.Context, events []int) error {
	for len(events) > 0 {
		k := min(batchSize(s.cfg.BodySize), len(events))
		in := &sqs.SendMessageBatchInput{QueueUrl: aws.String(s.address.QueueURL)}
		for i, n := range events[:k] {
			e := sqstypes.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(job.Body(n, s.cfg.BodySize))}
			if s.cfg.EventIDs {
				e.MessageAttributes = map[string]sqstypes.MessageAttributeValue{
					sqsonce.AttrEventID:     text(job.EventID(n)),
					sqsonce.AttrEventSource: text("bench"),
				}
			}
			in.Entries = append(in.Entries, e)
		}
		out, err := s.direct.SendMessageBatch(ctx, in)
		if err != nil {
			return err
		}
		if len(out.Failed) > 0 {
			return fmt.Errorf("endpoint: SQS refused %d messages, the first with: %s", len(out.Failed), aws.ToString(out.Failed[0].Message))
		}
		events = events[k:]
	}
	return nil
}

// batchSize is how many messages with bodies of that many bytes a request can have: ten, or fewer within SQS's 1 MiB.
func batchSize(size int) int { return min(10, max(1, 1<<20/(size+1<<10))) }

func text(s string) sqstypes.MessageAttributeValue {
	return sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(s)}
}

// Function is a contestant that Lambda runs: its bootstrap, and the batch size of its event source mapping.
type Function struct {
	Bootstrap string   `json:"bootstrap"`
	Env       []string `json:"env"`
	BatchSize int      `json:"batchSize"`
}

// function invokes a bootstrap, one invocation at a time: job.Usage is then that of one process.
type function struct {
	mu sync.Mutex
	f  *runtimeapi.Function
}

// functionTimeout is far above what a batch takes.
const functionTimeout = time.Minute

// UsageEvent is an event without records, to which a bootstrap responds with its job.Usage.
const UsageEvent = `{"sqsonce-bench":"usage"}`

var errNoFunction = errors.New("endpoint: no function was configured or started")

func (f *function) invoke(ctx context.Context, event []byte) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.f.Invoke(ctx, event)
}

// warm starts the bootstrap's process and returns its ID. Cold starts are not measured.
func (s *server) warm(ctx context.Context) (any, error) {
	c := s.cfg.Function
	if c == nil {
		return nil, errNoFunction
	}
	f, err := runtimeapi.Start(ctx, c.Bootstrap, func(o *runtimeapi.Options) {
		o.Env, o.Timeout, o.Processes, o.MemorySize, o.Stderr, o.Stdout = c.Env, functionTimeout, 1, 1769, os.Stderr, os.Stderr
	})
	if err != nil {
		return nil, err
	}
	s.function = &function{f: f}
	if _, err := s.usage(ctx); err != nil {
		return nil, err
	}
	for _, pid := range f.PIDs() {
		return pid, nil
	}
	return nil, errNoFunction
}

// startMapping starts the event source mapping. It polls in memory, since Lambda's polling is not the function's cost.
func (s *server) startMapping(ctx context.Context) error {
	if s.function == nil {
		return errNoFunction
	}
	cfg := esm.Config{
		QueueURL: s.address.QueueURL, BatchSize: s.cfg.Function.BatchSize, MaximumConcurrency: 2,
		FunctionTimeout: functionTimeout, InvokerTimesOut: true, ReportBatchItemFailures: true,
	}
	if cfg.BatchSize > 10 {
		cfg.BatchingWindow = time.Second
	}
	go func() {
		if err := esm.Run(ctx, s.direct, cfg, s.function.invoke); err != nil {
			slog.Error("endpoint: the event source mapping has failed", "error", err)
		}
	}()
	return nil
}

func (s *server) usage(ctx context.Context) (job.Usage, error) {
	var u job.Usage
	if s.function == nil {
		return u, errNoFunction
	}
	raw, err := s.function.invoke(ctx, []byte(UsageEvent))
	if err != nil {
		return u, err
	}
	return u, json.Unmarshal(raw, &u)
}
