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

// record is a received message, encoded as its record in the event.
type record struct {
	id, handle, group string
	json              []byte
	at                time.Time // of the receive
	receive           int64     // its number
}

// collector builds batches. It is used by one goroutine: one poll at a time, so that batches are entered into their
// groups in the order in which SQS delivered them.
type collector struct {
	client     Client
	cfg        Config
	queue      queue
	filters    filters
	deleter    deleter
	visibility time.Duration
	receives   *counter
	rest       []record // received, and did not fit into the last batch
}

// next returns the next batch: none if no message came, a started one if ctx ended. An error means that the receive
// failed and the batch is empty.
func (c *collector) next(ctx context.Context) ([]record, error) {
	b := batch{size: c.cfg.BatchSize}
	c.rest = b.fill(c.rest)
	for {
		left := c.cfg.Wait
		if len(b.records) > 0 {
			left = c.cfg.BatchingWindow - time.Since(b.records[0].at)
		}
		if b.full || left <= 0 || ctx.Err() != nil {
			return b.records, nil
		}
		got, err := c.receive(ctx, min(10, c.cfg.BatchSize-len(b.records)), min(left, c.cfg.Wait))
		if err != nil && len(b.records) > 0 {
			c.cfg.Logger.Warn("esm: receive failed; the batch is invoked without waiting for more", "error", err)
			return b.records, nil
		}
		if err != nil {
			return nil, err
		}
		c.rest = b.fill(got)
		if len(b.records) == 0 {
			return nil, nil // nothing came, or nothing passed the filters
		}
	}
}

// receiveMargin is what a receive may take beyond its wait and the SDK's retries of it. It only ends a poll whose
// connection is dead: a cancelled poll may be one that SQS has just answered, whose messages are then stranded.
const receiveMargin = time.Minute

// receive polls once. It does not end with ctx.
func (c *collector) receive(ctx context.Context, most int, wait time.Duration) ([]record, error) {
	seconds := int32((wait + time.Second - 1) / time.Second) // at least 1: a 0 is not sent, and the queue's own wait applies
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*wait+receiveMargin)
	defer cancel()
	in := &sqs.ReceiveMessageInput{
		QueueUrl:                    aws.String(c.queue.url),
		MaxNumberOfMessages:         int32(most),
		WaitTimeSeconds:             seconds,
		VisibilityTimeout:           int32(c.visibility / time.Second), // a 0 is not sent
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
		MessageAttributeNames:       []string{"All"},
	}
	if c.cfg.fifo() {
		// A retry of the SDK after a lost reply then gets the same messages, instead of finding their groups locked.
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

// fill adds what fits and returns the rest. A single record always fits: SQS's limit of 1 MiB keeps it far below 6 MB,
// also where every character is escaped.
func (b *batch) fill(records []record) (rest []record) {
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
