package host

import (
	"strconv"
	"strings"
)

// MaxBatch is the most entries of one batch call of SQS.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
const MaxBatch = 10

// EntryID is the ID of the i-th entry of a batch call. It is positional: the same message may be in a batch twice, and SQS
// refuses a batch whose IDs are not distinct.
func EntryID(i int) *string { return &entryIDs[i] }

var entryIDs = [MaxBatch]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

// EntryIndex returns the position of the entry that an answer names, or false for an ID that is none of a batch of n.
func EntryIndex(id *string, n int) (int, bool) {
	if id == nil {
		return 0, false
	}
	i, err := strconv.Atoi(*id)
	return i, err == nil && i >= 0 && i < n
}

// WithoutHandle returns what SQS says of a failed entry without the entry's receipt handle, which it quotes: "Value AQEB... for parameter
// ReceiptHandle is invalid". Who has the text, as a log does, is not to have the handle.
func WithoutHandle(text, handle string) string {
	if handle == "" {
		return text
	}
	return strings.ReplaceAll(text, handle, "...")
}
