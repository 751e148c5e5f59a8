package fifo

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// proof is what a response, or a missing response, proves about one entry.
type proof int

const (
	provesNothing   proof = iota // the event may be in the queue: only a success within the window can tell
	provesSent                   // the event is in the queue, from this attempt or an earlier one
	provesNotSent                // this attempt did not put it into the queue; the next one may
	provesRefused                // this attempt did not put it into the queue, and a later one would not either
	provesThrottled              // as provesNotSent, and SQS throttles the whole queue
)

// attemptResult is the result of one attempt for one entry.
type attemptResult struct {
	proof               proof
	messageID, sequence string // with provesSent
	err                 error
}

// classify returns what the failure of a whole request proves. Unless it is certain that SQS refused the request before it
// put anything into the queue, the failure proves nothing.
func classify(err error, neverSent bool) attemptResult {
	if neverSent {
		// No credentials, no endpoint: without an error at once, a wrong configuration would stay hidden for minutes. But the
		// attempt's deadline may also have passed while the SDK was fetching credentials.
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			return attemptResult{proof: provesNotSent, err: err}
		}
		return attemptResult{proof: provesRefused, err: err}
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return attemptResult{proof: classifyCode(api.ErrorCode(), httpStatus(err)), err: err}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return attemptResult{proof: provesNotSent, err: err} // no connection, no request
	}
	return attemptResult{proof: provesNothing, err: err}
}

func classifyCode(code string, status int) proof {
	switch {
	case isThrottle(code), status == 429:
		return provesThrottled
	case !isCode(code), status < 400, status > 499, status == 408:
		return provesNothing // a proxy may have answered instead of SQS
	case signatureCodes[code]:
		return provesNotSent
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
	return attemptResult{proof: provesRefused, err: err}
}

// isCode reports whether the response has an error code. The SDK sets UnknownError if it has none.
func isCode(code string) bool { return code != "" && code != "UnknownError" }

// signatureCodes refuse the signature of a request. The next attempt signs anew, with new credentials or a corrected clock.
var signatureCodes = map[string]bool{
	"ExpiredToken":          true,
	"ExpiredTokenException": true,
	"RequestExpired":        true,
	"RequestTimeTooSkewed":  true,
	"RequestInTheFuture":    true,
}

// isThrottle reports whether a code asks the client to send later. Some codes have a prefix: KMS.ThrottlingException.
func isThrottle(code string) bool {
	code = code[strings.LastIndexByte(code, '.')+1:]
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
