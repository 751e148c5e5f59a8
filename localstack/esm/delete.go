package esm

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	maxEntries     = 10 // of one batch call
	deleteAttempts = 5
	deleteBackoff  = 200 * time.Millisecond // doubled per attempt
	callTimeout    = 30 * time.Second
)

// deleter deletes messages, up to ten in a call.
type deleter struct {
	client *sqs.Client
	url    string
	log    *slog.Logger
}

// delete returns the deleted records. It logs those that it could not delete: they will be delivered again.
func (d deleter) delete(ctx context.Context, records []record) (deleted []record) {
	for chunk := range slices.Chunk(records, maxEntries) {
		done, failed, err := d.deleteChunk(ctx, chunk)
		deleted = append(deleted, done...)
		if len(failed) > 0 {
			d.log.Warn("esm: messages could not be deleted and will be delivered again", "messages", ids(failed), "error", err)
		}
	}
	return deleted
}

// deleteChunk deletes at most ten records, and repeats the call for those that failed for a temporary reason. It returns
// the records that it could not delete and the last error. It ignores the cancellation of ctx: these messages succeeded.
func (d deleter) deleteChunk(ctx context.Context, records []record) (deleted, failed []record, lastErr error) {
	pause := deleteBackoff
	for attempt := range deleteAttempts {
		if attempt > 0 {
			time.Sleep(pause)
			pause *= 2
		}
		result, err := d.deleteOnce(ctx, records)
		if err != nil {
			lastErr = err
		}
		deleted = append(deleted, result.deleted...)
		failed = append(failed, result.refused...)
		if records = result.retry; len(records) == 0 {
			break
		}
	}
	return deleted, append(failed, records...), lastErr
}

// deleteResult is the result of one DeleteMessageBatch for each record.
type deleteResult struct {
	deleted []record
	refused []record // SQS does not accept the handle
	retry   []record // failed for a reason on the side of SQS, or the outcome is unknown
}

// deleteOnce makes one call. The error is that of the call or of an entry.
func (d deleter) deleteOnce(ctx context.Context, records []record) (deleteResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	entries := make([]sqstypes.DeleteMessageBatchRequestEntry, len(records))
	for i, r := range records {
		entries[i] = sqstypes.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(r.handle)}
	}
	out, err := d.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(d.url), Entries: entries})
	if err != nil {
		return deleteResult{retry: records}, err
	}
	success, refused := map[string]bool{}, map[string]bool{}
	for _, e := range out.Successful {
		success[aws.ToString(e.Id)] = true
	}
	for _, e := range out.Failed {
		err = fmt.Errorf("%s: %s", aws.ToString(e.Code), aws.ToString(e.Message))
		refused[aws.ToString(e.Id)] = e.SenderFault
	}
	var result deleteResult
	for i, r := range records {
		switch id := strconv.Itoa(i); {
		case success[id]:
			result.deleted = append(result.deleted, r)
		case refused[id]:
			result.refused = append(result.refused, r)
		default: // also a record that is in neither list
			result.retry = append(result.retry, r)
		}
	}
	return result, err
}

func ids(records []record) []string {
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = r.id
	}
	return out
}

// release makes messages visible again that were not invoked before the stop, so that the next consumer need not wait for
// their visibility timeout. It does not retry: messages that it cannot release return when their visibility timeout ends.
func (m *mapping) release(ctx context.Context, records []record) {
	ctx = context.WithoutCancel(ctx)
	for chunk := range slices.Chunk(records, maxEntries) {
		if err := m.releaseChunk(ctx, chunk); err != nil {
			m.log.Warn("esm: messages could not be released and stay hidden until their visibility timeout ends", "messages", ids(chunk), "error", err)
		}
	}
}

func (m *mapping) releaseChunk(ctx context.Context, records []record) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	entries := make([]sqstypes.ChangeMessageVisibilityBatchRequestEntry, len(records))
	for i, r := range records {
		entries[i] = sqstypes.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(r.handle)}
	}
	out, err := m.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String(m.queue.url), Entries: entries})
	if err != nil {
		return err
	}
	for _, e := range out.Failed {
		return fmt.Errorf("%d of %d entries: %s: %s", len(out.Failed), len(records), aws.ToString(e.Code), aws.ToString(e.Message))
	}
	return nil
}
