package fifo

import (
	"crypto/md5"
	"encoding/hex"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/host"
)

var (
	errNoResult   = errors.New("fifo: SQS returned neither success nor failure for the entry")
	errTwoResults = errors.New("fifo: SQS returned more than one result for the entry")
	errChecksum   = errors.New("fifo: SQS returned the MD5 of another body than the one sent")
)

// readResults returns the result of each entry. An entry that the response does not name, names twice or has another
// checksum for may be in the queue or not.
func readResults(out *sqs.SendMessageBatchOutput, batch []*entry) []attemptResult {
	results := make([]attemptResult, len(batch))
	for i := range results {
		results[i] = attemptResult{proof: provesNothing, err: errNoResult}
	}
	named := make([]bool, len(batch))
	set := func(id *string, result func(*entry) attemptResult) {
		i, ok := host.EntryIndex(id, len(batch))
		switch {
		case !ok: // an ID that was not sent: the entry it stands for stays without a result
		case named[i]:
			results[i] = attemptResult{proof: provesNothing, err: errTwoResults}
		default:
			named[i] = true
			results[i] = result(batch[i])
		}
	}
	for _, s := range out.Successful {
		set(s.Id, func(e *entry) attemptResult {
			sum := md5.Sum([]byte(e.event.Body))
			if aws.ToString(s.MD5OfMessageBody) != hex.EncodeToString(sum[:]) {
				return attemptResult{proof: provesNothing, err: errChecksum}
			}
			return attemptResult{proof: provesSent, messageID: aws.ToString(s.MessageId), sequence: aws.ToString(s.SequenceNumber)}
		})
	}
	for _, f := range out.Failed {
		set(f.Id, func(*entry) attemptResult { return classifyEntry(f) })
	}
	return results
}
