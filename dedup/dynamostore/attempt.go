package dynamostore

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sqsonce/sqsonce/internal/backoff"
)

const (
	// maxAttempts with the backoff below spends about a second and a half on quick failures.
	maxAttempts  = 8
	leastBackoff = 25 * time.Millisecond
	mostBackoff  = time.Second
	// attemptTimeout is for a request that is never answered: the SDK's default client would wait without end. It doubles
	// with every attempt, for an endpoint that is slow rather than gone.
	attemptTimeout     = 2 * time.Second
	mostAttemptTimeout = 10 * time.Second
)

// call is one request, ready to be sent any number of times.
type call func(context.Context, func(*dynamodb.Options)) error

// attempt sends a request once and learns the server's time from the answer.
func (s *Store) attempt(ctx context.Context, n int, f call) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, min(attemptTimeout<<n, mostAttemptTimeout))
	defer cancel()
	var t trace
	err := s.conns.Do(ctx, func(ctx context.Context) error {
		t = trace{look: s.clock.look}
		return f(ctx, t.single)
	})
	if t.dateReceived {
		s.clock.observe(t.sent, t.date)
	}
	if t.unsent() && ctx.Err() == nil {
		return answered, err // by the SDK: no credentials, a bad endpoint, input that it refuses
	}
	return classify(err), err
}

// retry sends a request until it has an answer, for requests that may be repeated at any time: each repeats the same
// values, and its condition makes a second effect the same as the first.
func (s *Store) retry(ctx context.Context, f call) error {
	var err error
	for n := range maxAttempts {
		if n > 0 && !pause(ctx, n) {
			return because(context.Cause(ctx), err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var o outcome
		if o, err = s.attempt(ctx, n, f); o == answered {
			return err
		}
	}
	return err
}

// pause waits before attempt n, counted from 0, with full jitter. It reports false where ctx ended.
func pause(ctx context.Context, n int) bool {
	return backoff.Wait(ctx, rand.N(min(leastBackoff<<n, mostBackoff)))
}

// outcome is what an attempt's error says about the attempt's effect.
type outcome int

const (
	answered  outcome = iota // success, a refusal, or an error that no retry mends
	unwritten                // nothing was written, and a retry may be answered
	unknown                  // it may have been written, and may yet be
)

// passing are the errors after which nothing was written and a retry makes sense, beyond the SDK's list of throttling
// codes. The SDK retries none of them.
var passing = map[string]bool{
	"TransactionConflictException":     true, // another's transaction has the item
	"ReplicatedWriteConflictException": true, // another Region's write
}

func classify(err error) outcome {
	if err == nil {
		return answered
	}
	api, isAPI := errors.AsType[smithy.APIError](err)
	if !isAPI {
		// No answer that could be read: a connection that broke, a timeout, a checksum that does not match.
		return unknown
	}
	if _, throttled := retry.DefaultThrottleErrorCodes[api.ErrorCode()]; throttled || passing[api.ErrorCode()] {
		return unwritten
	}
	// A signature refused since the host's clock is off. The SDK has taken the server's time from the answer by now.
	if mark, ok := errors.AsType[interface {
		error
		RetryableError() bool
	}](err); ok && mark.RetryableError() {
		return unwritten
	}
	if _, timeout := retry.DefaultRetryableErrorCodes[api.ErrorCode()]; timeout {
		return unknown
	}
	// "The operation may have succeeded or failed", says the developer guide of an HTTP 500.
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && response.HTTPStatusCode() >= http.StatusInternalServerError {
		return unknown
	}
	if api.ErrorFault() == smithy.FaultServer {
		return unknown
	}
	return answered
}
