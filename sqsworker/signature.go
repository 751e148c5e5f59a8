package sqsworker

import (
	"slices"
	"time"
)

// signatureCodes are the answers to a wrong secret key, and also to a clock that is more than five minutes off, because the
// signature covers the time. Those below are the answers to a wrong access key, and also to one that AWS has just made, until each of its
// services knows it.
var signatureCodes = []string{
	"SignatureDoesNotMatch", "InvalidSignatureException",
	"InvalidClientTokenId", "UnrecognizedClientException", "OptInRequired",
	"MissingAuthenticationToken", "MissingAuthenticationTokenException", // anonymous credentials
}

func isSignature(err error) bool { return slices.Contains(signatureCodes, errorCode(err)) }

const (
	signatureRefusals = 3
	signaturePatience = 4 * time.Second
	mostDelay         = 20 * time.Second // between receives that fail, and between reads of the attributes at the start
	signatureDelay    = 2 * time.Second  // the same, after a refused signature
)

func mostDelayAfter(err error) time.Duration {
	if isSignature(err) {
		return signatureDelay
	}
	return mostDelay
}

// signature counts the calls of one kind in a row whose signature SQS refuses. The SDK learns from the Date of such an answer
// how far the clock is off, and signs the next call right. So the refusal ends Run only if it comes again. A call counts if
// it began after the last refusal was there, because all calls under way when the clock jumped are refused. The long polls
// among them have the SDK learn a wrong offset once more when they end, which costs another refusal. So Run ends after three,
// over some seconds. A key that is wrong ends Run within ten seconds.
type signature struct {
	refused     int
	first, last time.Time // refusals
}

// ends takes the answer, or nil, to a call that began at start, and says whether it ends Run.
func (s *signature) ends(err error, start, now time.Time) bool {
	switch {
	case err == nil:
		*s = signature{}
	case !isSignature(err), start.Before(s.last):
	default:
		if s.refused == 0 {
			s.first = now
		}
		s.refused++
		s.last = now
	}
	return isSignature(err) && s.refused >= signatureRefusals && elapsed(now, s.first) >= signaturePatience
}

// signatures are the kinds of calls that the loop makes again and again: one kind may be refused while others are not.
type signatures struct{ receives, deletes, changes signature }
