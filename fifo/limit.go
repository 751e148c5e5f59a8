package fifo

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// limitReads is how often the queue's limit is read at most: the role may lack sqs:GetQueueAttributes.
const limitReads = 2

// limitAge is how old a limit may be that refuses a message. It may have been raised since: with an older one SQS decides, and the
// limit is read again.
const limitAge = time.Minute

// sizeLimit is the queue's MaximumMessageSize. It is read alongside the first message of more than leastQueueLimit, and once
// more after a failure. Until it is known, the publisher assumes 1 MiB, and SQS itself refuses messages that are too large for
// the queue. It belongs to the publisher's mutex.
type sizeLimit struct {
	bytes   int64         // 0: not known
	at      time.Time     // of the read
	reads   int           // begun, since the limit was not known
	reading chan struct{} // closed when the read has ended; nil: none is under way
	cancel  context.CancelFunc
}

// checkSize returns a OptionError for a message that is too large for the queue.
func (p *Publisher) checkSize(e *entry) error {
	limit := int64(maxMessageBytes)
	if e.size > leastQueueLimit && e.size <= maxMessageBytes { // a larger one fits into no queue
		if limit, _ = p.queueLimit(); e.size > limit && p.forgetOldLimit() {
			limit, _ = p.queueLimit()
		}
	}
	if e.size > limit {
		field := "Event.Body"
		if e.forward {
			field = "Message.Body"
		}
		return badField(field, "has %d bytes with attributes, the queue accepts %d", e.size, limit)
	}
	return nil
}

// hasRoom reports whether the queue certainly accepts a message of size bytes.
func (p *Publisher) hasRoom(size int64) bool {
	if size <= leastQueueLimit {
		return true
	}
	limit, known := p.queueLimit()
	return known && size <= limit
}

// queueLimit returns the limit, and whether it is known. It has the limit read if it is not.
func (p *Publisher) queueLimit() (limit int64, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.limit
	if l.bytes > 0 {
		return l.bytes, true
	}
	if l.reading == nil && l.reads < limitReads && !p.closed {
		l.reads++
		l.reading = make(chan struct{})
		var ctx context.Context
		ctx, l.cancel = context.WithTimeout(p.ctx, p.opts.attemptTimeout)
		go p.learnQueueLimit(ctx)
	}
	return maxMessageBytes, false
}

// forgetOldLimit reports whether the limit was too old to refuse a message.
func (p *Publisher) forgetOldLimit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.limit
	if time.Since(l.at) <= limitAge {
		return false
	}
	l.bytes, l.reads = 0, 0
	return true
}

func (p *Publisher) learnQueueLimit(ctx context.Context) {
	limit, err := p.readQueueLimit(ctx)
	cancelled := errors.Is(ctx.Err(), context.Canceled)
	if err != nil && !cancelled {
		p.opts.Logger.WarnContext(ctx, "fifo: cannot read the queue's MaximumMessageSize, 1 MiB is assumed", "queue", p.queueURL, "error", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.limit
	l.cancel()
	l.bytes, l.at = limit, time.Now()
	if cancelled {
		l.reads--
	}
	close(l.reading)
	l.reading = nil
}

// awaitLimit waits until the read of the limit has ended, which takes Options.attemptTimeout at most. If ctx ends first, the
// read is cancelled.
func (p *Publisher) awaitLimit(ctx context.Context) {
	p.mu.Lock()
	reading, cancel := p.limit.reading, p.limit.cancel
	p.mu.Unlock()
	if reading == nil {
		return
	}
	select {
	case <-reading:
	case <-ctx.Done():
		cancel()
		waitFor(reading)
	}
}

func (p *Publisher) readQueueLimit(ctx context.Context) (int64, error) {
	const name = sqstypes.QueueAttributeNameMaximumMessageSize
	out, err := p.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       &p.queueURL,
		AttributeNames: []sqstypes.QueueAttributeName{name},
	})
	if err != nil {
		return 0, err
	}
	limit, err := strconv.ParseInt(out.Attributes[string(name)], 10, 64)
	if err != nil {
		return 0, err
	}
	return min(max(limit, leastQueueLimit), maxMessageBytes), nil
}
