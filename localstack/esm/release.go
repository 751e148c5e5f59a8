package esm

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

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
