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

// deleter deletes messages, ten a call.
type deleter struct {
	client Client
	url    string
	log    *slog.Logger
}

// delete returns the records it has deleted. What it could not delete is logged: it will be delivered again.
func (d deleter) delete(ctx context.Context, records []record) (gone []record) {
	for chunk := range slices.Chunk(records, maxEntries) {
		deleted, left, err := d.deleteChunk(ctx, chunk)
		gone = append(gone, deleted...)
		if len(left) > 0 {
			d.log.Warn("esm: messages could not be deleted and will be delivered again", "messages", ids(left), "error", err)
		}
	}
	return gone
}

// deleteChunk deletes at most ten, and tries again what failed for a reason that may pass. It returns what is left and
// why. It does not end with ctx: these messages are done.
func (d deleter) deleteChunk(ctx context.Context, records []record) (gone, left []record, why error) {
	pause := deleteBackoff
	for attempt := range deleteAttempts {
		if attempt > 0 {
			time.Sleep(pause)
			pause *= 2
		}
		answer, err := d.try(ctx, records)
		if err != nil {
			why = err
		}
		gone = append(gone, answer.gone...)
		left = append(left, answer.refused...)
		if records = answer.again; len(records) == 0 {
			break
		}
	}
	return gone, append(left, records...), why
}

// deleted is what a call says of each record.
type deleted struct {
	gone    []record
	refused []record // SQS does not take the handle
	again   []record // failed on SQS's side, or not known
}

// try makes one call. The error is the call's, or an entry's.
func (d deleter) try(ctx context.Context, records []record) (deleted, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	entries := make([]sqstypes.DeleteMessageBatchRequestEntry, len(records))
	for i, r := range records {
		entries[i] = sqstypes.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(r.handle)}
	}
	out, err := d.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(d.url), Entries: entries})
	if err != nil {
		return deleted{again: records}, err
	}
	success, refused := map[string]bool{}, map[string]bool{}
	for _, e := range out.Successful {
		success[aws.ToString(e.Id)] = true
	}
	for _, e := range out.Failed {
		err = fmt.Errorf("%s: %s", aws.ToString(e.Code), aws.ToString(e.Message))
		refused[aws.ToString(e.Id)] = e.SenderFault
	}
	var answer deleted
	for i, r := range records {
		switch id := strconv.Itoa(i); {
		case success[id]:
			answer.gone = append(answer.gone, r)
		case refused[id]:
			answer.refused = append(answer.refused, r)
		default: // also one that is in neither list
			answer.again = append(answer.again, r)
		}
	}
	return answer, err
}

func ids(records []record) []string {
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = r.id
	}
	return out
}

// release makes messages visible again that no invocation got before the stop, so that the next consumer need not wait
// for their visibility timeout. One attempt: what fails comes back by itself.
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
