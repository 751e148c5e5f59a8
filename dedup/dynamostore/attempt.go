package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

const (
	// maxAttempts with the backoff below, which grows fourfold, takes about a second and a half if failures are quick. More would only
	// add to the load of a table that is down.
	maxAttempts  = 5
	leastBackoff = 50 * time.Millisecond
	mostBackoff  = time.Second
	// attemptTimeout limits a request that is never answered: the SDK's default client waits without end. It doubles with
	// every attempt, for an endpoint that is slow.
	attemptTimeout     = 2 * time.Second
	mostAttemptTimeout = 10 * time.Second
)

// attemptResult is an attempt's effect, according to its error.
type attemptResult int

const (
	answered  attemptResult = iota // success, a refusal, or an error after which a retry does not help
	unwritten                      // nothing was written, and a retry may succeed
	unknown                        // unknown outcome: it may have been written, or may be written later
)

// unsentError is the SDK's own error before it sent a request.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// misconfigured reports that no retry helps: no credentials, no region, a bad endpoint. False if the service that gives the
// credentials did not answer, or answered with what it does not answer for ever.
func (e *unsentError) misconfigured() bool {
	_, network := errors.AsType[net.Error](e.error)
	_, answer := errors.AsType[smithy.APIError](e.error)
	return !network && (!answer || classify(e.error) == answered)
}

// call is one request, ready to be sent any number of times.
type call func(context.Context, func(*dynamodb.Options)) error

// attempt sends a request once. The clock learns from the answer.
func (s *Store) attempt(ctx context.Context, n int, f call) (attemptResult, error) {
	ctx, cancel := context.WithTimeout(ctx, min(attemptTimeout<<n, mostAttemptTimeout))
	defer cancel()
	t := trace{clock: s.clock}
	err := s.conns.Do(ctx, func(ctx context.Context) error { return f(ctx, t.options) })
	if sdkhttp.Unsent(err) && ctx.Err() == nil {
		return answered, &unsentError{err}
	}
	result := classify(err)
	if result == answered {
		s.away.Store(false)
	}
	return result, err
}

// errNoTime is for a client whose answers don't bring DynamoDB's time. Without it leases would never end.
var errNoTime = fmt.Errorf("%w: dynamostore: the answers of DynamoDB do not say its time: a wrapper of the client must pass the options of each call on, "+
	"and a proxy the headers Date and x-amzn-RequestId", sqsonce.ErrMisconfigured)

// checkTime is called after an answer. It returns an error if no answer has brought DynamoDB's time.
func (s *Store) checkTime() error {
	if s.clock.known() {
		return nil
	}
	return errNoTime
}

// attempts is how often a call sends a request without an answer. While DynamoDB is down, or throttles, it is once, because
// dedup calls again for as long as it can.
func (s *Store) attempts() int {
	if s.away.Load() {
		return 1
	}
	return maxAttempts
}

// retry sends a request until it is answered. It is for requests that may be repeated at any time: each repeats the same
// values, and its condition makes a second effect the same as the first.
func (s *Store) retry(ctx context.Context, f call) error {
	var err error
	for n := range s.attempts() {
		if n > 0 && !pause(ctx, n) {
			return because(context.Cause(ctx), err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var result attemptResult
		if result, err = s.attempt(ctx, n, f); result == answered {
			return err
		}
	}
	s.away.Store(true)
	return err
}

// pause waits before attempt n, counted from 0. It reports false if ctx ended.
func pause(ctx context.Context, n int) bool {
	d := min(leastBackoff<<(2*(n-1)), mostBackoff)
	return host.Wait(ctx, d/2+rand.N(d/2))
}

// because is the reason for which a call was given up, with the error of its last attempt.
func because(reason, last error) error {
	if last == nil {
		return reason
	}
	return fmt.Errorf("%w: %w", reason, last)
}

// conflictCodes are errors after which the item is unchanged and a retry may succeed, beyond the SDK's throttling codes.
// The SDK doesn't retry them.
var conflictCodes = map[string]bool{
	"TransactionConflictException":     true, // with another transaction on the item
	"ReplicatedWriteConflictException": true, // with another Region's write
	"ResourceInUseException":           true, // the table is being created, changed or deleted
}

func classify(err error) attemptResult {
	if err == nil {
		return answered
	}
	api, isAPI := errors.AsType[smithy.APIError](err)
	if !isAPI {
		// No answer that can be read: a broken connection, a timeout, a checksum that does not match.
		return unknown
	}
	if _, throttled := retry.DefaultThrottleErrorCodes[api.ErrorCode()]; throttled || conflictCodes[api.ErrorCode()] {
		return unwritten
	}
	// A signature that was refused since the host's clock is wrong. By now the SDK has read the server's time from the
	// answer.
	if mark, ok := errors.AsType[interface {
		error
		RetryableError() bool
	}](err); ok && mark.RetryableError() {
		return unwritten
	}
	if _, timeout := retry.DefaultRetryableErrorCodes[api.ErrorCode()]; timeout {
		return unknown
	}
	// "The operation may have succeeded or failed", says the developer guide of an HTTP 500:
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && response.HTTPStatusCode() >= http.StatusInternalServerError {
		return unknown
	}
	if api.ErrorFault() == smithy.FaultServer {
		return unknown
	}
	return answered
}

// trace reads the time from the answer to one attempt, a success or an error.
type trace struct{ clock *clock }

// options make a call one attempt, trace it, and have its error say whether a request was sent at all. The SDK's own
// retries would send an acquire again without the check that its lease is ahead, would not retry a transaction conflict,
// and would hide that an earlier attempt has an unknown outcome.
func (t *trace) options(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	o.HTTPClient = sdkhttp.Whole(o.HTTPClient)
	o.APIOptions = append(o.APIOptions, sdkhttp.Evidence, func(stack *middleware.Stack) error {
		// The last middleware before the transport: the request is complete, and signed.
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("dynamostore.send", t.send), middleware.After)
	})
}

func (t *trace) send(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	sent := t.clock.send()
	out, md, err := next.HandleDeserialize(ctx, in)
	if response, ok := out.RawResponse.(*smithyhttp.Response); ok && response != nil {
		t.clock.read(sent, response.Header)
	}
	return out, md, err
}
