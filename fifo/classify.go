package fifo

import (
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// proof is the fact about one entry that a response, or a missing response, proves.
type proof int

const (
	provesNothing   proof = iota // the event may be in the queue: only a success within the window can tell
	provesSent                   // the event is in the queue, from this attempt or an earlier one
	provesNotSent                // this attempt did not put it into the queue; the next one may
	provesRefused                // this attempt did not put it into the queue, and a later one would not either
	provesThrottled              // as provesNotSent, and SQS throttles the whole queue
	provesUnsigned               // as provesNotSent, but a later attempt may fail in the same way for ever: see unsigned
)

// attemptResult is the result of one attempt for one entry.
type attemptResult struct {
	proof               proof
	messageID, sequence string // with provesSent
	err                 error
	ofEvent             bool // with provesRefused: for what the event is, and for nothing else
}

// classify returns what the failure of a whole request proves. Unless it is certain that SQS refused the request before it
// put anything into the queue, or that it never got it, the failure proves nothing.
func classify(err error, w *sendWatch) attemptResult {
	r := attemptResult{proof: provesNothing, err: err}
	if api, ok := errors.AsType[smithy.APIError](err); ok && w.given.Load() || ok && !w.installed.Load() {
		r.proof = classifyCode(api.ErrorCode(), httpStatus(err), w.skewed.Load())
		return r
	}
	switch {
	case !w.neverSent():
	case !w.given.Load():
		r.proof = provesUnsigned // no credentials, no region
	case isCertificate(err):
		r.proof = provesRefused
	default:
		r.proof = provesNotSent // no connection
	}
	return r
}

func classifyCode(code string, status int, skewed bool) proof {
	switch {
	case isThrottle(code), status == 429 && isCode(code):
		return provesThrottled
	case !isCode(code), status < 400, status > 499, status == 408, isOutage(code):
		return provesNothing // a proxy may have answered instead of SQS
	case expiryCodes[code], signatureCodes[code] && skewed:
		return provesUnsigned
	default:
		return provesRefused
	}
}

// classifyEntry returns what the failure of one entry of a batch proves.
func classifyEntry(f sqstypes.BatchResultErrorEntry) attemptResult {
	err := &smithy.GenericAPIError{Code: aws.ToString(f.Code), Message: aws.ToString(f.Message), Fault: smithy.FaultServer}
	if f.SenderFault {
		err.Fault = smithy.FaultClient
	}
	// SQS reports some throttling as the sender's fault.
	if !f.SenderFault || isThrottle(err.Code) {
		return attemptResult{proof: provesNotSent, err: err}
	}
	return attemptResult{proof: provesRefused, err: err, ofEvent: !isOfRequest(err.Code)}
}

// isCode reports whether the response has an error code. The SDK sets UnknownError if it has none.
func isCode(code string) bool { return code != "" && code != "UnknownError" }

// isOutage reports whether a code says that something did not work, whatever the status of its response: RequestTimeout,
// GatewayTimeout, ServiceUnavailable, InternalFailure.
func isOutage(code string) bool {
	return strings.Contains(code, "Timeout") || strings.Contains(code, "Unavailable") || strings.Contains(code, "Internal")
}

// expiryCodes refuse the time or the credentials of a signature. The next attempt signs anew, with new credentials or a
// corrected clock.
var expiryCodes = map[string]bool{
	"ExpiredToken":          true,
	"ExpiredTokenException": true,
	"RequestExpired":        true,
	"RequestTimeTooSkewed":  true,
	"RequestInTheFuture":    true,
}

// signatureCodes refuse a signature: for a wrong secret key, and for a clock that is off, since the time is signed too.
var signatureCodes = map[string]bool{
	"InvalidSignature":          true,
	"InvalidSignatureException": true,
	"SignatureDoesNotMatch":     true,
	"AuthFailure":               true,
}

// requestCodes refuse a request with status 400 whatever its entries are.
var requestCodes = map[string]bool{
	"AccessDenied":                true,
	"AccessDeniedException":       true,
	"IncompleteSignature":         true,
	"InvalidAddress":              true,
	"InvalidClientTokenId":        true,
	"InvalidSecurity":             true,
	"MissingAuthenticationToken":  true,
	"NonExistentQueue":            true,
	"NotAuthorized":               true,
	"OptInRequired":               true,
	"QueueDeletedRecently":        true,
	"QueueDoesNotExist":           true,
	"UnrecognizedClientException": true,
	"UnsupportedOperation":        true,
}

// mayBeOneEntry reports whether a refusal of a request may be that of one entry, or of the sum of all.
func mayBeOneEntry(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok || httpStatus(err) != 400 {
		return false
	}
	return !isOfRequest(api.ErrorCode())
}

// isOfRequest reports whether a code refuses a request whatever its entries are.
func isOfRequest(code string) bool {
	if strings.Contains(strings.ToLower(code), "kms") {
		return true // the queue's key: KmsDisabled, KMS.NotFoundException
	}
	code = shortCode(code)
	return requestCodes[code] || expiryCodes[code] || signatureCodes[code]
}

// eventCodes refuse a request for the contents of its entries. The others that mayBeOneEntry admits do not say:
// InvalidParameterValue may be the event's fault or the queue's.
var eventCodes = map[string]bool{"InvalidMessageContents": true, "BatchRequestTooLong": true}

// isOfEvent reports whether a refusal of a request with one entry is one of the event.
func isOfEvent(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && mayBeOneEntry(err) && eventCodes[shortCode(api.ErrorCode())]
}

// shortCode removes the prefix that some codes have: AWS.SimpleQueueService.NonExistentQueue, KMS.ThrottlingException.
func shortCode(code string) string { return code[strings.LastIndexByte(code, '.')+1:] }

// isThrottle reports whether a code asks the client to send later.
func isThrottle(code string) bool {
	code = shortCode(code)
	_, ok := retry.DefaultThrottleErrorCodes[code]
	return ok || code == "KmsThrottled"
}

func httpStatus(err error) int {
	if r, ok := errors.AsType[interface {
		error
		HTTPStatusCode() int
	}](err); ok {
		return r.HTTPStatusCode()
	}
	return 0
}
