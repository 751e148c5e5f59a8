package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/plan"
	"github.com/sqsonce/sqsonce/localstack/esm"
)

// mapping is an event source mapping of the plan, with the settings that it has now.
type mapping struct {
	fs *functions
	f  *function

	runs sync.WaitGroup // polls, and updates under way

	mu sync.Mutex
	plan.Mapping
	modified time.Time
	problem  string             // why it does not poll, "" if it does
	cancel   context.CancelFunc // nil: it does not run
	ended    chan struct{}      // of the run
	updating bool
	stopped  bool // for good
}

// Wait of a poll. A stop waits for a poll, which on Lambda takes up to 20 s.
const pollWait = time.Second

// initTime is how long a process may take to start, before the timeout of its first invocation begins.
const initTime = 15 * time.Second

// retryPause is the time until a mapping looks again for a queue or a stream that was deleted or disabled.
const retryPause = time.Second

func (m *mapping) queueConfig(p plan.Mapping, log *slog.Logger) esm.Config {
	w := m.fs.w
	return esm.Config{
		QueueURL: w.o.home().QueueURL(w.url, p.QueueName()), BatchSize: p.BatchSize, BatchingWindow: p.Window,
		MaximumConcurrency: p.MaximumConcurrency, FunctionTimeout: m.f.Timeout, InvokerTimesOut: true, Wait: pollWait,
		ReportBatchItemFailures: p.ReportBatchItemFailures, Filters: p.Filters, Logger: log,
	}
}

func (m *mapping) streamConfig(p plan.Mapping, arn string, log *slog.Logger) esm.StreamConfig {
	c := esm.StreamConfig{
		StreamARN: arn, BatchSize: p.BatchSize, BatchingWindow: p.Window, ParallelizationFactor: p.ParallelizationFactor, FromLatest: p.FromLatest,
		BisectOnError: p.BisectOnError, MaximumRecordAge: p.MaximumRecordAge, ReportBatchItemFailures: p.ReportBatchItemFailures,
		Filters: p.Filters, FunctionTimeout: m.f.Timeout + initTime, Logger: log,
	}
	switch n := p.MaximumRetryAttempts; {
	case n != nil && *n == 0:
		c.MaximumRetryAttempts = -1
	case n != nil:
		c.MaximumRetryAttempts = *n
	}
	return c
}

// check returns the error of settings that Lambda refuses, as far as that does not depend on the queue.
func (m *mapping) check(p plan.Mapping) error {
	stopped, cancel := context.WithCancel(context.Background())
	cancel() // a run that is stopped checks its settings, and returns
	return m.poll(stopped, p, "arn:aws:dynamodb:::table/t/stream/checked")
}

// checkSource returns an error if there is nothing to poll. The visibility timeout is a reason that Lambda has too.
func (m *mapping) checkSource(ctx context.Context, p plan.Mapping) error {
	if m.f.process == nil {
		return nil
	}
	if table := p.TableName(); table != "" {
		_, err := m.fs.w.streamARN(ctx, table)
		return err
	}
	q := m.fs.w.sqsClient()
	url := m.queueConfig(p, nil).QueueURL
	out, err := q.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{"VisibilityTimeout"}})
	if err != nil {
		return err
	}
	if seconds, err := strconv.Atoi(out.Attributes["VisibilityTimeout"]); err != nil || time.Duration(seconds)*time.Second < m.f.Timeout {
		return fmt.Errorf("the queue's visibility timeout is %s s, and must not be less than the function's timeout, %s", out.Attributes["VisibilityTimeout"], m.f.Timeout)
	}
	return nil
}

func (m *mapping) poll(ctx context.Context, p plan.Mapping, streamARN string) error {
	log := slog.New(slog.NewTextHandler(m.f.out, nil))
	if p.QueueName() != "" {
		return esm.Run(ctx, m.fs.w.sqsClient(), m.queueConfig(p, log), m.f.invoke)
	}
	return esm.RunStream(ctx, m.fs.w.streamsClient(), m.streamConfig(p, streamARN, log), m.f.invoke)
}

// start begins to poll, unless the mapping is disabled or its function does not run.
func (m *mapping) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Disabled || m.stopped || m.f.process == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p, ended := m.Mapping, make(chan struct{})
	m.cancel, m.ended = cancel, ended
	m.runs.Go(func() {
		defer close(ended)
		m.run(ctx, p)
	})
}

// run polls until ctx is cancelled. It waits for a queue or a stream that was deleted, and for another stream after one that was disabled:
// on AWS such a mapping goes on when the source is there again. Any other error, such as a visibility timeout below the function's, ends
// localaws.
func (m *mapping) run(ctx context.Context, p plan.Mapping) {
	for ctx.Err() == nil {
		arn, err := m.pollSource(ctx, p)
		if err == nil || ctx.Err() != nil {
			return
		}
		m.setProblem(err.Error())
		if !sourceIsMissing(err) {
			m.fs.fail(fmt.Errorf("function %s: mapping of %s: %w", p.Function, p.Source, err))
			return
		}
		for there := false; !there; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(retryPause):
			}
			there = m.checkSource(ctx, p) == nil
			if table := p.TableName(); there && table != "" {
				now, err := m.fs.w.streamARN(ctx, table)
				there = err == nil && now != arn // a table keeps the ARN of a disabled stream
			}
		}
		m.setProblem("")
	}
}

func (m *mapping) setProblem(s string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s != "" {
		fmt.Fprintf(m.f.out, "localaws: the mapping of %s does not poll: %s\n", m.Source, s)
	}
	m.problem = s
}

// pollSource polls, and returns the ARN of the stream, "" for a queue.
func (m *mapping) pollSource(ctx context.Context, p plan.Mapping) (streamARN string, err error) {
	if table := p.TableName(); table != "" {
		if streamARN, err = m.fs.w.streamARN(ctx, table); err != nil {
			return "", err
		}
	}
	return streamARN, m.poll(ctx, p, streamARN)
}

func sourceIsMissing(err error) bool {
	_, queue := errors.AsType[*sqstypes.QueueDoesNotExist](err)
	_, table := errors.AsType[*ddbtypes.ResourceNotFoundException](err)
	_, stream := errors.AsType[*streamtypes.ResourceNotFoundException](err)
	return queue || table || stream || errors.Is(err, esm.ErrStreamEnded)
}

// stop ends the run, for which m.runs waits, and all later ones.
func (m *mapping) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	if m.cancel != nil {
		m.cancel()
	}
}

var errUpdating = errors.New("the mapping is being updated")

// update changes the settings. It returns when they are known to be valid. The mapping has them when its running invocations have ended.
// One update runs at a time, so that none is lost.
func (m *mapping) update(ctx context.Context, change func(*plan.Mapping) error) error {
	m.mu.Lock()
	if m.updating || m.stopped {
		m.mu.Unlock()
		return errUpdating
	}
	m.updating = true
	p := m.Mapping
	m.mu.Unlock()

	err := change(&p)
	if err == nil {
		err = m.check(p)
	}
	if err == nil && !p.Disabled {
		err = m.checkSource(ctx, p)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && m.stopped {
		err = errUpdating
	}
	if err != nil {
		m.updating = false
		return err
	}
	m.Mapping, m.modified = p, time.Now()
	if cancel, ended := m.cancel, m.ended; cancel != nil {
		cancel()
		m.runs.Go(func() { <-ended; m.updated() })
		return nil
	}
	m.runs.Go(m.updated)
	return nil
}

func (m *mapping) updated() {
	m.mu.Lock()
	m.updating, m.cancel, m.ended = false, nil, nil
	m.mu.Unlock()
	m.start()
}

// streamARN returns the ARN of the stream that a table has now.
func (w *world) streamARN(ctx context.Context, table string) (string, error) {
	out, err := w.dynamoClient().DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	switch {
	case err != nil:
		return "", err
	case out.Table.LatestStreamArn == nil:
		return "", fmt.Errorf("table %s has no stream", table)
	}
	return *out.Table.LatestStreamArn, nil
}

func (w *world) streamsClient() *dynamodbstreams.Client {
	return dynamodbstreams.New(dynamodbstreams.Options{Region: w.o.region, Credentials: aws.CredentialsProviderFunc(local), BaseEndpoint: &w.url})
}
