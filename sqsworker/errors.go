package sqsworker

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// ErrAlreadyRun is returned by a second call of Run.
var ErrAlreadyRun = errors.New("sqsworker: Run was called before: a worker runs once, make another one with New")

// StopError counts what a stop could not finish. Nothing is lost: SQS delivers these messages again.
type StopError struct {
	Stuck     int64 // handlers that did not return after their context was cancelled
	Abandoned int64 // messages that stay hidden until their visibility timeout ends, those of stuck handlers included
	Undeleted int64 // messages whose handler succeeded and whose delete was not confirmed
}

func (e *StopError) Error() string {
	return fmt.Sprintf("sqsworker: unclean stop: %d handlers still run, %d messages stay hidden until their visibility timeout ends, %d finished messages are not deleted",
		e.Stuck, e.Abandoned, e.Undeleted)
}

var (
	errMissing  = errors.New("sqsworker: SQS answered the batch without a result for this entry")
	errChecksum = errors.New("sqsworker: body does not match its MD5: it was damaged on the way, the message is delivered again")
	errNoDLQ    = errors.New("sqsworker: no dead-letter queue is known: give the queue a RedrivePolicy, or set Options.DeadLetterQueue")
)

// entryError is the failure of one entry of a batch call that succeeded.
type entryError struct {
	code, message string
	senderFault   bool // SQS blames the entry, and not itself
}

func (e *entryError) Error() string { return "sqsworker: " + e.code + ": " + e.message }

// ErrorCode is for telemetry: hooks get the error, and the SDK's errors have this method.
func (e *entryError) ErrorCode() string { return e.code }

// errorCode returns SQS's code without the prefix of its older protocol, or "" for an error that is not an answer of SQS.
func errorCode(err error) string {
	code := ""
	if e, ok := errors.AsType[*entryError](err); ok {
		code = e.code
	} else if e, ok := errors.AsType[smithy.APIError](err); ok {
		code = e.ErrorCode()
	}
	return strings.TrimPrefix(code, "AWS.SimpleQueueService.")
}

// isHandleDead reports an answer after which a receipt handle never works again: it is not the newest, the message is
// deleted, or the visibility timeout or the 12 h are over. For FIFO queues and for the 12 h the code is InvalidParameterValue; only the text says
// which value.
func isHandleDead(err error) bool {
	switch errorCode(err) {
	case "ReceiptHandleIsInvalid", "MessageNotInflight":
		return true
	case "InvalidParameterValue", "InvalidParameterValueException":
		text := strings.ToLower(err.Error())
		return strings.Contains(text, "expired") || strings.Contains(text, "not available") || strings.Contains(text, "total visibilitytimeout")
	}
	return false
}

// isRefused reports that SQS refuses to change the visibility timeout of one message, for whatever reason: a retry would be
// refused too. Codes and texts differ between kinds of queues, and between emulators.
func isRefused(err error) bool {
	e, ok := errors.AsType[*entryError](err)
	return isHandleDead(err) || ok && e.senderFault && !isThrottle(err)
}

// fatalCodes are errors that no retry mends while the process runs. Expired credentials are not among them: they are
// rotated. The SDK reports the codes of SQS's older Query protocol (KMS.DisabledException) if the answer carries
// them, else the names of its own error types (KmsDisabled).
var fatalCodes = []string{
	"QueueDoesNotExist", "NonExistentQueue", "QueueDeletedRecently", "AccessDenied", "AccessDeniedException",
	"InvalidAddress", "InvalidSecurity", "UnsupportedOperation",
	"KmsAccessDenied", "KmsDisabled", "KmsInvalidKeyUsage", "KmsInvalidState", "KmsNotFound", "KmsOptInRequired",
	"KMS.AccessDeniedException", "KMS.DisabledException", "KMS.InvalidKeyUsageException", "KMS.InvalidStateException",
	"KMS.NotFoundException", "KMS.OptInRequired",
}

func isFatal(err error) bool {
	return slices.Contains(fatalCodes, errorCode(err)) || isCredentialsRefused(err)
}

var credentialsCodes = []string{
	"MissingAuthenticationToken", "MissingAuthenticationTokenException", // anonymous credentials
	"InvalidClientTokenId", "UnrecognizedClientException", "OptInRequired",
}

func isCredentialsRefused(err error) bool { return slices.Contains(credentialsCodes, errorCode(err)) }

// passingCodes are 4xx answers that time mends: credentials that are rotated, a clock that is set.
var passingCodes = []string{"ExpiredToken", "ExpiredTokenException", "RequestExpired", "RequestTimeTooSkewed"}

// isFinal reports an answer to a call that changes nothing: asked again, SQS would answer the same.
func isFinal(err error) bool {
	return !isOutcomeUnknown(err) && !isThrottle(err) && !isSignature(err) && !slices.Contains(passingCodes, errorCode(err))
}

// noCredentials are texts of errors without a type: of the last provider in the SDK's default chain, of an empty static
// one, and of the one that is there to sign nothing.
var noCredentials = []string{
	"no EC2 IMDS role found", "empty EC2 IMDS role list", "static credentials are empty", "AnonymousCredentials is not a valid",
}

// isNoCredentials reports that the SDK has found no credentials, and has not sent the request. An instance's metadata
// service that is away for a while answers so too: it is told from missing credentials only by having worked before.
func isNoCredentials(err error) bool {
	return err != nil && slices.ContainsFunc(noCredentials, func(text string) bool { return strings.Contains(err.Error(), text) })
}

func isAccessDenied(err error) bool {
	code := errorCode(err)
	return code == "AccessDenied" || code == "AccessDeniedException"
}

func isMissing(err error) bool {
	code := errorCode(err)
	return code == "QueueDoesNotExist" || code == "NonExistentQueue"
}

func isThrottle(err error) bool {
	if r, ok := errors.AsType[*awshttp.ResponseError](err); ok && r.HTTPStatusCode() == http.StatusTooManyRequests {
		return true
	}
	code := errorCode(err)
	return strings.Contains(code, "Throttl") || code == "OverLimit" || code == "RequestLimitExceeded"
}

// isOutcomeUnknown reports that the call may have had its effect: no answer came, or SQS failed while it worked. A status
// of 4xx is an answer that nothing was done, also with a code that the SDK does not know, but for 408: a proxy may answer
// so after it has passed the request on.
func isOutcomeUnknown(err error) bool {
	if e, ok := errors.AsType[*entryError](err); ok {
		return !e.senderFault && !isThrottle(err)
	}
	e, answered := errors.AsType[smithy.APIError](err)
	if !answered {
		return true
	}
	if e.ErrorFault() == smithy.FaultClient || isThrottle(err) {
		return false
	}
	r, ok := errors.AsType[*awshttp.ResponseError](err)
	return !ok || r.HTTPStatusCode() < 400 || r.HTTPStatusCode() > 499 || r.HTTPStatusCode() == http.StatusRequestTimeout
}
