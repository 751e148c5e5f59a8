package fifo

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
)

// proof is what an answer, or its absence, proves about one entry.
type proof int

const (
	provesNothing  proof = iota // it may be in the queue: only a success inside the window can tell
	provesSent                  // it is in the queue, by this attempt or an earlier one
	provesNotSent               // this attempt did not enqueue it; the next may
	provesRefused               // this attempt did not enqueue it, and later ones would not either
	provesThrottle              // as provesNotSent, for all entries of the queue
)

// answer is the result of one attempt for one entry.
type answer struct {
	proof               proof
	messageID, sequence string // with provesSent
	err                 error
}

// classify returns what the failure of a whole request proves. Where it is not certain that SQS refused the request
// before it enqueued anything, it proves nothing.
func classify(err error, notReached bool) answer {
	if notReached {
		// No credentials, no endpoint: repeating it in silence would hide a fault of the configuration for minutes. But an
		// attempt's deadline may pass while credentials are being fetched.
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			return answer{proof: provesNotSent, err: err}
		}
		return answer{proof: provesRefused, err: err}
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return answer{proof: classifyCode(api.ErrorCode(), httpStatus(err)), err: err}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return answer{proof: provesNotSent, err: err} // no connection, no request
	}
	return answer{proof: provesNothing, err: err}
}

func classifyCode(code string, status int) proof {
	switch {
	case isThrottle(code), status == 429:
		return provesThrottle
	case !isCode(code), status < 400, status > 499, status == 408:
		return provesNothing // also what a proxy answers in SQS's place
	case heals[code]:
		return provesNotSent
	default:
		return provesRefused
	}
}

// isCode reports whether SQS named its error. The SDK makes up UnknownError where an answer has no code.
func isCode(code string) bool { return code != "" && code != "UnknownError" }

// heals are refusals of a signature, which the next attempt makes anew: with fresh credentials, or a corrected clock.
var heals = map[string]bool{
	"ExpiredToken":          true,
	"ExpiredTokenException": true,
	"RequestExpired":        true,
	"RequestTimeTooSkewed":  true,
	"RequestInTheFuture":    true,
}

// isThrottle reports whether a code says "later". Codes of the query protocol have a prefix: KMS.ThrottlingException.
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
