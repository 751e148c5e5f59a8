package memsqs

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/internal/injector"
)

type batchInput[E any] struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []E
}

type batchOutput[R any] struct {
	Successful []R          `json:",omitempty"`
	Failed     []batchError `json:",omitempty"`
}

type batchDone struct {
	ID string `json:"Id"`
}

type batchError struct {
	ID          string `json:"Id"`
	SenderFault bool
	Code        string
	Message     string `json:",omitempty"`
}

// runBatch checks a batch request as a whole and then performs its entries in order, each with perform. checkAll, which
// may be nil, is a further check of the whole request.
func runBatch[E, R any](c *call, s *Server, in *batchInput[E], id func(*E) string, checkAll func(*queue) error, perform func(*queue, *E, time.Time) (R, error)) (*batchOutput[R], error) {
	c.entries = len(in.Entries)
	out := &batchOutput[R]{}
	err := s.withQueue(in.QueueURL, func(q *queue, now time.Time) error {
		if err := checkBatch(in.Entries, id); err != nil {
			return err
		}
		if checkAll != nil {
			if err := checkAll(q); err != nil {
				return err
			}
		}
		for i := range in.Entries {
			e := &in.Entries[i]
			if f := c.injectedFailure(i, id(e)); f != nil {
				out.Failed = append(out.Failed, *f)
				continue
			}
			r, err := perform(q, e, now)
			switch {
			case c.rule != nil && c.rule.Do == fault.DropEntries && injector.Hits(c.rule, i):
				// The entry had its effect, and is in neither list of the response.
			case err != nil:
				out.Failed = append(out.Failed, newBatchError(id(e), err))
			default:
				out.Successful = append(out.Successful, r)
			}
		}
		return nil
	})
	return out, err
}

func checkBatch[E any](entries []E, idOf func(*E) string) error {
	if len(entries) == 0 {
		return newError("EmptyBatchRequest", "There should be at least one "+entryName(entries)+" in the request.")
	}
	if len(entries) > maxEntries {
		return newError("TooManyEntriesInBatchRequest", fmt.Sprintf("Maximum number of entries per request are %d. You have sent %d.", maxEntries, len(entries)))
	}
	for i := range entries {
		id := idOf(&entries[i])
		if !isName(id) {
			return newError("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
		for j := range i {
			if id == idOf(&entries[j]) {
				return newError("BatchEntryIdsNotDistinct", "Id "+id+" repeated.")
			}
		}
	}
	return nil
}

// entryName returns AWS's name of the entries' type.
func entryName(entries any) string {
	switch entries.(type) {
	case []sendEntry:
		return "SendMessageBatchRequestEntry"
	case []deleteEntry:
		return "DeleteMessageBatchRequestEntry"
	}
	return "ChangeMessageVisibilityBatchRequestEntry"
}

func newBatchError(id string, err error) batchError {
	e, ok := errors.AsType[*awsjson.Error](err)
	if !ok {
		return batchError{ID: id, Code: "InternalError", Message: err.Error()}
	}
	return batchError{ID: id, SenderFault: e.Status < 500, Code: cmp.Or(e.QueryCode, e.Code), Message: e.Message}
}
