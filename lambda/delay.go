package lambda

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	delayTimeout = 5 * time.Second // for all calls of an invocation, if the deadline leaves as much
)

// delay tells SQS when the failed messages should come back. The results stand by now: whatever goes wrong here is
// logged, and the message comes back when its visibility timeout ends.
func (v *invocation) delay(ctx context.Context, r results) {
	entries := v.delays(r)
	if len(entries) == 0 {
		return
	}
	timeout := delayTimeout
	if !v.budget.answer.IsZero() {
		timeout = min(timeout, time.Until(v.budget.answer))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	url, err := v.queueURL(ctx, v.records[0].EventSourceARN)
	if err != nil {
		v.log.WarnContext(ctx, "lambda: visibility not changed: the queue's URL is not known", "messages", len(entries), keyError, err)
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(v.opts.Concurrency, (len(entries)+host.MaxBatch-1)/host.MaxBatch) {
		wg.Go(func() {
			for {
				to := int(next.Add(host.MaxBatch))
				from := to - host.MaxBatch
				if from >= len(entries) {
					return
				}
				if ctx.Err() != nil {
					v.log.WarnContext(ctx, "lambda: no time left to change visibility", "messages", len(entries[from:min(to, len(entries))]))
					continue
				}
				v.changeVisibility(ctx, url, entries[from:min(to, len(entries))])
			}
		})
	}
	wg.Wait()
}

type delayEntry struct {
	record int
	retry  time.Time
}

// delays returns the failed messages that asked for a time. In a FIFO group those that wait behind one get the same:
// a group stays locked until the last of its messages is visible again.
func (v *invocation) delays(r results) []delayEntry {
	if v.opts.Client == nil {
		return nil
	}
	// A copy of a message that still runs must not be given to others by its other copy's failure.
	left := map[string]bool{}
	if r.counts[abandoned] > 0 {
		for i, s := range r.states {
			if s == abandoned {
				left[v.records[i].MessageId] = true
			}
		}
	}
	var entries []delayEntry
	for i, s := range r.states {
		if s != failed || v.slots[i].retry.IsZero() {
			continue
		}
		for j := i; j >= 0; j = v.chains.after(j) {
			if rec := &v.records[j]; rec.ReceiptHandle != "" && !left[rec.MessageId] {
				entries = append(entries, delayEntry{record: j, retry: v.slots[i].retry})
			}
		}
	}
	return entries
}

func (v *invocation) changeVisibility(ctx context.Context, url string, entries []delayEntry) {
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url}
	now := time.Now()
	for i, e := range entries {
		in.Entries = append(in.Entries, sqstypes.ChangeMessageVisibilityBatchRequestEntry{
			Id:                host.EntryID(i),
			ReceiptHandle:     &v.records[e.record].ReceiptHandle,
			VisibilityTimeout: host.Seconds(e.retry.Sub(now), maxDelay),
		})
	}
	var out *sqs.ChangeMessageVisibilityBatchOutput
	err := v.conns.Do(ctx, func(ctx context.Context) (err error) {
		out, err = v.opts.Client.ChangeMessageVisibilityBatch(ctx, in)
		return err
	})
	if err != nil {
		v.log.WarnContext(ctx, "lambda: visibility not changed", "messages", len(entries), keyError, err)
		return
	}
	// SQS answers with success where single entries have failed.
	for _, f := range out.Failed {
		id := ""
		if i, ok := host.EntryIndex(f.Id, len(entries)); ok {
			id = v.records[entries[i].record].MessageId
		}
		v.log.WarnContext(ctx, "lambda: visibility not changed", keyMessage, id, "code", aws.ToString(f.Code), keyError, aws.ToString(f.Message))
	}
	if n := len(entries) - len(out.Successful) - len(out.Failed); n > 0 {
		v.log.WarnContext(ctx, "lambda: no answer for some visibility changes", "messages", n)
	}
}
