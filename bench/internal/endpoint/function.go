package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

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
