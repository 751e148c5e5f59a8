package sqsworker

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
)

// ErrAlreadyRun is what a second call of Run returns.
var ErrAlreadyRun = errors.New("sqsworker: Run was called before")

// StopError says what a stop could not bring to an end. None of it is lost: SQS delivers such messages again.
type StopError struct {
	Stuck     int64 // handlers that did not return after their context was cancelled
	Abandoned int64 // messages left to their visibility timeout, those of stuck handlers among them
	Undeleted int64 // messages whose handler succeeded and whose delete could not be confirmed
}

func (e *StopError) Error() string {
	return fmt.Sprintf("sqsworker: stop left %d handlers running, %d messages to their visibility timeout and %d undeleted",
		e.Stuck, e.Abandoned, e.Undeleted)
}

var (
	errMissing  = errors.New("sqsworker: no result for this entry")
	errChecksum = errors.New("sqsworker: body does not match its MD5")
	errNoDLQ    = errors.New("sqsworker: no dead-letter queue known")
)

// entryError is the failure of one entry of a batch that as a whole was answered with success.
type entryError struct {
	code, message string
}

func (e *entryError) Error() string { return "sqsworker: " + e.code + ": " + e.message }

// errorCode returns SQS's code without the legacy prefix, or "" for an error that is not an answer.
func errorCode(err error) string {
	code := ""
	if e, ok := errors.AsType[*entryError](err); ok {
		code = e.code
	} else if e, ok := errors.AsType[smithy.APIError](err); ok {
		code = e.ErrorCode()
	}
	return strings.TrimPrefix(code, "AWS.SimpleQueueService.")
}

// isHandleDead reports an answer after which a handle never works again: it is not the newest, or the visibility
// timeout or the 12 h are over. FIFO queues and the 12 h are reported as InvalidParameterValue, told by the text alone.
func isHandleDead(err error) bool {
	switch errorCode(err) {
	case "ReceiptHandleIsInvalid", "MessageNotInflight":
		return true
	case "InvalidParameterValue", "InvalidParameterValueException":
		text := strings.ToLower(err.Error())
		return strings.Contains(text, "expired") || strings.Contains(text, "total visibilitytimeout")
	}
	return false
}

// fatalCodes cannot heal while the process runs. Expired or unknown credentials are not among them: they are rotated.
// The SDK reports the codes of SQS's older Query protocol (KMS.DisabledException) where the answer carries them, else
// the names of its own error types (KmsDisabled).
var fatalCodes = []string{
	"QueueDoesNotExist", "NonExistentQueue", "QueueDeletedRecently", "AccessDenied", "AccessDeniedException",
	"InvalidAddress", "InvalidSecurity", "UnsupportedOperation",
	"KmsAccessDenied", "KmsDisabled", "KmsInvalidKeyUsage", "KmsInvalidState", "KmsNotFound", "KmsOptInRequired",
	"KMS.AccessDeniedException", "KMS.DisabledException", "KMS.InvalidKeyUsageException", "KMS.InvalidStateException",
	"KMS.NotFoundException", "KMS.OptInRequired",
}

func isFatal(err error) bool { return slices.Contains(fatalCodes, errorCode(err)) }

func isAccessDenied(err error) bool {
	code := errorCode(err)
	return code == "AccessDenied" || code == "AccessDeniedException"
}

func isMissing(err error) bool {
	code := errorCode(err)
	return code == "QueueDoesNotExist" || code == "NonExistentQueue"
}

func isThrottle(err error) bool {
	code := errorCode(err)
	return strings.Contains(code, "Throttl") || code == "OverLimit" || code == "RequestLimitExceeded"
}

// isUnknown reports that the call may have had its effect: no answer came, or the service failed while it worked.
func isUnknown(err error) bool {
	e, answered := errors.AsType[smithy.APIError](err)
	return !answered || e.ErrorFault() != smithy.FaultClient && !isThrottle(err)
}
