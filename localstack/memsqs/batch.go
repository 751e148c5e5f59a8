package memsqs

import (
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
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

// runBatch checks a batch request as a whole, performs its entries in order, and sorts the results into those that
// succeeded and those that failed. whole may be nil.
func runBatch[E, R any](c *call, s *Server, in *batchInput[E], id func(*E) string, whole func(*queue) error, one func(*queue, *E, time.Time) (R, error)) (*batchOutput[R], error) {
	c.count = len(in.Entries)
	out := &batchOutput[R]{}
	err := s.update(func(now time.Time) error {
		q, err := s.queue(in.QueueURL, now)
		if err != nil {
			return err
		}
		if err := checkBatch(in.Entries, id); err != nil {
			return err
		}
		if whole != nil {
			if err := whole(q); err != nil {
				return err
			}
		}
		for i := range in.Entries {
			e := &in.Entries[i]
			if f := c.failsEntry(i, id(e)); f != nil {
				out.Failed = append(out.Failed, *f)
				continue
			}
			r, err := one(q, e, now)
			switch {
			case c.rule != nil && c.rule.Do == fault.DropEntries && c.rule.Hits(i):
				// It had its effect; the answer says nothing about it.
			case err != nil:
				out.Failed = append(out.Failed, failed(id(e), err))
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
		return newError("EmptyBatchRequest", "There should be at least one entry in the request.")
	}
	if len(entries) > maxEntries {
		return newError("TooManyEntriesInBatchRequest", fmt.Sprintf("Maximum number of entries per request are %d. You have sent %d.", maxEntries, len(entries)))
	}
	for i := range entries {
		id := idOf(&entries[i])
		if !isName(id) {
			return newError("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
		for j := range i { // there are at most ten
			if id == idOf(&entries[j]) {
				return newError("BatchEntryIdsNotDistinct", "Id "+id+" repeated.")
			}
		}
	}
	return nil
}

// failed is the entry of a batch's answer for an error of one entry.
func failed(id string, err error) batchError {
	e, ok := errors.AsType[*awsjson.Error](err)
	if !ok {
		return batchError{ID: id, Code: "InternalError", Message: err.Error()}
	}
	code := e.QueryCode
	if code == "" {
		code = e.Code
	}
	return batchError{ID: id, SenderFault: e.Status < 500, Code: code, Message: e.Message}
}
