// Package awserr says what AWS's errors mean for a person at the command line.
package awserr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
)

// deniedCodes are those of AWS's errors that end with other credentials or another policy.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
var deniedCodes = []string{
	"AccessDenied", "AccessDeniedException", "AuthorizationError", "ExpiredToken", "ExpiredTokenException", "IncompleteSignature",
	"InvalidClientTokenId", "InvalidSignatureException", "KMS.AccessDeniedException", "KmsAccessDenied", "MissingAuthenticationToken",
	"MissingAuthenticationTokenException", "NotAuthorized", "OptInRequired", "RequestExpired", "SignatureDoesNotMatch",
	"UnrecognizedClientException",
}

// Denied reports whether AWS has refused the credentials, or what they may do.
func Denied(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains(deniedCodes, strings.TrimPrefix(api.ErrorCode(), "AWS.SimpleQueueService."))
}

// PassRole is the action of whoever hands a role to a service.
const PassRole = "iam:PassRole"

// Action returns the action of the call that failed, as policies name it: "sqs:SendMessage". It is "" where the error is of no call.
func Action(err error) string {
	op, ok := errors.AsType[*smithy.OperationError](err)
	if !ok {
		return ""
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok && Denied(err) && strings.Contains(api.ErrorMessage(), PassRole) {
		return PassRole
	}
	return service(op) + ":" + ActionOf(op.OperationName)
}

// service is the service of a call, as policies name it.
func service(op *smithy.OperationError) string { return strings.ToLower(op.ServiceID) }

// ActionOf returns the action of an operation: one of SQS covers its batches too, and a transaction needs those of its parts.
func ActionOf(operation string) string {
	if operation == "TransactGetItems" {
		return "GetItem"
	}
	return strings.TrimSuffix(operation, "Batch")
}

// Retryer is for what a person waits for: as often as the SDK's own, and not for half a minute.
func Retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = 300 * time.Millisecond })
}

// longestAnswer is far more than AWS answers with. The SDK reads an answer into memory, whoever it is from.
const longestAnswer = 16 << 20

// Limited is a client whose answers end after 16 MiB, as if the connection had been closed.
func Limited(c aws.HTTPClient) aws.HTTPClient { return limited{c} }

type limited struct{ client aws.HTTPClient }

func (l limited) Do(r *http.Request) (*http.Response, error) {
	res, err := l.client.Do(r)
	if res != nil && res.Body != nil {
		res.Body = &limitedBody{ReadCloser: res.Body, left: longestAnswer}
	}
	return res, err
}

type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// identityCodes are those of requests whose sender AWS does not know: no policy is about them.
var identityCodes = []string{
	"ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "InvalidClientTokenId", "InvalidSignatureException", "RequestExpired",
	"SignatureDoesNotMatch", "UnrecognizedClientException",
}

const (
	unknownCode    = "UnknownError" // the SDK's code for an answer that names no error
	longestMessage = 300            // bytes of what AWS says, or what answers in its place
)

// Unidentified reports whether AWS does not know who has sent the request: the credentials are wrong or have expired.
func Unidentified(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains(identityCodes, api.ErrorCode())
}

// Reason is why a call of AWS has no answer, in one short sentence: the action that is denied, what AWS says, or why the service cannot
// be reached at its endpoint. An error of no call is its own text.
func Reason(err error) string {
	op, ok := errors.AsType[*smithy.OperationError](err)
	if !ok {
		return err.Error()
	}
	action := Action(err)
	api, isAPI := errors.AsType[smithy.APIError](err)
	response, answered := errors.AsType[*smithyhttp.ResponseError](err)
	switch {
	case Unidentified(err):
		return fmt.Sprintf("AWS refuses the credentials: %s (%s)", api.ErrorCode(), action)
	case Denied(err):
		return action + " is denied"
	case errors.Is(err, context.DeadlineExceeded):
		return service(op) + " does not answer in time"
	case Unsent(err):
		return fmt.Sprintf("%s does not answer%s: %s", service(op), at(err), Cause(err))
	case Answered(err):
		return fmt.Sprintf("%s: %s: %s", action, api.ErrorCode(), shown.Short(api.ErrorMessage(), longestMessage))
	case answered && response.Response != nil && response.HTTPStatusCode() != 0:
		return fmt.Sprintf("%s: status %d without an error code of AWS: perhaps a proxy or an emulator answered", action, response.HTTPStatusCode())
	case isAPI:
		return action + ": AWS did not answer"
	}
	return fmt.Sprintf("%s: %v", action, op.Err)
}

// Unsent reports whether a service could not be reached: no connection, no such host, or one that was closed before an answer.
func Unsent(err error) bool {
	_, ok := errors.AsType[*smithyhttp.RequestSendError](err)
	return ok
}

// Answered reports whether a call has an answer of AWS, an error too. What else answers, such as the page of a network that asks for a
// login, says nothing of AWS.
func Answered(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return err == nil || ok && api.ErrorCode() != unknownCode
}

// Busy reports whether AWS itself has answered that it does not answer now: it throttles, or has failed.
func Busy(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok || !Answered(err) {
		return false
	}
	response, answered := errors.AsType[*smithyhttp.ResponseError](err)
	_, throttled := retry.DefaultThrottleErrorCodes[api.ErrorCode()]
	return throttled || answered && response.Response != nil && response.HTTPStatusCode() >= 500
}

// Cause is the last part of an error of the network: the others repeat the method and the address.
func Cause(err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return e.Err
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the connection was closed before the answer was complete")
	}
	return err
}

// at is where a request went to.
func at(err error) string {
	e, ok := errors.AsType[*url.Error](err)
	if !ok {
		return ""
	}
	u, bad := url.Parse(e.URL)
	if bad != nil {
		return ""
	}
	return fmt.Sprintf(" at %s://%s", u.Scheme, u.Host)
}
