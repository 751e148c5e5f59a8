package sqsworker

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/backoff"
)

// callTimeout is the longest a delete, a release or an extension may take before it is tried again.
const callTimeout = 5 * time.Second

// change is one entry of a visibility change: an extension, or a release.
type change struct {
	d          *delivery
	handle     string
	visibility time.Duration
	last       bool // of an extension: no more after it
}

// changeVisibility sends up to ten changes in one call and hands one result per change to then, on the loop.
func (l *loop) changeVisibility(changes []change, timeout time.Duration, then func(results []error)) {
	l.counters.extensions.Add(1)
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &l.queueURL}
	for i, c := range changes {
		in.Entries = append(in.Entries, sqstypes.ChangeMessageVisibilityBatchRequestEntry{
			Id: entryID(i), ReceiptHandle: aws.String(c.handle), VisibilityTimeout: backoff.Seconds(c.visibility, maxVisibility),
		})
	}
	l.call(func() func() {
		ctx, cancel := context.WithTimeout(l.callCtx, timeout)
		defer cancel()
		out, err := l.client.ChangeMessageVisibilityBatch(ctx, in, once)
		results := newResults(len(changes), err)
		if err == nil {
			for i := range out.Successful {
				results.succeeded(out.Successful[i].Id)
			}
			results.failed(out.Failed)
		}
		return func() {
			if err != nil && isFatal(err) {
				l.fail(err)
			}
			then(results)
		}
	})
}
