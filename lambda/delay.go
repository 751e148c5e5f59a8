package lambda

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

const (
	// minDelay is the shortest delay, counted from the visibility change. A delay can be used up by the other handlers of the
	// batch, or be 0 on request. With 0 a message would be received again at once, and spend its receives in milliseconds.
	minDelay = time.Second
	// callTimeout bounds a call of SQS, unless the deadline bounds it more. After a visibility change that took so long the host
	// sends no more.
	callTimeout = 5 * time.Second
	// changesAtOnce is how many calls change visibility timeouts at once. A process keeps so many idle connections to SQS.
	changesAtOnce = 10
	// maxDelay keeps a delay within the 12 h after the receive, the limit of SQS. The event does not tell when that
	// was: a batching window is at most 5 min, and an invocation at most 90 min, on Managed Instances. 5 min are left
	// for calls.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
	// https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
	maxDelay = 12*time.Hour - 100*time.Minute
)

// retryAt returns when a failed message should be visible again; zero for the end of its visibility timeout, and for an event
// in progress elsewhere: see retryInProgress.
func (v *invocation) retryAt(m *sqsonce.Message, err error) time.Time {
	if v.opts.Client == nil || errors.Is(err, sqsonce.ErrLeaseLost) {
		return time.Time{} // after a lost lease another delivery may own the message
	}
	var d time.Duration
	switch o := sqsonce.OutcomeOf(err); {
	case o.Kind == sqsonce.OutcomeUnavailable:
		d = host.UnavailableDelay(m.ReceiveCount, m.FirstReceivedAt)
	case o.Kind == sqsonce.OutcomeInProgress:
		return time.Time{}
	case o.Retry, o.Postpone:
		d = o.After
	default:
		d = v.backoff(m.ReceiveCount)
	}
	return time.Now().Add(d)
}

// retryInProgress is half the visibility timeout from now, doubled with each receive, and not before the other owner's lease
// is over. SQS counts each receive: while that owner renews its lease, the message must not reach maxReceiveCount.
//
// A message in its second receive has probably come back because its first owner has died: it waits for the end of that lease only,
// unless the second receive is the last one.
//
// It is called after the handlers, since it may ask SQS for the visibility timeout, which would keep a slot from others.
func (v *invocation) retryInProgress(ctx context.Context, receiveCount int, err error) time.Time {
	asked := sqsonce.OutcomeOf(err)
	var afterLease time.Duration
	if asked.Retry {
		afterLease = asked.After
	}
	a := v.attributes(ctx)
	half := a.visibility / 2
	switch {
	case half == 0 && !asked.Retry:
		return time.Time{}
	case half == 0:
		half = afterLease
	}
	if receiveCount == 2 && asked.Retry && a.maxReceives != 2 {
		half = 0
	}
	return time.Now().Add(max(host.Double(half, maxDelay, receiveCount), afterLease))
}

func (v *invocation) backoff(try int) (d time.Duration) {
	if err := host.Contain(func() error { return host.Recover(func() { d = v.opts.Backoff(try) }) }); err != nil {
		v.log.ErrorContext(v.ctx, "lambda: Options.Backoff failed, the default backoff is used", host.ErrorAttrs(err)...)
		d = host.DefaultBackoff(try)
	}
	return d
}

// delay changes the visibility timeouts of the failed messages. The results are final by now. A change that fails is
// logged, and its message is visible again when its visibility timeout ends.
func (v *invocation) delay(ctx context.Context, r results) {
	if v.opts.Client == nil || r.counts[failed] == 0 && !v.down.Load() {
		return
	}
	ctx, cancel := v.times.until(context.WithoutCancel(ctx), delaysEnd)
	defer cancel()
	entries := v.delays(ctx, r)
	if len(entries) == 0 {
		return
	}
	url, err := v.queueURL(ctx, v.records[0].QueueARN)
	if err != nil {
		v.log.WarnContext(ctx, "lambda: visibility not changed: the queue's URL is not known", "messages", len(entries), keyError, err)
		return
	}
	todo := filled(slices.Collect(slices.Chunk(entries, host.MaxBatch)))
	var overdue atomic.Bool // SQS did not answer a call in time
	var unchanged atomic.Int64
	var wg sync.WaitGroup
	for range min(changesAtOnce, len(todo)) {
		wg.Go(func() {
			for batch := range todo {
				switch {
				case overdue.Load() || ctx.Err() != nil:
					unchanged.Add(int64(len(batch)))
				case !v.changeVisibility(ctx, url, batch):
					overdue.Store(true)
				}
			}
		})
	}
	wg.Wait()
	if n := unchanged.Load(); n > 0 {
		v.log.WarnContext(ctx, "lambda: visibility not changed: the invocation's time ends, or SQS does not answer", "messages", n)
	}
}

type delayEntry struct {
	record int
	retry  time.Time
}

// delays returns the failed messages with a time for their retry. The messages behind one in its FIFO group get the same
// time: SQS delivers nothing of a group until all of its messages are visible again.
func (v *invocation) delays(ctx context.Context, r results) []delayEntry {
	// A message may be in the event twice. While a handler still runs for it, the failure of its copy must not make it visible.
	stillRuns := map[string]bool{}
	for i, s := range r.states {
		if s == abandoned {
			stillRuns[v.records[i].ID] = true
		}
	}
	var entries []delayEntry
	for _, chain := range v.chains {
		at, ok := v.lastFailed(chain, r)
		if !ok {
			continue
		}
		s := &v.slots[at]
		retry := s.retry
		if r.states[at] == notStarted {
			rec := &v.records[at]
			retry = time.Now().Add(host.UnavailableDelay(rec.receiveCount(), host.Millis(rec.Attributes.FirstReceivedAt)))
		} else if sqsonce.OutcomeOf(s.err).Kind == sqsonce.OutcomeInProgress {
			retry = v.retryInProgress(ctx, s.message.ReceiveCount, s.err)
		}
		if retry.IsZero() {
			continue
		}
		k, _ := v.known()
		retry = k.inTime(retry, v.sentAt(at))
		for _, i := range chain {
			if rec := &v.records[i]; !r.states[i].done() && rec.ReceiptHandle != "" && !stillRuns[rec.ID] {
				entries = append(entries, delayEntry{record: i, retry: retry})
			}
		}
	}
	return entries
}

// lastFailed returns the record of a chain that ended it: the last one that failed, as those before it are left to SQS; else the first
// one that was not started because of an outage.
func (v *invocation) lastFailed(chain []int, r results) (record int, ok bool) {
	for _, i := range slices.Backward(chain) {
		if r.states[i] == failed {
			return i, true
		}
	}
	at := slices.IndexFunc(chain, func(i int) bool { return r.states[i] == notStarted })
	if at < 0 || !v.down.Load() {
		return 0, false
	}
	return chain[at], true
}

// changeVisibility reports whether SQS answered in time, whatever the answer.
func (v *invocation) changeVisibility(ctx context.Context, url string, entries []delayEntry) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url}
	now := time.Now()
	for i, e := range entries {
		in.Entries = append(in.Entries, sqstypes.ChangeMessageVisibilityBatchRequestEntry{
			Id:                host.EntryID(i),
			ReceiptHandle:     &v.records[e.record].ReceiptHandle,
			VisibilityTimeout: host.Seconds(max(minDelay, e.retry.Sub(now)), maxDelay),
		})
	}
	out, err := v.client.ChangeMessageVisibilityBatch(ctx, in)
	if err != nil {
		v.log.WarnContext(ctx, "lambda: visibility not changed", "messages", len(entries), keyError, err)
		return ctx.Err() == nil
	}
	// A call succeeds also when some of its entries fail.
	for _, f := range out.Failed {
		id, handle := "", ""
		if i, ok := host.EntryIndex(f.Id, len(entries)); ok {
			rec := &v.records[entries[i].record]
			id, handle = rec.ID, rec.ReceiptHandle
		}
		v.log.WarnContext(ctx, "lambda: visibility not changed", keyMessage, id, "code", aws.ToString(f.Code),
			keyError, host.WithoutHandle(aws.ToString(f.Message), handle))
	}
	if n := len(entries) - len(out.Successful) - len(out.Failed); n > 0 {
		v.log.WarnContext(ctx, "lambda: SQS returned no result for some visibility changes", "messages", n)
	}
	return true
}

// queueURL returns the URL of the queue with that ARN. SQS is asked once per process. If the role does not allow that, the
// URL is made from the ARN, in AWS's form.
func (a *adapter) queueURL(ctx context.Context, arn string) (string, error) {
	if url, ok := a.queueURLs.Load(arn); ok {
		return url.(string), nil
	}
	q, err := host.ParseQueueARN(arn)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	url, err := a.askURL(ctx, arn)
	switch {
	case err == nil:
	case isAccessDenied(err):
		a.log.WarnContext(ctx, "lambda: sqs:GetQueueUrl is not allowed, the queue's URL is made from its ARN", keyError, err)
		url = q.URL()
	default:
		return "", err // not remembered: the next invocation asks again
	}
	a.queueURLs.Store(arn, url)
	return url, nil
}

// askURL asks SQS for the URL of the queue with that ARN, which exists where there is an answer.
func (a *adapter) askURL(ctx context.Context, arn string) (string, error) {
	q, err := host.ParseQueueARN(arn)
	if err != nil {
		return "", err
	}
	out, err := a.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &q.Name, QueueOwnerAWSAccountId: &q.Account})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.QueueUrl), nil
}

// isAccessDenied reports that SQS refuses a call. A role that STS refuses is none of its answers.
func isAccessDenied(err error) bool {
	e, ok := errors.AsType[smithy.APIError](err)
	return ok && sdkhttp.Answered(err) && strings.Contains(e.ErrorCode(), "AccessDenied")
}
