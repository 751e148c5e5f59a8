package sqsworker

import (
	"context"
	"strconv"
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
		var ok []*string
		var failed []sqstypes.BatchResultErrorEntry
		if err == nil {
			failed = out.Failed
			for i := range out.Successful {
				ok = append(ok, out.Successful[i].Id)
			}
		}
		results := entryResults(len(changes), ok, failed, err)
		return func() {
			if err != nil && isFatal(err) {
				l.fail(err)
			}
			then(results)
		}
	})
}

// entryID is positional. A message ID will not do: the same message may be in a batch twice, and SQS refuses a batch
// whose IDs are not distinct.
func entryID(i int) *string { return aws.String(strconv.Itoa(i)) }

// entryResults gives each entry of a batch its own result. SQS answers with success where single entries have failed;
// an entry that the answer does not name has an unknown outcome, which is an error too.
func entryResults(n int, ok []*string, failed []sqstypes.BatchResultErrorEntry, err error) []error {
	results := make([]error, n)
	for i := range results {
		if results[i] = err; err == nil {
			results[i] = errMissing
		}
	}
	at := func(id *string) int {
		if i, err := strconv.Atoi(aws.ToString(id)); err == nil && i >= 0 && i < n {
			return i
		}
		return -1
	}
	for _, id := range ok {
		if i := at(id); i >= 0 {
			results[i] = nil
		}
	}
	for _, f := range failed {
		if i := at(f.Id); i >= 0 {
			results[i] = &entryError{code: aws.ToString(f.Code), message: aws.ToString(f.Message)}
		}
	}
	return results
}
