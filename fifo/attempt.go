package fifo

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

var (
	errNoResult = errors.New("fifo: SQS answered neither success nor failure for the entry")
	errTwice    = errors.New("fifo: SQS answered more than once for the entry")
	errChecksum = errors.New("fifo: SQS has another body than the one sent (MD5)")
)

// attempt sends one request, once, and returns what its answer proves about each entry.
func (p *Publisher) attempt(ctx context.Context, batch []*entry) []answer {
	ctx, cancel := context.WithTimeout(ctx, p.opts.AttemptTimeout)
	defer cancel()
	in := &sqs.SendMessageBatchInput{QueueUrl: &p.queueURL, Entries: make([]sqstypes.SendMessageBatchRequestEntry, len(batch))}
	for i, e := range batch {
		in.Entries[i] = p.message(e, i)
	}
	var t transport
	out, err := p.client.SendMessageBatch(ctx, in, once, t.watch)
	if err == nil {
		return readResults(out, batch)
	}
	answers := make([]answer, len(batch))
	for i := range answers {
		answers[i] = classify(err, t.notReached())
	}
	return answers
}

// once makes the call one attempt. The SDK would repeat it out of sight of the window, and drops the results of all ten
// entries where one checksum does not match.
func once(o *sqs.Options) {
	o.Retryer = aws.NopRetryer{}
	o.DisableMessageChecksumValidation = true
}

// transport tells a request that was handed to the HTTP client from one that failed before, for example for want of
// credentials.
type transport struct{ watched, reached atomic.Bool }

func (t *transport) watch(o *sqs.Options) {
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		t.watched.Store(true)
		// Last of the deserialize step: next is the HTTP client.
		return s.Deserialize.Add(middleware.DeserializeMiddlewareFunc("fifo.reached", func(
			ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
		) (middleware.DeserializeOutput, middleware.Metadata, error) {
			t.reached.Store(true)
			return next.HandleDeserialize(ctx, in)
		}), middleware.After)
	})
}

// notReached is false where nobody watched: a client that is not the SDK's proves nothing.
func (t *transport) notReached() bool { return t.watched.Load() && !t.reached.Load() }

// readResults matches results to entries by their position, which is their ID. An entry that SQS does not name, names
// twice or stores with another checksum may be in the queue or not.
func readResults(out *sqs.SendMessageBatchOutput, batch []*entry) []answer {
	answers := make([]answer, len(batch))
	for i := range answers {
		answers[i] = answer{proof: provesNothing, err: errNoResult}
	}
	named := make([]bool, len(batch))
	put := func(id *string, a func(*entry) answer) {
		i, err := strconv.Atoi(aws.ToString(id))
		if err != nil || i < 0 || i >= len(batch) {
			return // not ours: the entry it stands for stays without a result
		}
		if named[i] {
			answers[i] = answer{proof: provesNothing, err: errTwice}
			return
		}
		named[i] = true
		answers[i] = a(batch[i])
	}
	var body []byte // used for all
	for _, r := range out.Successful {
		put(r.Id, func(e *entry) answer {
			body = append(body[:0], e.event.Body...)
			sum := md5.Sum(body)
			if aws.ToString(r.MD5OfMessageBody) != hex.EncodeToString(sum[:]) {
				return answer{proof: provesNothing, err: errChecksum}
			}
			return answer{proof: provesSent, messageID: aws.ToString(r.MessageId), sequence: aws.ToString(r.SequenceNumber)}
		})
	}
	for _, f := range out.Failed {
		put(f.Id, func(*entry) answer { return classifyEntry(f) })
	}
	return answers
}

func classifyEntry(f sqstypes.BatchResultErrorEntry) answer {
	err := &smithy.GenericAPIError{Code: aws.ToString(f.Code), Message: aws.ToString(f.Message), Fault: smithy.FaultServer}
	if f.SenderFault {
		err.Fault = smithy.FaultClient
	}
	// Some throttling is called the sender's fault.
	if !f.SenderFault || isThrottle(err.Code) {
		return answer{proof: provesNotSent, err: err}
	}
	return answer{proof: provesRefused, err: err}
}
