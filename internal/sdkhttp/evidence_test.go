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
	"github.com/aws/smithy-go/middleware"

	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

type answers func() (*http.Response, error)

func (f answers) RoundTrip(*http.Request) (*http.Response, error) { return f() }

// A call's error says how far its last attempt got, also of several.
func TestEvidence(t *testing.T) {
	t.Parallel()
	refusal := func(header string) answers {
		return func() (*http.Response, error) {
			h := http.Header{}
			if header != "" {
				h.Set(header, "AccessDenied")
			}
			return &http.Response{StatusCode: http.StatusForbidden, Header: h, Body: io.NopCloser(strings.NewReader(`{"__type":"AccessDenied"}`))}, nil
		}
	}
	cut := answers(func() (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"X-Amzn-Requestid": {"1"}}, Body: io.NopCloser(strings.NewReader(`{"QueueUr`))}, nil
	})
	broken := answers(func() (*http.Response, error) { return nil, errors.New("connection reset") })
	for name, tt := range map[string]struct {
		to               answers
		fetches          int // of credentials that succeed
		unsent, answered bool
	}{
		"request ID":        {refusal("X-Amzn-Requestid"), 9, false, true},
		"S3's request ID":   {refusal("X-Amz-Request-Id"), 9, false, true},
		"ElasticMQ":         {refusal("X-Amzn-Query-Error"), 9, false, true},
		"a page":            {refusal(""), 9, false, false},
		"a cut answer":      {cut, 9, false, false},
		"no answer":         {broken, 9, false, false},
		"no credentials":    {refusal("X-Amzn-Requestid"), 0, true, false},
		"none for a repeat": {broken, 1, true, false},
	} {
		fetched := 0
		c := sqs.New(sqs.Options{
			Region: "us-east-1", HTTPClient: &http.Client{Transport: tt.to}, APIOptions: []func(*middleware.Stack) error{sdkhttp.Evidence},
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				if fetched++; fetched > tt.fetches {
					return aws.Credentials{}, errors.New("none")
				}
				return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
			}),
		})
		_, err := c.ListQueues(t.Context(), &sqs.ListQueuesInput{})
		if err == nil || sdkhttp.Unsent(err) != tt.unsent || sdkhttp.Answered(err) != tt.answered || sdkhttp.Unanswered(err) == tt.answered {
			t.Errorf("%s: unsent %t, answered %t: %v", name, sdkhttp.Unsent(err), sdkhttp.Answered(err), err)
		}
	}
	if err := errors.New("of a client without options"); sdkhttp.Unsent(err) || sdkhttp.Answered(err) || sdkhttp.Unanswered(err) {
		t.Error("what is not known is told")
	}
}
