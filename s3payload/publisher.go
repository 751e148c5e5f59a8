package s3payload

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
	"github.com/sqsonce/sqsonce/internal/host"
)

// PublisherOptions configure [NewPublisher].
type PublisherOptions struct {
	// Threshold is the size of the largest message that keeps its body, in bytes as SQS counts them: the body and the names,
	// types and values of the attributes. A message that the queue doesn't accept never keeps its body. If Threshold is
	// negative, every body goes to S3.
	// Default: the queue's largest message. Limits: at most 1 MiB.
	Threshold int64
	// Prefix comes before each object's key.
	// Default: empty. Limits: A-Z a-z 0-9 / _ -, at most 512.
	Prefix string
	// MaxBytes is the size of the largest body. The publisher refuses a larger one. MaxBytes should be that of the consumer's
	// ResolveOptions.
	// Default: 16 MiB. Limits: at most 2 GiB - 1.
	MaxBytes int64
	// Timeout bounds the put of one object, with the client's own retries.
	// Default: 1 min.
	Timeout time.Duration
}

const (
	maxThreshold = 1 << 20 // the largest message of any queue
	// maxAttributes is one less than that of fifo.Event: the pointer's.
	maxAttributes = 6
	// maxPuts is how many objects PublishAll puts at once. The SDK's HTTP client keeps 10 idle connections.
	maxPuts = 8
)

var prefixes = regexp.MustCompile(`^[A-Za-z0-9/_-]{0,512}$`)

// Publisher publishes events whose bodies are too large for their queue. It puts such a body into S3 first, and publishes a
// pointer to it. The embedded publisher's Flush, Close and Resume are its own. All methods are safe for concurrent use.
//
// ID, Group, Type, TraceHeader and Attributes stay as they are, with one attribute more. So an event whose body goes to S3 has
// at most 6 of its own. ExtendedPayloadSize and SQSLargePayloadSize are reserved. Delay counts from the end of the put.
//
// The object's key is made of hashes of the event's key and of the body. So an event that is published again has the same
// pointer, and its object is written again, with a new age for the bucket's lifecycle rule. Another body under the same ID has
// another object. Within five minutes it is [fifo.ErrDedupConflict], as without S3. A message that was published before
// resolves to the body that it was published with.
//
// If the put fails, the event isn't published. The error is then a [*fifo.PublishError] that matches the client's error and
// [fifo.ErrNotSent]. If an earlier call may have put the event into the queue, it matches [fifo.ErrUnknownOutcome] instead of
// ErrNotSent.
type Publisher struct {
	*fifo.Publisher
	client Putter
	bucket string
	opts   PublisherOptions
	calls  calls
}

// NewPublisher returns a Publisher on p that keeps large bodies in the bucket. It makes no request. The error joins one
// [*sqsonce.OptionError] for each argument or option that can't be used.
func NewPublisher(p *fifo.Publisher, client Putter, bucket string, optFns ...func(*PublisherOptions)) (*Publisher, error) {
	var o PublisherOptions
	for _, fn := range optFns {
		fn(&o)
	}
	o.MaxBytes, o.Timeout = cmp.Or(o.MaxBytes, defaultMaxBytes), cmp.Or(o.Timeout, defaultTimeout)
	o.Threshold = cmp.Or(o.Threshold, maxThreshold)
	problems := host.Problems{Package: "s3payload"}
	add := problems.Add
	add(p == nil, "publisher", "is nil")
	add(host.IsNil(client), "client", "is nil")
	add(bucket == "", "bucket", "is empty")
	add(o.Threshold > maxThreshold, "PublisherOptions.Threshold", "is %d, must be at most %d", o.Threshold, maxThreshold)
	add(!prefixes.MatchString(o.Prefix), "PublisherOptions.Prefix", "is %.600q, must be at most 512 of A-Z a-z 0-9 / _ -", o.Prefix)
	add(badMaxBytes(o.MaxBytes), "PublisherOptions.MaxBytes", "is %d, must be 1 to %d", o.MaxBytes, mostBytes)
	add(o.Timeout < 0, "PublisherOptions.Timeout", "is %v, must be positive", o.Timeout)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return &Publisher{Publisher: p, client: client, bucket: bucket, opts: o, calls: calls{timeout: o.Timeout}}, nil
}

// Publish puts a large body into S3, and then publishes the event like [fifo.Publisher.Publish].
func (p *Publisher) Publish(ctx context.Context, e fifo.Event) (fifo.Receipt, error) {
	e, why := p.prepare(ctx, e)
	if why != nil {
		return fifo.Receipt{}, fifokit.Refuse(p.Publisher, ctx, e, why)
	}
	return p.Publisher.Publish(ctx, e)
}

// Enqueue puts a large body into S3, for as long as S3 needs or until ctx ends, and then enqueues the event like
// [fifo.Publisher.Enqueue].
func (p *Publisher) Enqueue(ctx context.Context, e fifo.Event) (*fifo.PublishResult, error) {
	e, why := p.prepare(ctx, e)
	if why != nil {
		return nil, fifokit.Refuse(p.Publisher, ctx, e, why)
	}
	return p.Publisher.Enqueue(ctx, e)
}

// PublishAll puts the large bodies into S3, up to 8 at once, and then publishes all events like [fifo.Publisher.PublishAll]. If
// a put fails, the later events of the group fail with [fifo.ErrGroupHalted] on a FIFO queue.
func (p *Publisher) PublishAll(ctx context.Context, es []fifo.Event) ([]fifo.Receipt, error) {
	prepared, refused := make([]fifo.Event, len(es)), make([]error, len(es))
	slots := make(chan struct{}, maxPuts)
	var wg sync.WaitGroup
	for i, e := range es {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			prepared[i], refused[i] = p.prepare(ctx, e)
		})
	}
	wg.Wait()
	return fifokit.PublishAll(p.Publisher, ctx, prepared, refused)
}

// prepare returns the event to publish: e itself, e with a pointer for its body, or one that fails with the error.
func (p *Publisher) prepare(ctx context.Context, e fifo.Event) (fifo.Event, error) {
	if name := sizeAttributeOf(e.Attributes); name != "" {
		if namesPointer(e.Body) { // an event that failed, as fifo.Options.OnFailure gets it
			return e, nil
		}
		return e, badField("Event.Attributes["+strconv.Quote(name)+"]", "has a reserved name")
	}
	key, size, err := fifokit.Check(p.Publisher, e)
	if err != nil {
		return e, nil // fails with this error
	}
	// A consumer would take a body that looks like a pointer for one.
	if size <= p.opts.Threshold && fifokit.Fits(p.Publisher, ctx, size) && !namesPointer(e.Body) {
		return e, nil
	}
	offloaded, err := p.offload(ctx, key, e)
	if err != nil {
		return e, err
	}
	return offloaded, nil
}

// offload puts the body into S3 and returns the event with a pointer. All that SQS would refuse is refused before the put.
func (p *Publisher) offload(ctx context.Context, key string, e fifo.Event) (fifo.Event, error) {
	if n := len(e.Attributes); n > maxAttributes {
		return e, badField("Event.Attributes", "has %d attributes, must have at most %d where the body goes to S3: SQS accepts 10", n, maxAttributes)
	}
	if n := int64(len(e.Body)); n > p.opts.MaxBytes {
		return e, badField("Event.Body", "has %d bytes, PublisherOptions.MaxBytes is %d", n, p.opts.MaxBytes)
	}
	body := e.Body
	to := pointer{Bucket: p.bucket, Key: p.opts.Prefix + hash(key) + "/" + hash(body)}
	attrs := maps.Clone(e.Attributes)
	if attrs == nil {
		attrs = make(map[string]sqsonce.Attribute, 1)
	}
	attrs[sizeAttribute] = sqsonce.Attribute{Type: "Number", String: strconv.Itoa(len(body))}
	e.Body, e.Attributes = to.body(), attrs
	if _, size, err := fifokit.Check(p.Publisher, e); err != nil || !fifokit.Fits(p.Publisher, ctx, size) {
		return e, cmp.Or(err, badField("Event.Attributes", "make %d bytes with the pointer, the queue accepts fewer", size))
	}
	if err := p.put(ctx, to, body); err != nil {
		return e, fmt.Errorf("s3payload: put %v: %w", to, err)
	}
	return e, nil
}

// put writes the object, also where it exists: a message that is published again must not find its object at the end of its
// life.
func (p *Publisher) put(ctx context.Context, to pointer, body string) error {
	return p.calls.do(ctx, func(ctx context.Context) error {
		out, err := p.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &to.Bucket, Key: &to.Key, Body: strings.NewReader(body)})
		if err == nil && out == nil {
			return errNoAnswer
		}
		return err
	})
}

// hash returns 64 hexadecimal digits, which are legal in any key of S3.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
