package esm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// StreamConfig has the settings of an event source mapping on a DynamoDB stream, and the timeout of its function.
type StreamConfig struct {
	// StreamARN is the ARN of the stream. Use LatestStreamArn of the table.
	StreamARN string
	// BatchSize is the maximum number of records in one event.
	// Default: 100. Limits: 1 to 10,000.
	BatchSize int
	// BatchingWindow is how long a batch that is not full waits for more records.
	// Default: 0, the records of one read of the shard are a batch. Limits: whole seconds up to 300 s.
	BatchingWindow time.Duration
	// ParallelizationFactor is how many batches of a shard are invoked at once. The records of an item stay in order. Those of a
	// partition key do not, if it has several items.
	// Default: 1. Limits: 1 to 10.
	ParallelizationFactor int
	// FromLatest begins with the records that come after RunStream has found the shards.
	// Default: false, it begins with the oldest.
	FromLatest bool
	// BisectOnError divides a batch that failed as a whole, and invokes its halves one after the other. A division does not count
	// as a retry.
	// Default: false.
	BisectOnError bool
	// MaximumRetryAttempts is how often a failed batch is invoked again until its records are dropped. Negative: never.
	// Default: 0, as often as the records are young enough. Limits: at most 10,000.
	MaximumRetryAttempts int
	// MaximumRecordAge is how old a record is at most when it is invoked. Older records are dropped.
	// Default: 0, the 24 hours that a stream keeps a record. Limits: whole seconds from 60 s to 7 days.
	MaximumRecordAge time.Duration
	// ReportBatchItemFailures makes the mapping read batchItemFailures in the response. They are sequence numbers, and the lowest
	// is the checkpoint.
	// Default: false.
	ReportBatchItemFailures bool
	// Filters are filter criteria patterns, each a JSON object such as {"eventName":["INSERT"]}, for a whole record of the event.
	// The mapping skips records that don't match any of them.
	// Default: empty, all records are invoked. Limits: at most 10.
	Filters []string
	// FunctionTimeout is the timeout of the function. See [Config].
	// Default: 3 s. Limits: at most 90 min.
	FunctionTimeout time.Duration
	// OnDropped gets the sequence numbers of records that will not be invoked again, and the reason: they failed too often, or
	// are too old. records is empty for records that the stream no longer had when they were read. Lambda sends these to the
	// OnFailure destination. Several goroutines may call it at once.
	// Default: nil. Dropped records are always logged as warnings, too.
	OnDropped func(records []string, why string)
	// Logger logs function errors, failed reads and dropped records.
	// Default: slog.Default().
	Logger *slog.Logger
}

// Limits of https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-params.html
const (
	maxFactor    = 10
	maxRetries   = 10_000
	minRecordAge = time.Minute
	maxRecordAge = 7 * 24 * time.Hour
	streamKeeps  = 24 * time.Hour
)

func (c StreamConfig) withDefaults() StreamConfig {
	c.BatchSize = cmp.Or(c.BatchSize, 100)
	c.ParallelizationFactor = cmp.Or(c.ParallelizationFactor, 1)
	c.MaximumRecordAge = cmp.Or(c.MaximumRecordAge, streamKeeps)
	c.FunctionTimeout = cmp.Or(c.FunctionTimeout, 3*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// check checks all settings but the filters. The defaults are set.
func (c StreamConfig) check() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &configError{Field: field, Problem: fmt.Sprintf(format, args...), stream: true})
	}
	if part := strings.SplitN(c.StreamARN, ":", 6); len(part) < 6 || part[0] != "arn" || part[2] != "dynamodb" || !strings.Contains(part[5], "/stream/") {
		bad("StreamARN", "is %q; the ARN of a table's stream is required", c.StreamARN)
	}
	if c.BatchSize < 1 || c.BatchSize > maxBatchSize {
		bad("BatchSize", "is %d; 1 to 10,000 are allowed", c.BatchSize)
	}
	if c.BatchingWindow < 0 || c.BatchingWindow > maxWindow || c.BatchingWindow%time.Second != 0 {
		bad("BatchingWindow", "is %s; whole seconds up to 300 s are allowed", c.BatchingWindow)
	}
	if c.ParallelizationFactor < 1 || c.ParallelizationFactor > maxFactor {
		bad("ParallelizationFactor", "is %d; 1 to 10 are allowed", c.ParallelizationFactor)
	}
	if c.MaximumRetryAttempts > maxRetries {
		bad("MaximumRetryAttempts", "is %d; at most 10,000 are allowed", c.MaximumRetryAttempts)
	}
	if c.MaximumRecordAge < minRecordAge || c.MaximumRecordAge > maxRecordAge || c.MaximumRecordAge%time.Second != 0 {
		bad("MaximumRecordAge", "is %s; whole seconds from 60 s to 7 days are allowed", c.MaximumRecordAge)
	}
	if c.FunctionTimeout < 0 || c.FunctionTimeout > maxTimeout {
		bad("FunctionTimeout", "is %s; more than 0 and at most 90 min are allowed", c.FunctionTimeout)
	}
	if len(c.Filters) > maxFilters {
		bad("Filters", "has %d patterns; at most 10 are allowed", len(c.Filters))
	}
	return errors.Join(errs...)
}

// recordKeys are the members of a record. A pattern for another one would match no record, and all would be passed over.
var recordKeys = []string{"awsRegion", "dynamodb", "eventID", "eventName", "eventSource", "eventSourceARN", "eventVersion", "userIdentity", "$or"}

// parseRecordFilters parses the patterns for records of streams.
// https://docs.aws.amazon.com/lambda/latest/dg/with-ddb-filtering.html
func parseRecordFilters(sources []string) (filters, error) {
	var fs filters
	var errs []error
	for i, source := range sources {
		p, err := parseRecordFilter(source)
		if err != nil {
			errs = append(errs, &configError{Field: fmt.Sprintf("Filters[%d]", i), Problem: err.Error(), stream: true})
			continue
		}
		fs = append(fs, p)
	}
	return fs, errors.Join(errs...)
}

func parseRecordFilter(source string) (*pattern, error) {
	var top map[string]any
	if err := json.Unmarshal([]byte(source), &top); err != nil {
		return nil, fmt.Errorf("is not a JSON object: %w", err)
	}
	switch {
	case top == nil:
		return nil, errors.New("is null, not a JSON object")
	case len(top) == 0:
		return &pattern{}, nil
	}
	for key := range top {
		if !slices.Contains(recordKeys, key) {
			return nil, fmt.Errorf("has the key %q, which records of streams have not", key)
		}
	}
	return parsePattern("record", top)
}

// matchRecord reports whether the JSON of a record matches.
func (fs filters) matchRecord(record []byte) bool {
	if len(fs) == 0 {
		return true
	}
	var object map[string]any
	if err := json.Unmarshal(record, &object); err != nil {
		panic("esm: " + err.Error()) // unreachable: encodeStreamRecord has made it
	}
	return slices.ContainsFunc(fs, func(p *pattern) bool { return p.match(object, true) })
}
