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

// Run polls, invokes and deletes until ctx is cancelled, and then returns nil. It first checks cfg as Lambda does when you create
// a mapping, and the error of this check joins one for each bad field. Run also returns an error if it cannot read the attributes
// of the queue, or if the queue is deleted.
//
// When ctx is cancelled, Run stops starting invocations. It waits for the poll in flight and makes its messages visible again. It
// waits for running invocations and deletes the messages that succeeded. It does not wait for an invoker that ignored its
// deadline. Only such a stop changes visibility timeouts, which Lambda itself never does.
func Run(ctx context.Context, c *sqs.Client, cfg Config, invoke Invoker) error {
	cfg = cfg.withDefaults()
	fs, err := parseFilters(cfg.Filters)
	if err := errors.Join(cfg.check(), err); err != nil {
		return err
	}
	q, err := readQueue(ctx, c, cfg.QueueURL)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if err := checkVisibility(cfg, q); err != nil {
		return err
	}
	m := &mapping{client: c, cfg: cfg, queue: q, function: function{invoke, cfg.FunctionTimeout, cfg.InvokerTimesOut}, log: cfg.Logger.With("queue", q.arn)}
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
	client     *sqs.Client
	cfg        Config
	queue      queue
	function   function
	deleter    deleter
	groups     *groups       // nil on a standard queue
	visibility time.Duration // of a received message
	log        *slog.Logger
}

// Pauses after a failed receive; doubled with each failure.
const (
	minPollPause = time.Second
	maxPollPause = 30 * time.Second
)

// run collects a batch for every free slot, and processes each batch in a goroutine.
func (m *mapping) run(ctx context.Context, c *collector) error {
	var processing sync.WaitGroup
	defer processing.Wait()
	defer func() { m.release(ctx, c.remaining) }()

	slots := make(chan struct{}, cmp.Or(m.cfg.MaximumConcurrency, defaultConcurrency))
	pause := minPollPause
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return nil
		case slots <- struct{}{}:
		}
		// If ctx is cancelled now, process releases the batch without invoking it.
		records, err := c.next(ctx)
		switch {
		case isQueueDeleted(err):
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

// process invokes a batch and deletes the messages that succeeded. The others return when their visibility timeout ends.
func (m *mapping) process(ctx context.Context, turns map[string]*turn, records []record) {
	if m.groups == nil {
		m.invokeAndDelete(ctx, records)
		return
	}
	notDeleted := records
	defer func() { m.groups.leave(turns, notDeleted) }()
	ready := m.groups.wait(turns, records)
	if blocked := len(records) - len(ready); blocked > 0 {
		m.log.Info("esm: messages not invoked because an earlier message of their group failed; they return when their visibility timeout ends", "records", blocked)
	}
	deleted := m.invokeAndDelete(ctx, ready)
	notDeleted = slices.DeleteFunc(slices.Clone(records), func(r record) bool {
		return slices.ContainsFunc(deleted, func(d record) bool { return d.handle == r.handle })
	})
}

// invokeAndDelete returns the deleted records.
func (m *mapping) invokeAndDelete(ctx context.Context, records []record) (deleted []record) {
	if len(records) == 0 {
		return nil
	}
	response, err := m.callUntil(ctx, records[0].at.Add(m.visibility), encodeEvent(records))
	switch {
	case errors.Is(err, errStopped):
		m.release(ctx, records)
		return nil
	case err != nil:
		m.log.Warn("esm: invocation failed; the whole batch returns when its visibility timeout ends", "error", err, "records", len(records))
		return nil
	}
	return m.deleter.delete(ctx, m.succeeded(records, response))
}

func isQueueDeleted(err error) bool {
	_, deleted := errors.AsType[*sqstypes.QueueDoesNotExist](err)
	return deleted
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// queue is the attributes of the queue when Run started, as Lambda reads them when a mapping is created. Run does not see
// a later change of the visibility timeout.
type queue struct {
	url, arn, region string
	visibility       time.Duration
}

func readQueue(ctx context.Context, c *sqs.Client, url string) (queue, error) {
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
