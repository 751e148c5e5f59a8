package esm

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Config has the settings of an event source mapping, and the timeout of its function.
type Config struct {
	// QueueURL is the queue. The suffix .fifo makes it a FIFO queue.
	QueueURL string
	// BatchSize is the maximum number of records in one event. Above 10 it needs a BatchingWindow. A FIFO queue allows at most
	// 10.
	// Default: 10. Limits: 1 to 10,000.
	BatchSize int
	// MaximumConcurrency is the maximum number of invocations at once.
	// Default: 1,250, the number to which Lambda scales a mapping. Limits: 2 to 1,000.
	MaximumConcurrency int
	// BatchingWindow is how long a batch that is not full waits for more messages, counted from its first one. The mapping checks
	// it after each receive, and a receive waits for whole seconds, so a batch may be invoked up to a second later (on Lambda up
	// to 20 s).
	// Default: 0, each receive is a batch. Limits: whole seconds up to 300 s, standard queues only.
	BatchingWindow time.Duration
	// FunctionTimeout is the timeout of the function, and the deadline of an invocation's context. If the invoker has
	// not returned by then, the batch fails and Run doesn't wait for the invoker any longer.
	// Default: 3 s. Limits: at most 90 min, and at most the visibility timeout of the queue. Lambda allows more than 15
	// min on Managed Instances only, which the mapping can't check.
	FunctionTimeout time.Duration
	// InvokerTimesOut says that the Invoker itself ends an invocation after FunctionTimeout. The Invoker of runtimeapi does so.
	// It counts from when the function gets the event, without the start of the process. The context then has no deadline, and
	// Run waits until the invoker returns.
	// Default: false.
	InvokerTimesOut bool
	// ReportBatchItemFailures makes the mapping read batchItemFailures in the response.
	// Default: false.
	ReportBatchItemFailures bool
	// Filters are filter criteria patterns, each a JSON object such as {"body":{"type":["order"]}}. The mapping deletes a message
	// that doesn't match any of them.
	// Default: empty, all messages are invoked. Limits: at most 10.
	Filters []string
	// Wait is how long one receive waits for a message. A stop may last as long, in addition to the running invocations, because
	// a poll in flight is never cancelled.
	// Default: 20 s. Limits: whole seconds from 1 to 20.
	Wait time.Duration
	// Logger logs function errors, and responses that would lose messages on AWS.
	// Default: slog.Default().
	Logger *slog.Logger
}

// configError is a setting that Lambda refuses when a mapping is created. Run and RunStream return one per bad field, joined.
type configError struct {
	Field   string // "BatchSize"
	Problem string

	stream bool // of a StreamConfig
}

func (e *configError) Error() string {
	if e.stream {
		return "esm: StreamConfig." + e.Field + ": " + e.Problem
	}
	return "esm: Config." + e.Field + ": " + e.Problem
}

// Limits of https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-parameters.html and of Lambda's API reference.
const (
	maxBatchSize       = 10_000
	maxUnwindowed      = 10
	maxFIFOBatch       = 10
	maxWindow          = 300 * time.Second
	maxTimeout         = 90 * time.Minute // on Managed Instances, else 15 min
	maxFilters         = 10
	minConcurrency     = 2
	maxConcurrency     = 1_000
	defaultConcurrency = 1_250
)

func (c Config) withDefaults() Config {
	c.BatchSize = cmp.Or(c.BatchSize, 10)
	c.FunctionTimeout = cmp.Or(c.FunctionTimeout, 3*time.Second)
	c.Wait = cmp.Or(c.Wait, 20*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

func (c Config) fifo() bool { return strings.HasSuffix(c.QueueURL, ".fifo") }

// check checks all settings that do not depend on the queue. The defaults are set.
func (c Config) check() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &configError{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	if c.QueueURL == "" {
		bad("QueueURL", "is required")
	}
	switch {
	case c.BatchSize < 1 || c.BatchSize > maxBatchSize:
		bad("BatchSize", "is %d; 1 to 10,000 are allowed", c.BatchSize)
	case c.fifo() && c.BatchSize > maxFIFOBatch:
		bad("BatchSize", "is %d; a FIFO queue allows at most 10", c.BatchSize)
	case c.BatchSize > maxUnwindowed && c.BatchingWindow == 0:
		bad("BatchSize", "is %d; above 10 the batching window must be greater than 0", c.BatchSize)
	}
	if c.MaximumConcurrency != 0 && (c.MaximumConcurrency < minConcurrency || c.MaximumConcurrency > maxConcurrency) {
		bad("MaximumConcurrency", "is %d; 2 to 1,000 are allowed", c.MaximumConcurrency)
	}
	switch {
	case c.BatchingWindow < 0 || c.BatchingWindow > maxWindow || c.BatchingWindow%time.Second != 0:
		bad("BatchingWindow", "is %s; whole seconds up to 300 s are allowed", c.BatchingWindow)
	case c.fifo() && c.BatchingWindow > 0:
		bad("BatchingWindow", "is not supported on FIFO queues")
	}
	if c.FunctionTimeout < 0 || c.FunctionTimeout > maxTimeout {
		bad("FunctionTimeout", "is %s; more than 0 and at most 90 min are allowed", c.FunctionTimeout)
	}
	if c.Wait < time.Second || c.Wait > 20*time.Second || c.Wait%time.Second != 0 {
		bad("Wait", "is %s; whole seconds from 1 s to 20 s are allowed", c.Wait)
	}
	if len(c.Filters) > maxFilters {
		bad("Filters", "has %d patterns; at most 10 are allowed", len(c.Filters))
	}
	return errors.Join(errs...)
}

// checkVisibility returns an error where CreateEventSourceMapping returns an InvalidParameterValueException.
func checkVisibility(cfg Config, q queue) error {
	if q.visibility < cfg.FunctionTimeout {
		return &configError{
			Field:   "FunctionTimeout",
			Problem: fmt.Sprintf("queue visibility timeout: %s is less than function timeout: %s", q.visibility, cfg.FunctionTimeout),
		}
	}
	return nil
}

// receiveVisibility returns the visibility timeout for receives; 0 means the queue's own. A message may wait for the
// whole batching window before its invocation starts. If the queue's visibility timeout is shorter than window and
// function timeout together, Lambda receives with window + timeout + 30 s.
func receiveVisibility(cfg Config, q queue) time.Duration {
	if cfg.BatchingWindow+cfg.FunctionTimeout > q.visibility {
		// Rounded up to whole seconds.
		return (cfg.BatchingWindow + cfg.FunctionTimeout + 30*time.Second + time.Second - 1).Truncate(time.Second)
	}
	return 0
}
