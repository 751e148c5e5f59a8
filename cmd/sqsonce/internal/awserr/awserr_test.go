package awserr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	of := func(operation, code string) error {
		return fmt.Errorf("doctor: %w", &smithy.OperationError{ServiceID: "SQS", OperationName: operation,
			Err: &smithy.GenericAPIError{Code: code}})
	}
	for _, test := range []struct {
		err    error
		denied bool
		action string
	}{
		{of("SendMessage", "AccessDenied"), true, "sqs:SendMessage"},
		{of("DeleteMessageBatch", "AWS.SimpleQueueService.AccessDenied"), true, "sqs:DeleteMessage"},
		{of("TransactGetItems", "AccessDeniedException"), true, "sqs:GetItem"},
		{of("GetQueueUrl", "AWS.SimpleQueueService.NonExistentQueue"), false, "sqs:GetQueueUrl"},
		{errors.New("AccessDenied"), false, ""},
		{nil, false, ""},
	} {
		if denied, action := Denied(test.err), Action(test.err); denied != test.denied || action != test.action {
			t.Errorf("%v: %t, %q", test.err, denied, action)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) Do(r *http.Request) (*http.Response, error) {
	return (&http.Client{Transport: f}).Do(r)
}
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// endless is an answer without end, that counts how much of it is read.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	if e.read > 1<<30 {
		return len(p), io.EOF
	}
	return len(p), nil
}

func TestLimited(t *testing.T) {
	t.Parallel()
	body := &endless{}
	c := sqs.New(sqs.Options{Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{},
		HTTPClient: Limited(roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body), Request: r}, nil
		}))})
	_, err := c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("orders")})
	if err == nil || body.read > longestAnswer || Reason(err) != "sqs:GetQueueUrl: status 200 without an error code of AWS: perhaps a proxy or an emulator answered" {
		t.Errorf("%v after %d bytes", err, body.read)
	}
}

// What a call of the SDK says where something is wrong, in one sentence, soon.
func TestReason(t *testing.T) {
	t.Parallel()
	answers := func(status int, body string) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		}
	}
	coded := func(status int, code, message string) roundTripper {
		return answers(status, `{"__type":"com.amazonaws.sqs#`+code+`","message":"`+message+`"}`)
	}
	fails := func(err error) roundTripper {
		return func(*http.Request) (*http.Response, error) { return nil, err }
	}
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for name, test := range map[string]struct {
		answer       roundTripper
		reason       string
		unsent, busy bool
	}{
		"refused": {fails(dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))),
			"sqs does not answer at http://127.0.0.1:4566: connect: connection refused", true, false},
		"no such host": {fails(dial(&net.DNSError{Err: "no such host", Name: "sqs.nowhere"})),
			"sqs does not answer at http://127.0.0.1:4566: lookup sqs.nowhere: no such host", true, false},
		"closed": {fails(io.EOF),
			"sqs does not answer at http://127.0.0.1:4566: the connection was closed before the answer was complete", true, false},
		"silent":         {fails(context.DeadlineExceeded), "sqs does not answer in time", true, false},
		"a page":         {answers(200, "<html>log in"), "sqs:GetQueueUrl: status 200 without an error code of AWS: perhaps a proxy or an emulator answered", false, false},
		"a page, 400":    {answers(400, "<html>log in"), "sqs:GetQueueUrl: status 400 without an error code of AWS: perhaps a proxy or an emulator answered", false, false},
		"a redirect":     {answers(302, ""), "sqs:GetQueueUrl: status 302 without an error code of AWS: perhaps a proxy or an emulator answered", false, false},
		"a gateway":      {answers(502, ""), "sqs:GetQueueUrl: status 502 without an error code of AWS: perhaps a proxy or an emulator answered", false, false},
		"denied":         {coded(403, "AccessDenied", "no"), "sqs:GetQueueUrl is denied", false, false},
		"expired":        {coded(403, "ExpiredToken", "no"), "AWS refuses the credentials: ExpiredToken (sqs:GetQueueUrl)", false, false},
		"throttled":      {coded(400, "ThrottlingException", "slow down"), "sqs:GetQueueUrl: ThrottlingException: slow down", false, true},
		"AWS has failed": {coded(500, "InternalError", "oh"), "sqs:GetQueueUrl: InternalError: oh", false, true},
		"a long text":    {coded(400, "Odd", strings.Repeat("a", 1e5)), "sqs:GetQueueUrl: Odd: " + strings.Repeat("a", 300) + "…", false, false},
	} {
		must.RunParallel(t, name, func(t *testing.T) {
			c := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String("http://127.0.0.1:4566"), Credentials: aws.AnonymousCredentials{},
				HTTPClient: test.answer, Retryer: Retryer()})
			start := time.Now()
			_, err := c.GetQueueUrl(context.Background(), &sqs.GetQueueUrlInput{QueueName: aws.String("orders")})
			if err == nil || Reason(err) != test.reason || Unsent(err) != test.unsent || Busy(err) != test.busy {
				t.Errorf("%v: %q, unsent %t, busy %t; want %q", err, Reason(err), Unsent(err), Busy(err), test.reason)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}
