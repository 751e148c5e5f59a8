package sdkhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

// early is an HTTP client whose answer comes before it has looked for the end of the request, as a server's does on a busy machine.
type early struct {
	body io.Reader
	read int64 // of the request
}

func (e *early) Do(r *http.Request) (_ *http.Response, err error) {
	e.body = r.Body
	e.read, err = io.Copy(io.Discard, io.LimitReader(r.Body, r.ContentLength))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader("{}"))}, err
}

func TestWholeLosesNoAnswer(t *testing.T) {
	receive := func(wrap func(sdkhttp.Client) sdkhttp.Client) error {
		t.Helper()
		e := &early{}
		client := sqs.New(sqs.Options{Region: "eu-west-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: e})
		_, err := client.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("https://sqs.eu-west-1.amazonaws.com/1/q")},
			func(o *sqs.Options) { o.HTTPClient = wrap(o.HTTPClient) })
		if err != nil || e.read == 0 {
			t.Fatalf("%v, %d bytes were sent", err, e.read)
		}
		_, err = io.Copy(io.Discard, e.body) // as net/http does
		return err
	}
	if err := receive(sdkhttp.Whole); err != nil {
		t.Errorf("at the end of the request net/http sees %v, and closes the connection while the answer is read", err)
	}
	// Once the SDK's own body is right this fails: remove Whole then.
	if err := receive(func(c sdkhttp.Client) sdkhttp.Client { return c }); !errors.Is(err, io.EOF) {
		t.Errorf("without it: %v, want io.EOF", err)
	}
}

// A request that the SDK has not described is left as it is, and an SDK without a client has its own.
func TestWholeLeavesOthers(t *testing.T) {
	t.Parallel()
	if sdkhttp.Whole(nil) != nil {
		t.Error("a client out of none")
	}
	body := io.NopCloser(strings.NewReader("{}"))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://sqs.test", body)
	if err != nil {
		t.Fatal(err)
	}
	e := &early{}
	if _, err := sdkhttp.Whole(e).Do(r); err != nil || e.body != body {
		t.Errorf("a body of unknown length: %v, another one: %t", err, e.body != body)
	}
	r.Body, r.ContentLength, e = io.NopCloser(strings.NewReader("{}")), 3, &early{}
	if _, err := sdkhttp.Whole(e).Do(r); !errors.Is(err, io.ErrUnexpectedEOF) || e.body != nil {
		t.Errorf("a body that is too short: %v, sent: %t", err, e.body != nil)
	}
}
