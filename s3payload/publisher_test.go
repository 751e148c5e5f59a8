package s3payload_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/s3payload"
)

func (q *queue) publisher(client s3payload.Putter, optFns ...func(*s3payload.PublisherOptions)) *s3payload.Publisher {
	q.Helper()
	p := must.Get(s3payload.NewPublisher(q.pub, client, "payloads", optFns...))(q)
	return p
}

func always(o *s3payload.PublisherOptions) { o.Threshold = -1 }

// message receives a message.
func (q *queue) message() *sqsonce.Message {
	q.Helper()
	out, err := q.client.ReceiveMessage(q.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &q.url, MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
	})
	if err != nil || len(out.Messages) == 0 {
		q.Fatalf("no message received, error %v", err)
	}
	return messageOf(out.Messages[0])
}

func messageOf(received sqstypes.Message) *sqsonce.Message {
	m := &sqsonce.Message{ID: *received.MessageId, Group: received.Attributes["MessageGroupId"], Body: *received.Body, Attributes: map[string]sqsonce.Attribute{}}
	for name, a := range received.MessageAttributes {
		m.Attributes[name] = sqsonce.Attribute{Type: aws.ToString(a.DataType), String: aws.ToString(a.StringValue), Binary: a.BinaryValue}
	}
	return m
}

// location returns what a message points to.
func location(t *testing.T, m *sqsonce.Message) (bucket, key string) {
	t.Helper()
	var class string
	var to struct{ S3BucketName, S3Key string }
	if err := json.Unmarshal([]byte(m.Body), &[]any{&class, &to}); err != nil || class != "software.amazon.payloadoffloading.PayloadS3Pointer" {
		t.Fatalf("body %.200q with error %v, want a pointer", m.Body, err)
	}
	return to.S3BucketName, to.S3Key
}

func TestLargeBodyGoesToS3(t *testing.T) {
	t.Parallel()
	store, q := newS3("payloads"), newQueue(t, "orders.fifo", nil)
	p := q.publisher(store.client(), func(o *s3payload.PublisherOptions) { o.Prefix = "orders/" })
	body := "é" + text(1<<20)
	e := fifo.Event{ID: "ord 42/é", Group: "ord-42", Type: "paid", Body: body, Attributes: map[string]sqsonce.Attribute{"a": {Type: "String", String: "b"}}}
	r := must.Get(p.Publish(t.Context(), e))(t)
	m := q.message()
	bucket, key := location(t, m)
	if bucket != "payloads" || !regexp.MustCompile(`^orders/[0-9a-f]{64}/[0-9a-f]{64}$`).MatchString(key) {
		t.Errorf("object %s in %s, want a key of two hashes behind the prefix", key, bucket)
	}
	want := map[string]sqsonce.Attribute{
		"a": {Type: "String", String: "b"}, "event-id": {Type: "String", String: "ord 42/é"}, "event-source": {Type: "String", String: "orders"},
		"event-type": {Type: "String", String: "paid"}, "ExtendedPayloadSize": {Type: "Number", String: fmt.Sprint(len(body))},
	}
	if diff := cmp.Diff(want, m.Attributes); diff != "" || m.Group != "ord-42" {
		t.Errorf("group %s, attributes (-want +got):\n%s", m.Group, diff)
	}
	if id, _ := fifo.DedupID("orders", e.ID); r.DedupID != id {
		t.Errorf("deduplication ID %s, want %s", r.DedupID, id)
	}
	if len(e.Attributes) != 1 || e.Body != body {
		t.Error("the caller's event changed")
	}
	got, err := resolve(t, t.Context(), store.client(), m)
	if err != nil || got.Body != body {
		t.Errorf("resolved with error %v, want the body", err)
	}
}

// TestThreshold counts as SQS does.
func TestThreshold(t *testing.T) {
	t.Parallel()
	const overhead = len("event-id"+"String"+"1") + len("event-source"+"String"+"orders")
	for _, tt := range []struct {
		name   string
		attrs  map[string]string
		thresh int64
		size   int // of the message
		s3     bool
	}{
		{"SQS's limit", nil, 0, 1 << 20, false},
		{"above SQS's limit", nil, 0, 1<<20 + 1, true},
		{"the queue's limit", map[string]string{"MaximumMessageSize": "2048"}, 0, 2048, false},
		{"above the queue's limit", map[string]string{"MaximumMessageSize": "2048"}, 0, 2049, true},
		{"above the queue's limit, below the threshold", map[string]string{"MaximumMessageSize": "2048"}, 4096, 2049, true},
		{"the threshold", nil, 500, 500, false},
		{"above the threshold", nil, 500, 501, true},
		{"always", nil, -1, overhead + 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store, q := newS3("payloads"), newQueue(t, "orders.fifo", tt.attrs)
			p := q.publisher(store.client(), func(o *s3payload.PublisherOptions) { o.Threshold = tt.thresh })
			body := text(tt.size - overhead)
			must.Get(p.Publish(t.Context(), fifo.Event{ID: "1", Group: "g", Body: body}))(t)
			if n := len(store.keys("payloads")); (n == 1) != tt.s3 || (q.message().Body == body) == tt.s3 {
				t.Errorf("%d objects, want the body in S3: %t", n, tt.s3)
			}
		})
	}
}

// One event is one object, however often it is published: also without If-None-Match, so that it gets a new age.
func TestRepeatedPublishWritesTheSameObject(t *testing.T) {
	t.Parallel()
	store, q := newS3("payloads"), newQueue(t, "orders.fifo", nil)
	p := q.publisher(store.client(), always)
	for range 3 {
		must.Get(p.Publish(t.Context(), fifo.Event{ID: "1", Group: "g", Body: "body"}))(t)
	}
	keys := store.keys("payloads")
	if len(keys) != 1 || store.puts[keys[0]] != 3 || len(q.srv.Messages(q.url)) != 1 {
		t.Errorf("objects %v, puts %v and %d messages, want one object that was put three times, and one message", keys, store.puts, len(q.srv.Messages(q.url)))
	}
	for _, h := range store.headers {
		if h.Get("If-None-Match") != "" {
			t.Error("put with If-None-Match: the object keeps its old age")
		}
	}
	must.Get(p.Publish(t.Context(), fifo.Event{ID: "2", Group: "g", Body: "body"}))(t)
	if keys := store.keys("payloads"); len(keys) != 2 {
		t.Errorf("objects %v, want another one under another ID: none lives shorter because the other one is older", keys)
	}
}

func TestAnotherBodyUnderTheSameID(t *testing.T) {
	t.Parallel()
	store, q := newS3("payloads"), newQueue(t, "orders", nil)
	first, second := fifo.Event{ID: "1", Body: "first"}, fifo.Event{ID: "1", Body: "second"}
	p := q.publisher(store.client(), always)
	must.Get(p.Publish(t.Context(), first))(t)
	if _, err := p.Publish(t.Context(), second); !errors.Is(err, fifo.ErrDedupConflict) {
		t.Errorf("got %v, want ErrDedupConflict", err)
	}
	// Another process does not know of the first one.
	other := must.Get(fifo.NewPublisher(q.client, q.url, "orders"))(t)
	q.pub = other
	must.Get(q.publisher(store.client(), always).Publish(t.Context(), second))(t)
	for _, want := range []string{"first", "second"} { // each is hidden after its receive
		if m, err := resolve(t, t.Context(), store.client(), q.message()); err != nil || m.Body != want {
			t.Errorf("got %+v and error %v, want %q", m, err, want)
		}
	}
}

func TestRefusedBeforeThePut(t *testing.T) {
	t.Parallel()
	attributes := func(n int) map[string]sqsonce.Attribute {
		all := map[string]sqsonce.Attribute{}
		for i := range n {
			all[fmt.Sprint("a", i)] = sqsonce.Attribute{Type: "String", String: "b"}
		}
		return all
	}
	big := attributes(1)
	big["big"] = sqsonce.Attribute{Type: "String", String: text(1 << 20)}
	for name, tt := range map[string]struct {
		e    fifo.Event
		want string // package and field
	}{
		"seven attributes":     {fifo.Event{Body: "body", Attributes: attributes(7)}, "s3payload Event.Attributes"},
		"large attributes":     {fifo.Event{Body: "body", Attributes: big}, "s3payload Event.Attributes"},
		"a reserved attribute": {fifo.Event{Body: "body", Attributes: map[string]sqsonce.Attribute{"ExtendedPayloadSize": {Type: "Number", String: "1"}}}, `s3payload Event.Attributes["ExtendedPayloadSize"]`},
		"a legacy attribute":   {fifo.Event{Body: "body", Attributes: map[string]sqsonce.Attribute{"SQSLargePayloadSize": {Type: "Number", String: "1"}}}, `s3payload Event.Attributes["SQSLargePayloadSize"]`},
		"too large a body":     {fifo.Event{Body: text(101)}, "s3payload Event.Body"},
		"not UTF-8":            {fifo.Event{Body: "\xff"}, "fifo Event.Body"},
		"no body":              {fifo.Event{}, "fifo Event.Body"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, q := newS3("payloads"), newQueue(t, "orders.fifo", nil)
			p := q.publisher(store.client(), always, func(o *s3payload.PublisherOptions) { o.MaxBytes = 100 })
			tt.e.ID, tt.e.Group = "1", "g"
			_, err := p.Publish(t.Context(), tt.e)
			pe, ok := errors.AsType[*fifo.PublishError](err)
			field, _ := errors.AsType[*sqsonce.OptionError](err)
			if !ok || pe.EventID != "1" || !errors.Is(err, fifo.ErrNotSent) || field == nil || field.Package+" "+field.Field != tt.want {
				t.Errorf("got %v, want a PublishError with ErrNotSent and a OptionError of %v", err, tt.want)
			}
			if store.requests() != 0 || len(q.srv.Messages(q.url)) != 0 {
				t.Errorf("%d requests of S3 and %d messages, want none", store.requests(), len(q.srv.Messages(q.url)))
			}
		})
	}
	store, q := newS3("payloads"), newQueue(t, "orders.fifo", nil)
	e := fifo.Event{ID: "1", Group: "g", Type: "paid", Body: text(100), Attributes: attributes(6)}
	must.Get(q.publisher(store.client(), always, func(o *s3payload.PublisherOptions) { o.MaxBytes = 100 }).Publish(t.Context(), e))(t)
}

// putter is a client that is a function.
type putter func(context.Context) (*s3.PutObjectOutput, error)

func (p putter) PutObject(ctx context.Context, _ *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return p(ctx)
}

func TestFailedPut(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, client := range map[string]putter{
		"an error": func(context.Context) (*s3.PutObjectOutput, error) { return nil, boom },
		"panics":   func(context.Context) (*s3.PutObjectOutput, error) { panic(boom) },
		"exits":    func(context.Context) (*s3.PutObjectOutput, error) { runtime.Goexit(); return nil, nil },
		"nil":      func(context.Context) (*s3.PutObjectOutput, error) { return nil, nil },
		// The cause of a context may be the error of another event.
		"another event's error": func(context.Context) (*s3.PutObjectOutput, error) { return nil, fifo.ErrUnknownOutcome },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t, "orders.fifo", nil)
			p := q.publisher(client, func(o *s3payload.PublisherOptions) { o.Threshold = 200 })
			_, err := p.Publish(t.Context(), fifo.Event{ID: "1", Group: "g", Body: text(300)})
			_, ok := errors.AsType[*fifo.PublishError](err)
			if !ok || !errors.Is(err, fifo.ErrNotSent) || errors.Is(err, fifo.ErrUnknownOutcome) {
				t.Errorf("Publish: %v, want a PublishError with ErrNotSent", err)
			}
			if (name == "an error" || name == "panics") != errors.Is(err, boom) {
				t.Errorf("Publish: %v, want the client's error", err)
			}
			if _, err := p.Enqueue(t.Context(), fifo.Event{ID: "1", Group: "g", Body: text(300)}); !errors.Is(err, fifo.ErrNotSent) {
				t.Errorf("Enqueue: %v, want ErrNotSent", err)
			}
			// In a call of PublishAll the order of the group is kept: what comes behind is not sent.
			_, err = p.PublishAll(t.Context(), []fifo.Event{
				{ID: "2", Group: "g", Body: "small"}, {ID: "3", Group: "g", Body: text(300)}, {ID: "4", Group: "g", Body: "small"}, {ID: "5", Group: "h", Body: "small"},
			})
			got := map[int]bool{} // by index: halted
			for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
				pe, _ := errors.AsType[*fifo.PublishError](err)
				got[pe.Index] = errors.Is(err, fifo.ErrGroupHalted)
			}
			if diff := cmp.Diff(map[int]bool{1: false, 2: true}, got); diff != "" || len(q.srv.Messages(q.url)) != 2 {
				t.Errorf("%d messages, errors by index (-want +got):\n%s", len(q.srv.Messages(q.url)), diff)
			}
		})
	}
}

// The put failed, but an earlier call may have put the event into the queue.
func TestFailedPutAfterAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, q := newS3("payloads"), newQueue(t, "orders.fifo", nil)
		q.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Do: fault.LoseReply}}})
		p := q.publisher(store.client(func(o *s3.Options) { o.Retryer = aws.NopRetryer{} }), always)
		ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
		defer cancel()
		e := fifo.Event{ID: "1", Group: "g", Body: "body"}
		if _, err := p.PublishAll(ctx, []fifo.Event{e}); !errors.Is(err, fifo.ErrUnknownOutcome) {
			t.Fatalf("got %v, want an unknown outcome", err)
		}
		store.answerWith(func(*http.Request) (*http.Response, error) { return failed(503, "SlowDown"), nil })
		if _, err := p.Publish(context.Background(), e); !errors.Is(err, fifo.ErrUnknownOutcome) || errors.Is(err, fifo.ErrNotSent) {
			t.Errorf("got %v, want an unknown outcome", err)
		}
		store.answerWith(nil)
		q.srv.Set(fault.Plan{})
		if _, err := p.Publish(context.Background(), e); err != nil || len(q.srv.Messages(q.url)) != 1 {
			t.Errorf("got %v and %d messages, want one", err, len(q.srv.Messages(q.url)))
		}
	})
}

func TestPutTimeout(t *testing.T) {
	t.Parallel()
	client := putter(func(ctx context.Context) (*s3.PutObjectOutput, error) { <-ctx.Done(); return nil, ctx.Err() })
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders.fifo", nil)
		e := fifo.Event{ID: "1", Group: "g", Body: "body"}
		start := time.Now()
		if _, err := q.publisher(client, always).Publish(context.Background(), e); !errors.Is(err, fifo.ErrNotSent) || time.Since(start) != time.Minute {
			t.Errorf("got %v after %v, want ErrNotSent after a minute", err, time.Since(start))
		}
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		if _, err := q.publisher(client, always).Publish(ctx, e); !errors.Is(err, fifo.ErrNotSent) || !errors.Is(err, stop) {
			t.Errorf("got %v, want ErrNotSent and the cause", err)
		}
	})
}

func TestPublishAllPutsEightAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, "orders", nil)
		var active, most atomic.Int32
		p := q.publisher(putter(func(context.Context) (*s3.PutObjectOutput, error) {
			active.Add(1)
			time.Sleep(time.Second)
			most.Store(active.Load()) // all began at the same time
			time.Sleep(time.Second)
			active.Add(-1)
			return &s3.PutObjectOutput{}, nil
		}), always)
		var es []fifo.Event
		for i := range 24 {
			es = append(es, fifo.Event{ID: fmt.Sprint(i), Body: fmt.Sprint("body ", i)})
		}
		receipts, err := p.PublishAll(context.Background(), es)
		if err != nil || most.Load() != 8 || len(receipts) != 24 {
			t.Errorf("got %v, %d puts at once and %d receipts, want 8 and 24", err, most.Load(), len(receipts))
		}
		for i, r := range receipts {
			if r.MessageID == "" {
				t.Errorf("event %d has no receipt", i)
			}
		}
	})
}

// An event that failed is published again as fifo.Options.OnFailure gives it: with its pointer.
func TestPointerIsPublishedAsItIs(t *testing.T) {
	t.Parallel()
	store, q := newS3("payloads"), newQueue(t, "orders.fifo", nil)
	p := q.publisher(store.client(), always)
	e := fifo.Event{ID: "1", Group: "g", Body: pointerTo("payloads", "k").Body, Attributes: map[string]sqsonce.Attribute{"ExtendedPayloadSize": {Type: "Number", String: "1"}}}
	if _, err := p.Publish(t.Context(), e); err != nil || q.message().Body != e.Body || store.requests() != 0 {
		t.Errorf("got error %v and %d requests of S3, want the pointer in the queue", err, store.requests())
	}
}

// A body that only looks like a pointer is not taken for one by the consumer.
func TestBodyThatLooksLikeAPointer(t *testing.T) {
	t.Parallel()
	store, q := newS3("payloads"), newQueue(t, "orders.fifo", nil)
	e := fifo.Event{ID: "1", Group: "g", Body: pointerTo("payloads", "of-somebody-else").Body}
	must.Get(q.publisher(store.client()).Publish(t.Context(), e))(t)
	if m, err := resolve(t, t.Context(), store.client(), q.message()); err != nil || m.Body != e.Body {
		t.Errorf("got error %v, want the body as it was published", err)
	}
}

func TestNewPublisherRefuses(t *testing.T) {
	t.Parallel()
	q, client := newQueue(t, "orders.fifo", nil), newS3().client()
	var none *s3.Client
	for name, tt := range map[string]struct {
		pub    *fifo.Publisher
		client s3payload.Putter
		bucket string
		opts   s3payload.PublisherOptions
		want   []string
	}{
		"everything": {nil, nil, "", s3payload.PublisherOptions{Threshold: 1<<20 + 1, Prefix: "é", MaxBytes: -1, Timeout: -1}, []string{
			"publisher", "client", "bucket", "PublisherOptions.Threshold", "PublisherOptions.Prefix", "PublisherOptions.MaxBytes", "PublisherOptions.Timeout"}},
		"typed nil":   {q.pub, none, "b", s3payload.PublisherOptions{}, []string{"client"}},
		"a point":     {q.pub, client, "b", s3payload.PublisherOptions{Prefix: "a/../b"}, []string{"PublisherOptions.Prefix"}},
		"long prefix": {q.pub, client, "b", s3payload.PublisherOptions{Prefix: strings.Repeat("x", 513)}, []string{"PublisherOptions.Prefix"}},
		"the most":    {q.pub, client, "b", s3payload.PublisherOptions{Threshold: 1 << 20, Prefix: strings.Repeat("x", 512), MaxBytes: 1<<31 - 1}, nil},
	} {
		got, err := s3payload.NewPublisher(tt.pub, tt.client, tt.bucket, func(o *s3payload.PublisherOptions) { *o = tt.opts })
		if diff := cmp.Diff(tt.want, testaws.Fields(err)); diff != "" || (got == nil) != (err != nil) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
