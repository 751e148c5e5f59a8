package sqsworker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

// ErrAlreadyRun is the error of a second call of Run.
var ErrAlreadyRun = errors.New("Run was called before: a worker runs once, make another one with New")

// StopError counts the work that a stop could not finish. Messages aren't lost, because SQS delivers them again.
type StopError struct {
	Stuck     int64 // handlers that did not return after their context was cancelled
	Abandoned int64 // messages that stay hidden until their visibility timeout ends, those of stuck handlers included
	Undeleted int64 // messages that are done but were not deleted. SQS may deliver them again
}

func (e *StopError) Error() string {
	return fmt.Sprintf("unclean stop: %d handlers still run, %d messages stay hidden until their visibility timeout ends, %d finished messages are not deleted",
		e.Stuck, e.Abandoned, e.Undeleted)
}

var (
	errMissing  = errors.New("sqsworker: SQS answered the batch without a result for this entry")
	errChecksum = errors.New("sqsworker: body does not match its MD5: it was damaged on the way, the message is delivered again")
	// errNoAttributes is an answer that says nothing, also not that there is no redrive policy.
	errNoAttributes = errors.New("sqsworker: GetQueueAttributes was answered without attributes: the endpoint or a proxy is at fault")

	errNoDLQ = errors.New("sqsworker: the dead-letter queue is unknown: give the queue a RedrivePolicy, or set Options.DeadLetterQueue")
)

// entryError is the failure of one entry of a batch call that succeeded.
type entryError struct {
	code, message string
	senderFault   bool // SQS blames the entry, and not itself
}

func (e *entryError) Error() string { return "sqsworker: " + e.code + ": " + e.message }

// ErrorCode is for telemetry. Hooks get the error, and the SDK's errors have this method.
func (e *entryError) ErrorCode() string { return e.code }

// errorCode returns SQS's code without the prefix of its older protocol, or "" for an error that is not an answer of SQS. An error
// from before the request, of credentials for example, is none, whatever code is in it.
func errorCode(err error) string {
	code := ""
	if e, ok := errors.AsType[*entryError](err); ok {
		code = e.code
	} else if e, ok := errors.AsType[smithy.APIError](err); ok && sdkhttp.Answered(err) {
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

// fatalCodes are errors that retries can't fix while the process runs. Expired credentials are not among them, because they
// are rotated. A missing queue is one only after two answers, see absent, and refused credentials after three, see signature. A code that
// is not in the list is retried. The SDK reports the codes of SQS's older Query
// protocol (KMS.DisabledException) if the answer has them, else the names of its own error types (KmsDisabled).
var fatalCodes = []string{
	"QueueDeletedRecently", "AccessDenied", "AccessDeniedException",
	"InvalidAddress", "InvalidSecurity", "UnsupportedOperation",
	"KmsAccessDenied", "KmsDisabled", "KmsInvalidKeyUsage", "KmsInvalidState", "KmsNotFound", "KmsOptInRequired",
	"KMS.AccessDeniedException", "KMS.DisabledException", "KMS.InvalidKeyUsageException", "KMS.InvalidStateException",
	"KMS.NotFoundException", "KMS.OptInRequired",
}

func isFatal(err error) bool { return slices.Contains(fatalCodes, errorCode(err)) }

// unsentError is the error of a call that was not made.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// isUnsent reports that no request can have reached SQS: the call was not made, there were no credentials, no Region or no endpoint, or the endpoint was not
// found, refused the connection, or has another certificate.
func isUnsent(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, unsent := errors.AsType[*unsentError](err)
	return certificate || unsent || sdkhttp.Unsent(err)
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
	e, ok := errors.AsType[smithy.APIError](err)
	if !ok || !sdkhttp.Answered(err) {
		return true
	}
	if e.ErrorFault() == smithy.FaultClient || isThrottle(err) {
		return false
	}
	r, ok := errors.AsType[*awshttp.ResponseError](err)
	return !ok || r.HTTPStatusCode() < 400 || r.HTTPStatusCode() > 499 || r.HTTPStatusCode() == http.StatusRequestTimeout
}
