package esm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Client is what a mapping needs of SQS. *sqs.Client implements it.
//
// ChangeMessageVisibilityBatch is only called when Run stops, for messages that no invocation got: Lambda itself never
// changes a visibility timeout.
type Client interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

var _ Client = (*sqs.Client)(nil)

// Run is the event source mapping: it polls, invokes and deletes until ctx ends, and then returns nil. It first checks
// cfg as Lambda does when a mapping is created; the error joins one [*ConfigError] per bad field. It also returns an
// error if the queue cannot be looked up, or is deleted.
//
// When ctx ends no new invocation starts. A poll in flight ends by itself, what it brings is made visible again, and
// running invocations are waited for and their messages deleted. An invoker that ignored its deadline is not waited for.
func Run(ctx context.Context, c Client, cfg Config, invoke Invoker) error {
	cfg = cfg.withDefaults()
	fs, err := parseFilters(cfg.Filters)
	if err := errors.Join(cfg.check(), err); err != nil {
		return err
	}
	q, err := lookUp(ctx, c, cfg.QueueURL)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if err := checkVisibility(cfg, q); err != nil {
		return err
	}
	m := &mapping{client: c, cfg: cfg, queue: q, invoke: invoke, log: cfg.Logger.With("queue", q.arn)}
	m.deleter = deleter{client: c, url: q.url, log: m.log}
	receives := &counter{}
	if cfg.fifo() {
		m.groups = newGroups(receives)
	}
	visibility := receiveVisibility(cfg, q)
	m.visibility = cmp.Or(visibility, q.visibility)
	return m.run(ctx, &collector{
		client: c, cfg: cfg, queue: q, filters: fs, deleter: m.deleter, visibility: visibility, receives: receives,
	})
}

type mapping struct {
	client     Client
	cfg        Config
	queue      queue
	invoke     Invoker
	deleter    deleter
	groups     *groups       // nil on a standard queue
	visibility time.Duration // of a received message
	log        *slog.Logger
}

// Pauses after a receive that failed.
const (
	minPollPause = time.Second
	maxPollPause = 30 * time.Second
)

// run takes a slot, collects a batch for it, and hands it to a goroutine.
func (m *mapping) run(ctx context.Context, c *collector) error {
	var processing sync.WaitGroup
	defer processing.Wait()
	defer func() { m.release(ctx, c.rest) }()

	slots := make(chan struct{}, cmp.Or(m.cfg.MaximumConcurrency, defaultConcurrency))
	pause := minPollPause
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return nil
		case slots <- struct{}{}:
		}
		// If ctx ends now, what comes is released before it is invoked, as is a batch that is throttled then.
		records, err := c.next(ctx)
		switch {
		case isQueueGone(err):
			return err
		case err != nil:
			m.log.Warn("esm: receive failed", "error", err, "pause", pause)
			sleep(ctx, pause)
			pause = min(2*pause, maxPollPause)
			<-slots
		case len(records) == 0:
			pause = minPollPause
			<-slots
		default:
			pause = minPollPause
			turns := m.enter(records)
			processing.Go(func() {
				defer func() { <-slots }()
				m.process(ctx, turns, records)
			})
		}
	}
	return nil
}

func (m *mapping) enter(records []record) map[string]*turn {
	if m.groups == nil {
		return nil
	}
	return m.groups.enter(records)
}

// process invokes a batch and deletes what succeeded. What it does not delete comes back when its visibility timeout ends.
func (m *mapping) process(ctx context.Context, turns map[string]*turn, records []record) {
	if m.groups == nil {
		m.handle(ctx, records)
		return
	}
	left := records
	defer func() { m.groups.leave(turns, left) }()
	ready := m.groups.wait(turns, records)
	if held := len(records) - len(ready); held > 0 {
		m.log.Info("esm: messages behind a failed one of their group are left to their visibility timeout", "records", held)
	}
	gone := m.handle(ctx, ready)
	left = slices.DeleteFunc(slices.Clone(records), func(r record) bool {
		return slices.ContainsFunc(gone, func(g record) bool { return g.handle == r.handle })
	})
}

// handle returns the records it has deleted.
func (m *mapping) handle(ctx context.Context, records []record) (gone []record) {
	if len(records) == 0 {
		return nil
	}
	response, err := m.callUntil(ctx, records[0].at.Add(m.visibility), encodeEvent(records))
	switch {
	case errors.Is(err, errStopped):
		m.release(ctx, records)
		return nil
	case err != nil:
		m.log.Warn("esm: invocation failed; the whole batch is left to its visibility timeout", "error", err, "records", len(records))
		return nil
	}
	return m.deleter.delete(ctx, m.succeeded(records, response))
}

// isQueueGone: nothing can be received any more. Everything else may pass.
func isQueueGone(err error) bool {
	_, gone := errors.AsType[*sqstypes.QueueDoesNotExist](err)
	return gone
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// queue is what a mapping knows of its queue. Lambda checks a mapping when it is created; a visibility timeout that is
// changed while Run runs is not noticed.
type queue struct {
	url, arn, region string
	visibility       time.Duration
}

func lookUp(ctx context.Context, c Client, url string) (queue, error) {
	out, err := c.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(url),
		AttributeNames: []sqstypes.QueueAttributeName{
			sqstypes.QueueAttributeNameQueueArn, sqstypes.QueueAttributeNameVisibilityTimeout,
		},
	})
	if err != nil {
		return queue{}, fmt.Errorf("esm: queue attributes: %w", err)
	}
	arn := out.Attributes[string(sqstypes.QueueAttributeNameQueueArn)]
	parts := strings.Split(arn, ":") // arn:partition:sqs:region:account:name
	if len(parts) != 6 {
		return queue{}, fmt.Errorf("esm: queue attributes: QueueArn is %q", arn)
	}
	seconds, err := strconv.Atoi(out.Attributes[string(sqstypes.QueueAttributeNameVisibilityTimeout)])
	if err != nil {
		return queue{}, fmt.Errorf("esm: queue attributes: VisibilityTimeout: %w", err)
	}
	return queue{url: url, arn: arn, region: parts[3], visibility: time.Duration(seconds) * time.Second}, nil
}
