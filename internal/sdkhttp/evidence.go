package sdkhttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Evidence is an APIOption of the SDK. It makes the error of a call say how far its request got, for [Unsent], [Answered] and
// [Unanswered].
//
// The error alone does not tell: credentials that cannot be fetched fail a call with the answer of the service that gives them. STS
// says AccessDenied as SQS does. And the error of a call that the service says has succeeded (status 2xx) is no answer: the connection
// ended in the middle of it, and its result is lost.
func Evidence(stack *middleware.Stack) error {
	return errors.Join(stack.Initialize.Add(begin, middleware.Before), stack.Deserialize.Add(attempt, middleware.Before))
}

var (
	begin = middleware.InitializeMiddlewareFunc("sqsonce.evidence", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		out, md, err := next.HandleInitialize(ctx, in)
		if _, marked := errors.AsType[*callError](err); err != nil && !marked {
			err = &callError{error: err}
		}
		return out, md, err
	})
	// Each attempt of the SDK comes through here, when its request is complete, and signed.
	attempt = middleware.DeserializeMiddlewareFunc("sqsonce.evidence", func(
		ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
	) (middleware.DeserializeOutput, middleware.Metadata, error) {
		out, md, err := next.HandleDeserialize(ctx, in)
		if err != nil {
			response, _ := out.RawResponse.(*smithyhttp.Response)
			err = &callError{error: err, sent: true, answered: response != nil && response.StatusCode >= 300 && ofService(response.Header)}
		}
		return out, md, err
	})
)

// ofService reports whether an answer is the service's own, and not that of a proxy: AWS gives each one an ID. ElasticMQ does not. It
// names the error as SQS does.
func ofService(h http.Header) bool {
	return h.Get("X-Amzn-Requestid") != "" || h.Get("X-Amz-Request-Id") != "" || h.Get("X-Amzn-Query-Error") != ""
}

// callError is the error of a call with [Evidence].
type callError struct {
	error
	sent     bool // the request was given to the HTTP client
	answered bool // by the service
}

func (e *callError) Unwrap() error { return e.error }

// Unsent reports that the SDK made no request: it got no credentials, or has no Region or no endpoint.
func Unsent(err error) bool {
	e, ok := errors.AsType[*callError](err)
	return ok && !e.sent
}

// Cure says what to do where a client could not send a request, by its Region. A request that was signed had its credentials.
func Cure(region string, err error) string {
	if region == "" {
		return "the client has no Region: set AWS_REGION"
	}
	if e, ok := errors.AsType[*callError](err); ok && e.sent {
		return "check the endpoint (AWS_REGION, AWS_ENDPOINT_URL), and the network between"
	}
	return "check the credentials (the SDK tries the environment, AWS_PROFILE and the files in ~/.aws, a web identity, the container's role, the instance's role: " +
		"https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html), and the endpoint (AWS_REGION, AWS_ENDPOINT_URL)"
}

// Answered reports that err is the service's own answer. It is false for a call without [Evidence], of a client that does not pass
// options on: then it is not known.
func Answered(err error) bool {
	e, ok := errors.AsType[*callError](err)
	return ok && e.answered
}

// Unanswered reports that err is not the service's answer. It is false where that is not known.
func Unanswered(err error) bool {
	e, ok := errors.AsType[*callError](err)
	return ok && !e.answered
}
