package function

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce/bench/internal/contestant"
	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// hand is the partial batch handler of AWS's own documentation: one record after the other, a failure for each error.
func hand(j job.Job, l *contestant.Ledger) (any, error) {
	handle := func(_ context.Context, m events.SQSMessage) error {
		l.Handle(m.Body, j.HandlerTime())
		return nil
	}
	return func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		failures := []events.SQSBatchItemFailure{}
		for _, m := range e.Records {
			if err := handle(ctx, m); err != nil {
				failures = append(failures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			}
		}
		return events.SQSEventResponse{BatchItemFailures: failures}, nil
	}, nil
}
