package esm

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// record is a received message, with the JSON of its record in the event.
type record struct {
	id, handle, group string
	json              []byte
	at                time.Time // of the receive
	receive           int64     // number of the receive
}

// collector builds batches. One goroutine uses it, so one poll runs at a time, and batches enter their groups in the order
// in which SQS delivered them.
type collector struct {
	client     *sqs.Client
	cfg        Config
	queue      queue
	filters    filters
	deleter    deleter
	visibility time.Duration
	receives   *counter
	remaining  []record // received, and did not fit into the last batch
}

// next returns the next batch. It is empty if no message came, and may be incomplete if ctx is cancelled. An error means
// that the receive failed and there is no batch.
func (c *collector) next(ctx context.Context) ([]record, error) {
	b := batch{size: c.cfg.BatchSize}
	c.remaining = b.fill(c.remaining)
	for {
		wait := c.cfg.Wait
		if len(b.records) > 0 {
			wait = c.cfg.BatchingWindow - time.Since(b.records[0].at)
		}
		if b.full || wait <= 0 || ctx.Err() != nil {
			return b.records, nil
		}
		got, err := c.receive(ctx, min(10, c.cfg.BatchSize-len(b.records)), min(wait, c.cfg.Wait))
		if err != nil && len(b.records) > 0 {
			c.cfg.Logger.Warn("esm: receive failed; the batch is invoked without waiting for more", "error", err)
			return b.records, nil
		}
		if err != nil {
			return nil, err
		}
		c.remaining = b.fill(got)
		if len(b.records) == 0 {
			return nil, nil // no message came, or none matched the filters
		}
	}
}

// receiveMargin is how long a receive may take beyond its wait and the SDK's retries. Only a poll on a dead connection
// takes longer. A poll must not be cancelled earlier: SQS may just have given it messages, which then stay hidden.
const receiveMargin = time.Minute

// receive polls once. It ignores the cancellation of ctx.
func (c *collector) receive(ctx context.Context, most int, wait time.Duration) ([]record, error) {
	seconds := int32((wait + time.Second - 1) / time.Second) // at least 1: the SDK does not send 0
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*wait+receiveMargin)
	defer cancel()
	in := &sqs.ReceiveMessageInput{
		QueueUrl:                    aws.String(c.queue.url),
		MaxNumberOfMessages:         int32(most),
		WaitTimeSeconds:             seconds,
		VisibilityTimeout:           int32(c.visibility / time.Second), // the SDK does not send 0
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
		MessageAttributeNames:       []string{"All"},
	}
	if c.cfg.fifo() {
		// When a response is lost, the SDK's retry gets the same messages. Without the ID their groups would be blocked.
		in.ReceiveRequestAttemptId = aws.String(rand.Text())
	}
	out, err := c.client.ReceiveMessage(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("esm: receive: %w", err)
	}
	number := c.receives.next()
	var got, filtered []record
	for _, m := range out.Messages {
		r := record{
			id: aws.ToString(m.MessageId), handle: aws.ToString(m.ReceiptHandle),
			group: m.Attributes[string(sqstypes.MessageSystemAttributeNameMessageGroupId)],
			at:    time.Now(), receive: number,
		}
		if !c.filters.match(aws.ToString(m.Body)) {
			filtered = append(filtered, r)
			continue
		}
		r.json = encodeRecord(m, c.queue, c.cfg.BatchingWindow > 0)
		got = append(got, r)
	}
	c.deleter.delete(ctx, filtered)
	return got, nil
}

// batch is a batch being filled.
type batch struct {
	size    int
	records []record
	bytes   int
	full    bool
}

// fill adds records until the batch is full, and returns the others. A single record always fits: a message has at most
// 1 MiB, which is less than 6 MB even if JSON escapes every character.
func (b *batch) fill(records []record) (remaining []record) {
	for i, r := range records {
		n := len(r.json) + len(",")
		if len(b.records) > 0 && len(eventHead)+b.bytes+len(r.json)+len(eventTail) > maxPayload {
			b.full = true
			return records[i:]
		}
		b.records = append(b.records, r)
		b.bytes += n
		if len(b.records) == b.size {
			b.full = true
			return records[i+1:]
		}
	}
	return nil
}
