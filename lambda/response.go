package lambda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
)

var (
	errNotStarted = errors.New("lambda: not started in time, or behind a failed message of its group")
	errAbandoned  = errors.New("lambda: handler did not return in time")
)

// respond names every message that did not succeed.
func (v *invocation) respond(ctx context.Context, r results) (events.SQSEventResponse, error) {
	done := r.counts[succeeded] + r.counts[deadLettered] + r.counts[expired]
	failures := len(r.states) - done
	if failures > 0 { // Lambda's own REPORT line is enough of a batch that succeeded
		v.log.InfoContext(ctx, "lambda: batch handled",
			"records", len(r.states), "succeeded", done, "failed", r.counts[failed],
			"not_started", r.counts[notStarted], "abandoned", r.counts[abandoned], "duration", time.Since(v.begun))
	}
	if done == 0 { // else the next invocation says it: an error would have the successes run again
		if err := v.tooManyAbandoned(ctx); err != nil {
			return response(nil), err
		}
	}
	if v.opts.AllOrNothing && failures > 0 {
		return response(nil), fmt.Errorf("lambda: %d of %d messages failed, the first: %w", failures, len(r.states), v.firstError(r))
	}
	if err := v.unavailable(r); err != nil {
		return response(nil), err
	}
	ids := make([]string, 0, failures)
	for i, s := range r.states {
		if !s.done() {
			ids = append(ids, v.records[i].ID)
		}
	}
	return response(ids), nil
}

// unavailable returns an error if no message could be handled, and nothing shows that others could be. Nothing is deleted
// either way; an error shows in the function's Errors metric, and the mapping slows down.
func (v *invocation) unavailable(r results) error {
	var err error
	for i, s := range r.states {
		switch {
		case s == failed && sqsonce.OutcomeOf(v.slots[i].err).Kind == sqsonce.OutcomeUnavailable && !v.slots[i].own.Load():
			err = cmp.Or(err, v.slots[i].err)
		case s != notStarted:
			return nil
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("lambda: none of %d messages handled: %w", len(r.states), err)
}

func (v *invocation) firstError(r results) error {
	for i, s := range r.states {
		switch s {
		case failed:
			return v.slots[i].err
		case abandoned:
			return errAbandoned
		}
	}
	return errNotStarted
}

// response names each ID once. Its list is never nil: nil is null in JSON.
func response(ids []string) events.SQSEventResponse {
	failures := make([]events.SQSBatchItemFailure, 0, len(ids))
	named := make(map[string]bool, len(ids))
	for _, id := range ids {
		if !named[id] {
			named[id] = true
			failures = append(failures, events.SQSBatchItemFailure{ItemIdentifier: id})
		}
	}
	return events.SQSEventResponse{BatchItemFailures: failures}
}
