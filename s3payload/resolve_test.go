package s3payload_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/internal/thaw/thawtest"
	"github.com/sqsonce/sqsonce/s3payload"
)

// pointerTo returns a message with a pointer.
func pointerTo(bucket, key string) *sqsonce.Message {
	return &sqsonce.Message{
		ID: "m-1", Group: "g", ReceiveCount: 2, ReceiptHandle: "handle",
		Body: fmt.Sprintf(`["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":%q,"s3Key":%q}]`, bucket, key),
		Attributes: map[string]sqsonce.Attribute{
			"ExtendedPayloadSize": {Type: "Number", String: "5"}, sqsonce.AttrEventID: {Type: "String", String: "1"},
		},
	}
}

// resolve delivers one message to Resolve and returns what its handler got, or nil.
func resolve(t *testing.T, ctx context.Context, client s3payload.Getter, m *sqsonce.Message, optFns ...func(*s3payload.ResolveOptions)) (got *sqsonce.Message, err error) {
	t.Helper()
	h := must.Get(s3payload.Resolve(func(_ context.Context, m *sqsonce.Message) error { got = m; return nil }, client, []string{"payloads", "others"}, optFns...))(t)
	before := fmt.Sprintf("%+v", *m)
	err = h(ctx, m)
	if after := fmt.Sprintf("%+v", *m); after != before {
		t.Errorf("the host's message changed from %s to %s", before, after)
	}
	if err != nil && got != nil {
		t.Errorf("the handler was called, and the error is %v", err)
	}
	return got, err
}

func TestResolve(t *testing.T) {
	t.Parallel()
	store := newS3("payloads", "others")
	store.buckets["others"]["a b/ü"] = []byte("héllo")
	m := pointerTo("others", "a b/ü")
	got := must.Get(resolve(t, t.Context(), store.client(), m))(t)
	want := *m
	want.Body, want.Attributes = "héllo", map[string]sqsonce.Attribute{sqsonce.AttrEventID: {Type: "String", String: "1"}}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	own := sqsonce.Reject(errors.New("own"))
	h := must.Get(s3payload.Resolve(func(context.Context, *sqsonce.Message) error { return own }, store.client(), []string{"others"}))(t)
	if err := h(t.Context(), m); err != own {
		t.Errorf("got %v, want the handler's own error", err)
	}
}

// The legacy attribute goes too. A pointer without its attribute is one: a pipe between the queues may drop attributes.
func TestResolveAttributes(t *testing.T) {
	t.Parallel()
	store := newS3("payloads")
	store.buckets["payloads"]["k"] = []byte("héllo")
	for _, name := range []string{"ExtendedPayloadSize", "SQSLargePayloadSize", ""} {
		m := pointerTo("payloads", "k")
		m.Attributes = nil
		if name != "" {
			m.Attributes = map[string]sqsonce.Attribute{name: {Type: "Number", String: "6"}}
		}
		got, err := resolve(t, t.Context(), store.client(), m)
		if err != nil || got.Body != "héllo" || len(got.Attributes) != 0 {
			t.Errorf("%q: got %+v and error %v, want the content and no attribute", name, got, err)
		}
	}
}

// Inside of OpenEnvelope: the pointer is in an envelope of SNS.
func TestResolveInAnEnvelope(t *testing.T) {
	t.Parallel()
	store := newS3("payloads")
	store.buckets["payloads"]["k"] = []byte("héllo")
	in := pointerTo("payloads", "k")
	envelope := must.Get(json.Marshal(map[string]any{
		"Type": "Notification", "MessageId": "n-1", "TopicArn": "arn:aws:sns:us-east-1:123456789012:orders", "Message": in.Body,
		"Timestamp": "2026-01-01T00:00:00.000Z", "MessageAttributes": map[string]any{"ExtendedPayloadSize": map[string]any{"Type": "Number", "Value": "6"}},
	}))(t)
	var got *sqsonce.Message
	h := must.Get(s3payload.Resolve(func(_ context.Context, m *sqsonce.Message) error { got = m; return nil }, store.client(), []string{"payloads"}))(t)
	must.Do(t, sqsonce.OpenEnvelope(h)(t.Context(), &sqsonce.Message{ID: "m-1", Body: string(envelope)}))
	key, source, err := got.Key()
	if got.Body != "héllo" || len(got.Attributes) != 0 || source != sqsonce.KeyFromSNS || err != nil {
		t.Errorf("got %+v with key %s, %v and error %v, want the content and the key of the envelope", got, key, source, err)
	}
}

func TestBodyWithoutPointerIsUntouched(t *testing.T) {
	t.Parallel()
	store := newS3()
	for _, body := range []string{"", "{}", "[1,2]", `["com.example.S3Pointer",{"s3BucketName":"payloads","s3Key":"k"}]`, "text " + text(1<<20)} {
		m := &sqsonce.Message{Body: body, Attributes: map[string]sqsonce.Attribute{"a": {Type: "String", String: "b"}}}
		got, err := resolve(t, t.Context(), store.client(), m)
		if err != nil || got != m {
			t.Errorf("%.20q: got another message and error %v, want the message itself", body, err)
		}
	}
	if n := store.requests(); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

func TestBrokenPointerIsRejected(t *testing.T) {
	t.Parallel()
	store := newS3("payloads")
	noObject := pointerTo("payloads", "")
	noPointer := pointerTo("payloads", "k")
	noPointer.Body = "{}"
	longKey := pointerTo("payloads", strings.Repeat("k", 1025))
	legacy := &sqsonce.Message{Body: "{}", Attributes: map[string]sqsonce.Attribute{"SQSLargePayloadSize": {Type: "Number", String: "1"}}}
	for _, m := range []*sqsonce.Message{noObject, noPointer, longKey, legacy} {
		_, err := resolve(t, t.Context(), store.client(), m)
		if sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeRejected || !errors.Is(err, s3payload.ErrPointer) {
			t.Errorf("%s: got %v, want a Reject of errPointer", m.Body, err)
		}
	}
	if n := store.requests(); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

func TestForeignBucket(t *testing.T) {
	t.Parallel()
	store := newS3("payloads", "secrets")
	store.buckets["secrets"]["k"] = []byte("secret")
	for _, bucket := range []string{"secrets", "Payloads", "payloads/k", " payloads"} {
		_, err := resolve(t, t.Context(), store.client(), pointerTo(bucket, "k"))
		if sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeFailed || !errors.Is(err, s3payload.ErrBucket) {
			t.Errorf("%s: got %v, want a failure with ErrBucket", bucket, err)
		}
	}
	buckets := []string{"payloads"}
	h := must.Get(s3payload.Resolve(func(context.Context, *sqsonce.Message) error { return nil }, store.client(), buckets))(t)
	buckets[0] = "secrets"
	if err := h(t.Context(), pointerTo("secrets", "k")); !errors.Is(err, s3payload.ErrBucket) {
		t.Errorf("the caller's slice has changed: got %v, want ErrBucket", err)
	}
	if n := store.requests(); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

// getter is a client that is a function.
type getter func(context.Context) (*s3.GetObjectOutput, error)

func (g getter) GetObject(ctx context.Context, _ *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	return g(ctx)
}

// counted is a body that counts what is read of it.
type counted struct {
	io.Reader
	read   int64
	closed bool
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read += int64(n)
	return n, err
}

func (c *counted) Close() error { c.closed = true; return nil }

func TestLargestObject(t *testing.T) {
	t.Parallel()
	atMost := func(n int64) func(*s3payload.ResolveOptions) {
		return func(o *s3payload.ResolveOptions) { o.MaxBytes = n }
	}
	for _, tt := range []struct {
		name    string
		size    int
		length  *int64 // as the answer says
		opt     func(*s3payload.ResolveOptions)
		refused bool
		read    int64 // at most
	}{
		{"fits", 1000, aws.Int64(1000), atMost(1000), false, 1000},
		{"fits, length not known", 1000, nil, atMost(1000), false, 1000},
		{"fits, length -1", 1000, aws.Int64(-1), atMost(1000), false, 1000},
		{"too large by its length", 1001, aws.Int64(1001), atMost(1000), true, 0},
		{"too large, length not known", 100_000, nil, atMost(1000), true, 1001},
		{"too large, length wrong", 100_000, aws.Int64(10), atMost(1000), true, 1001},
		{"fits by default", 16 << 20, aws.Int64(16 << 20), func(*s3payload.ResolveOptions) {}, false, 16 << 20},
		{"too large by default", 16<<20 + 1, nil, func(*s3payload.ResolveOptions) {}, true, 16<<20 + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := &counted{Reader: strings.NewReader(text(tt.size))}
			client := getter(func(context.Context) (*s3.GetObjectOutput, error) {
				return &s3.GetObjectOutput{Body: body, ContentLength: tt.length}, nil
			})
			got, err := resolve(t, t.Context(), client, pointerTo("payloads", "k"), tt.opt)
			if tt.refused {
				if sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeFailed || !errors.Is(err, s3payload.ErrTooLarge) {
					t.Errorf("got %v, want a failure with ErrTooLarge", err)
				}
			} else if err != nil || len(got.Body) != tt.size {
				t.Errorf("got error %v, want the whole object", err)
			}
			if body.read > tt.read || !body.closed {
				t.Errorf("read %d bytes, closed %t; want at most %d, and closed", body.read, body.closed, tt.read)
			}
		})
	}
}

// What S3 answers, and what becomes of the message. An outage empties no queue into the dead-letter queue; what one message
// causes must end there.
func TestKindsOfAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status  int
		code    string
		want    sqsonce.OutcomeKind
		matches error
	}{
		{404, "NoSuchKey", sqsonce.OutcomeFailed, s3payload.ErrNoObject},
		{404, "", sqsonce.OutcomeFailed, s3payload.ErrNoObject},
		{403, "AccessDenied", sqsonce.OutcomeFailed, nil}, // also of a missing object, without s3:ListBucket
		{403, "InvalidObjectState", sqsonce.OutcomeFailed, nil},
		{400, "KMS.DisabledException", sqsonce.OutcomeFailed, nil},
		{400, "KeyTooLongError", sqsonce.OutcomeFailed, nil},
		{404, "NoSuchBucket", sqsonce.OutcomeUnavailable, sqsonce.ErrMisconfigured},
		{301, "PermanentRedirect", sqsonce.OutcomeUnavailable, sqsonce.ErrMisconfigured},
		{403, "InvalidAccessKeyId", sqsonce.OutcomeUnavailable, sqsonce.ErrMisconfigured},
		{403, "SignatureDoesNotMatch", sqsonce.OutcomeUnavailable, sqsonce.ErrMisconfigured},
		{400, "ExpiredToken", sqsonce.OutcomeUnavailable, sqsonce.ErrMisconfigured},
		{503, "SlowDown", sqsonce.OutcomeUnavailable, nil},
		{503, "ServiceUnavailable", sqsonce.OutcomeUnavailable, nil},
		{500, "InternalError", sqsonce.OutcomeUnavailable, nil},
		{502, "", sqsonce.OutcomeUnavailable, nil},
		{429, "TooMany", sqsonce.OutcomeUnavailable, nil},
		{400, "RequestTimeout", sqsonce.OutcomeUnavailable, nil},
		{400, "ThrottlingException", sqsonce.OutcomeUnavailable, nil},
	} {
		store := newS3("payloads")
		store.answer = func(*http.Request) (*http.Response, error) {
			if tt.code == "" {
				return reply(tt.status, ""), nil
			}
			return failed(tt.status, tt.code), nil
		}
		client := store.client(func(o *s3.Options) { o.Retryer = aws.NopRetryer{} })
		_, err := resolve(t, t.Context(), client, pointerTo("payloads", "k"))
		misconfigured := tt.matches == sqsonce.ErrMisconfigured
		if sqsonce.OutcomeOf(err).Kind != tt.want || tt.matches != nil && !errors.Is(err, tt.matches) || errors.Is(err, sqsonce.ErrMisconfigured) != misconfigured {
			t.Errorf("%d %s: got %v, outcome %v, want %v and a match with %v", tt.status, tt.code, err, sqsonce.OutcomeOf(err).Kind, tt.want, tt.matches)
		}
		if !strings.Contains(fmt.Sprint(err), `s3://"payloads"/"k"`) {
			t.Errorf("%d %s: %v does not name the object", tt.status, tt.code, err)
		}
		if denied := tt.code == "AccessDenied"; denied != strings.Contains(fmt.Sprint(err), "s3:ListBucket") {
			t.Errorf("%s: %v", tt.code, err)
		}
	}
}

// The size is the sender's, and the content the object's: what is wrong with them fails their message, and holds back no other.
// An object has not broken off where S3's own Content-Length does not say so. Where S3 has not answered, no message is at fault.
func TestFaultsOfOneObject(t *testing.T) {
	t.Parallel()
	store := newS3("payloads")
	store.buckets["payloads"]["k"] = []byte("hell")
	answers := func(answer func() (*http.Response, error)) s3payload.Getter {
		faulty := newS3("payloads")
		faulty.answerWith(func(*http.Request) (*http.Response, error) { return answer() })
		return faulty.client(func(o *s3.Options) {
			o.Retryer, o.ResponseChecksumValidation = aws.NopRetryer{}, aws.ResponseChecksumValidationWhenSupported
		})
	}
	answer := func(length *int64, body ...io.Reader) getter {
		return func(context.Context) (*s3.GetObjectOutput, error) {
			return &s3.GetObjectOutput{Body: io.NopCloser(io.MultiReader(body...)), ContentLength: length}, nil
		}
	}
	failure := errors.New("differs")
	const failed, unavailable = sqsonce.OutcomeFailed, sqsonce.OutcomeUnavailable
	for name, tt := range map[string]struct {
		client s3payload.Getter
		want   sqsonce.OutcomeKind
		text   string
	}{
		"size":                     {store.client(), failed, s3payload.ErrSize.Error()},
		"size, no Content-Length":  {answer(nil, strings.NewReader("hell")), failed, s3payload.ErrSize.Error()},
		"size, Content-Length -1":  {answer(aws.Int64(-1), strings.NewReader("hell")), failed, s3payload.ErrSize.Error()},
		"fails at the end":         {answer(aws.Int64(5), strings.NewReader("hello"), iotest.ErrReader(failure)), failed, failure.Error()},
		"fails, no Content-Length": {answer(nil, strings.NewReader("hel"), iotest.ErrReader(failure)), failed, failure.Error()},
		"fails before the end":     {answer(aws.Int64(5), strings.NewReader("hel"), iotest.ErrReader(failure)), unavailable, failure.Error()},
		"checksum": {answers(func() (*http.Response, error) {
			resp := reply(http.StatusOK, "hello")
			resp.Header.Set("X-Amz-Checksum-Crc32", "AAAAAA==")
			return resp, nil
		}), failed, "checksum did not match"},
		"no connection": {answers(func() (*http.Response, error) { return nil, failure }), unavailable, failure.Error()},
		"breaks off": {answers(func() (*http.Response, error) {
			resp := reply(http.StatusOK, "hel")
			resp.ContentLength, resp.Header = 5, http.Header{"Content-Length": {"5"}}
			return resp, nil
		}), unavailable, io.ErrUnexpectedEOF.Error()},
	} {
		_, err := resolve(t, t.Context(), tt.client, pointerTo("payloads", "k"))
		if sqsonce.OutcomeOf(err).Kind != tt.want || !strings.Contains(fmt.Sprint(err), tt.text) {
			t.Errorf("%s: got %v, outcome %v, want %v with %q", name, err, sqsonce.OutcomeOf(err).Kind, tt.want, tt.text)
		}
	}
}

// An object that is slower than the timeout twice is at fault, and not S3. One that was read in between starts again.
func TestSlowObject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		body := func(context.Context) io.ReadCloser { return io.NopCloser(strings.NewReader("hello")) }
		answered := true
		client := getter(func(ctx context.Context) (*s3.GetObjectOutput, error) {
			if !answered {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &s3.GetObjectOutput{Body: body(ctx), ContentLength: aws.Int64(5)}, nil
		})
		h := must.Get(s3payload.Resolve(func(context.Context, *sqsonce.Message) error { return nil }, client, []string{"payloads"}))(t)
		expect := func(key string, want sqsonce.OutcomeKind) {
			t.Helper()
			err := h(context.Background(), pointerTo("payloads", key))
			if got := sqsonce.OutcomeOf(err).Kind; got != want || (want == sqsonce.OutcomeFailed) != errors.Is(err, s3payload.ErrSlow) {
				t.Errorf("%s: %v, outcome %v, want %v", key, err, got, want)
			}
		}
		fast := body
		body = func(ctx context.Context) io.ReadCloser { return stalled{ctx} }
		expect("k", sqsonce.OutcomeUnavailable)
		expect("other", sqsonce.OutcomeUnavailable)
		answered = false
		expect("k", sqsonce.OutcomeUnavailable)
		answered = true
		expect("k", sqsonce.OutcomeFailed)
		expect("k", sqsonce.OutcomeFailed)
		slow := body
		body = fast
		expect("k", sqsonce.OutcomeDone)
		body = slow
		expect("k", sqsonce.OutcomeUnavailable)
	})
}

// A wrapper of the client that breaks its contract fails the message, and nothing else.
func TestBrokenGetter(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]getter{
		"panics":      func(context.Context) (*s3.GetObjectOutput, error) { panic("boom") },
		"exits":       func(context.Context) (*s3.GetObjectOutput, error) { runtime.Goexit(); return nil, nil },
		"nil":         func(context.Context) (*s3.GetObjectOutput, error) { return nil, nil },
		"no body":     func(context.Context) (*s3.GetObjectOutput, error) { return &s3.GetObjectOutput{}, nil },
		"body panics": func(context.Context) (*s3.GetObjectOutput, error) { return &s3.GetObjectOutput{Body: &counted{}}, nil },
	} {
		_, err := resolve(t, t.Context(), client, pointerTo("payloads", "k"))
		_, panicked := errors.AsType[*sqsonce.PanicError](err)
		if silent := name == "nil" || name == "no body"; sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeFailed || panicked == silent {
			t.Errorf("%s: got %v, want a failure, and a PanicError of what panicked", name, err)
		}
	}
}

// stalled is a body that never ends, as one of a dead connection.
type stalled struct{ ctx context.Context }

func (s stalled) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, s.ctx.Err() }
func (stalled) Close() error               { return nil }

func TestTimeout(t *testing.T) {
	t.Parallel()
	clients := map[string]getter{
		"no answer": func(ctx context.Context) (*s3.GetObjectOutput, error) { <-ctx.Done(); return nil, ctx.Err() },
		"no end": func(ctx context.Context) (*s3.GetObjectOutput, error) {
			return &s3.GetObjectOutput{Body: stalled{ctx}}, nil
		},
	}
	for name, client := range clients {
		for timeout, want := range map[time.Duration]time.Duration{0: time.Minute, 3 * time.Second: 3 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, err := resolve(t, context.Background(), client, pointerTo("payloads", "k"), func(o *s3payload.ResolveOptions) { o.Timeout = timeout })
				if sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeUnavailable || time.Since(start) != want {
					t.Errorf("%s: got %v after %v, want Unavailable after %v", name, err, time.Since(start), want)
				}
			})
		}
		// The host ends the handler: it knows why.
		synctest.Test(t, func(t *testing.T) {
			for _, cause := range []error{sqsonce.ErrLeaseLost, sqsonce.ErrShutdown} {
				ctx, cancel := context.WithCancelCause(context.Background())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				_, err := resolve(t, ctx, client, pointerTo("payloads", "k"))
				if !errors.Is(err, cause) || errors.Is(err, sqsonce.ErrUnavailable) || !settle.IsNotRun(err) {
					t.Errorf("%s: got %v, want %v", name, err, cause)
				}
			}
		})
	}
}

// Connections that died while a function was frozen cost no read its timeout.
func TestConnectionsFromBeforeAFreeze(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := thawtest.New(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "content") }))
		client := newS3().client(func(o *s3.Options) { o.HTTPClient = network.Client() })
		h := must.Get(s3payload.Resolve(func(context.Context, *sqsonce.Message) error { return nil }, client, []string{"payloads"}))(t)
		for range 2 {
			start := time.Now()
			if err := h(context.Background(), pointerTo("payloads", "k")); err != nil || time.Since(start) > time.Second {
				t.Errorf("got %v after %v, want no error at once", err, time.Since(start))
			}
			network.Kill()
			time.Sleep(time.Minute)
		}
	})
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	h := func(context.Context, *sqsonce.Message) error { return nil }
	client := newS3().client()
	set := func(max int64, timeout time.Duration) func(*s3payload.ResolveOptions) {
		return func(o *s3payload.ResolveOptions) { o.MaxBytes, o.Timeout = max, timeout }
	}
	var none *s3.Client
	for name, tt := range map[string]struct {
		h       sqsonce.Handler
		client  s3payload.Getter
		buckets []string
		opt     func(*s3payload.ResolveOptions)
		want    []string
	}{
		"everything":   {nil, nil, nil, set(-1, -1), []string{"handler", "client", "buckets", "ResolveOptions.MaxBytes", "ResolveOptions.Timeout"}},
		"typed nil":    {h, none, []string{"b"}, set(0, 0), []string{"client"}},
		"empty bucket": {h, client, []string{"b", ""}, set(0, 0), []string{"buckets"}},
		"above 2 GiB":  {h, client, []string{"b"}, set(1<<31, 0), []string{"ResolveOptions.MaxBytes"}},
		"the most":     {h, client, []string{"b"}, set(1<<31-1, 0), nil},
	} {
		got, err := s3payload.Resolve(tt.h, tt.client, tt.buckets, tt.opt)
		if diff := cmp.Diff(tt.want, testaws.Fields(err)); diff != "" || (got == nil) != (err != nil) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// A role that STS refuses has S3 answer nothing: no message is at fault.
func TestFailedCredentials(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"AccessDenied", "NoSuchKey", "ExpiredToken", "SomethingNew"} {
		client := newS3("payloads").client(func(o *s3.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{}, &smithy.OperationError{ServiceID: "STS", Err: &smithy.GenericAPIError{Code: code, Fault: smithy.FaultClient}}
			})
		})
		_, err := resolve(t, t.Context(), client, pointerTo("payloads", "k"))
		if sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeUnavailable || errors.Is(err, s3payload.ErrNoObject) || errors.Is(err, sqsonce.ErrMisconfigured) {
			t.Errorf("%s: got %v, want unavailable", code, err)
		}
	}
}
