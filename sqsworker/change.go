package sqsworker

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
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

// visibilityChanged is the answer to one call of ChangeMessageVisibilityBatch.
type visibilityChanged struct {
	changes  []change
	results  results
	err      error     // of the whole call
	start    time.Time // before the call
	releases bool      // else extensions
}

func (l *loop) visibilityChanged(e visibilityChanged) {
	if e.err != nil && isFatal(e.err) {
		l.fail(e.err)
	}
	if e.releases {
		l.releasesAnswered(e)
	} else {
		l.extensionsAnswered(e)
	}
}

// changeVisibility sends up to ten changes in one call.
func (l *loop) changeVisibility(changes []change, timeout time.Duration, releases bool) {
	start := l.now()
	l.counters.extensions.Add(1)
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &l.queueURL}
	for i, c := range changes {
		in.Entries = append(in.Entries, sqstypes.ChangeMessageVisibilityBatchRequestEntry{
			Id: host.EntryID(i), ReceiptHandle: aws.String(c.handle), VisibilityTimeout: host.Seconds(c.visibility, maxVisibility),
		})
	}
	l.call(func() event {
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
		return visibilityChanged{changes, results, err, start, releases}
	})
}
