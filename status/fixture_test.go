package status

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// fixture is SQS in memory, in a bubble of virtual time.
type fixture struct {
	testing.TB
	c *sqs.Client
}

func bubble(t *testing.T, f func(*fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t)
		f(x)
	})
}

func newFixture(t testing.TB) *fixture {
	srv := memsqs.New()
	t.Cleanup(func() { srv.Close() })
	return &fixture{t, sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"), HTTPClient: &http.Client{Transport: srv},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})}
}

func (x *fixture) queue(name string, attributes map[string]string) (url string) {
	x.Helper()
	out := must.Get(x.c.CreateQueue(x.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes}))(x)
	return *out.QueueUrl
}

func (x *fixture) send(url, body, group string) {
	x.Helper()
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}
	if group != "" {
		in.MessageGroupId, in.MessageDeduplicationId = &group, aws.String(rand.Text())
	}
	must.Get(x.c.SendMessage(x.Context(), in))(x)
}

// sendMany sends 10 n messages.
func (x *fixture) sendMany(url string, n int) {
	x.Helper()
	for i := range n {
		in := &sqs.SendMessageBatchInput{QueueUrl: &url}
		for k := range 10 {
			key := strconv.Itoa(10*i + k)
			in.Entries = append(in.Entries, sqstypes.SendMessageBatchRequestEntry{Id: &key, MessageBody: &key})
		}
		if out, err := x.c.SendMessageBatch(x.Context(), in); err != nil || len(out.Failed) > 0 {
			x.Fatal(out, err)
		}
	}
}

func (x *fixture) worker(url string, h sqsonce.Handler, optFns ...func(*sqsworker.Options)) *sqsworker.Worker {
	x.Helper()
	quiet := func(o *sqsworker.Options) { o.Logger = slog.New(slog.DiscardHandler) }
	return must.Get(sqsworker.New(x.c, url, h, append(optFns, quiet)...))(x)
}

// keeps is middleware that tells a key, as dedup does.
func keeps(key string, h sqsonce.Handler) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error { settle.KeepKey(ctx, key); return h(ctx, m) }
}

// run starts a worker, and returns what stops it.
func (x *fixture) run(w *sqsworker.Worker) (stop func() error) {
	ctx, cancel := context.WithCancel(x.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func (x *fixture) handler(optFns ...func(*Options)) http.Handler {
	x.Helper()
	return must.Get(Handler(optFns...))(x)
}

func workers(ws ...*sqsworker.Worker) func(*Options) { return func(o *Options) { o.Workers = ws } }

func ask(h http.Handler, method, path string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(method, path, nil))
	return rec
}

// get reads a JSON answer of the handler, every field of which must be one of T's.
func get[T any](t testing.TB, h http.Handler, path string, status int) (v T) {
	t.Helper()
	rec := ask(h, "GET", path)
	if rec.Code != status {
		t.Fatalf("%s is %d, want %d: %s", path, rec.Code, status, rec.Body)
	}
	d := json.NewDecoder(bytes.NewReader(rec.Body.Bytes()))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v in %s", path, err, rec.Body)
	}
	return v
}

// sleeps is a handler.
func sleeps(d time.Duration) sqsonce.Handler {
	return func(context.Context, *sqsonce.Message) error {
		time.Sleep(d)
		return nil
	}
}
