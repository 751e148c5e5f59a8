package sqsworker

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// entryID is positional. A message ID will not do: the same message may be in a batch twice, and SQS refuses a batch
// whose IDs are not distinct.
func entryID(i int) *string { return &entryIDs[i] }

var entryIDs = [maxBatch]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

// results has one error for each entry of a batch. SQS answers with success where single entries have failed; an entry
// that the answer does not name has an unknown outcome, which is an error too.
type results []error

// newResults makes those of a batch of n, all of which have err, or are not named yet.
func newResults(n int, err error) results {
	r := make(results, n)
	for i := range r {
		if r[i] = err; err == nil {
			r[i] = errMissing
		}
	}
	return r
}

func (r results) succeeded(id *string) { r.put(id, nil) }

func (r results) failed(entries []sqstypes.BatchResultErrorEntry) {
	for _, f := range entries {
		r.put(f.Id, &entryError{code: aws.ToString(f.Code), message: aws.ToString(f.Message)})
	}
}

func (r results) put(id *string, err error) {
	if i, e := strconv.Atoi(aws.ToString(id)); e == nil && i >= 0 && i < len(r) {
		r[i] = err
	}
}
