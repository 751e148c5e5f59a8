package lambda

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

var (
	errNotStarted = errors.New("lambda: not started in time, or behind a failed message of its group")
	errAbandoned  = errors.New("lambda: handler did not return in time")
)

// respond names every message that did not succeed.
func (v *invocation) respond(ctx context.Context, r results) (events.SQSEventResponse, error) {
	failures := len(r.states) - r.counts[succeeded]
	v.log.InfoContext(ctx, "lambda: batch handled",
		"records", len(r.states), "succeeded", r.counts[succeeded], "failed", r.counts[failed],
		"not_started", r.counts[skipped], "abandoned", r.counts[abandoned], "duration", time.Since(v.begun))
	if v.opts.AllOrNothing && failures > 0 {
		return response(nil), fmt.Errorf("lambda: %d of %d messages failed, the first: %w", failures, len(r.states), v.firstError(r))
	}
	ids := make([]string, 0, failures)
	for i, s := range r.states {
		if s != succeeded {
			ids = append(ids, v.records[i].MessageId)
		}
	}
	return response(ids), nil
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
