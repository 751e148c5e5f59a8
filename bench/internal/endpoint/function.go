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

// Function is a contestant that Lambda runs: its bootstrap and the event source mapping before it.
type Function struct {
	Bootstrap string   `json:"bootstrap"`
	Env       []string `json:"env"`
	BatchSize int      `json:"batchSize"`
}

// function invokes one bootstrap, one invocation at a time: what it uses is that of one process.
type function struct {
	mu sync.Mutex
	f  *runtimeapi.Function
}

// functionTimeout is far above what a batch takes.
const functionTimeout = time.Minute

// UsageEvent asks a bootstrap for its job.Usage instead of handling records.
const UsageEvent = `{"sqsonce-bench":"usage"}`

var errNoFunction = errors.New("endpoint: has no function")

func (f *function) invoke(ctx context.Context, event []byte) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.f.Invoke(ctx, event)
}

// warm starts the bootstrap's process and returns its ID: a cold start is not what is measured.
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

// invoke starts the event source mapping. It polls in memory: how SQS is asked is Lambda's own business.
func (s *server) invoke(ctx context.Context) error {
	if s.function == nil {
		return errNoFunction
	}
	cfg := esm.Config{
		QueueURL: s.place.QueueURL, BatchSize: s.cfg.Function.BatchSize, MaximumConcurrency: 2,
		FunctionTimeout: functionTimeout, InvokerTimesOut: true, ReportBatchItemFailures: true,
	}
	if cfg.BatchSize > 10 {
		cfg.BatchingWindow = time.Second
	}
	go func() {
		if err := esm.Run(ctx, s.local, cfg, s.function.invoke); err != nil {
			slog.Error("bench: event source mapping", "error", err)
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
