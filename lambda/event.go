package lambda

import (
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce/internal/host"
)

var errNoRecords = errors.New("lambda: event has no records: not from an SQS event source mapping")

// check refuses an event that is not from an SQS event source mapping. Events of other services decode into
// events.SQSEvent without complaint, mostly as records without an ID or as no records at all, and an empty response
// would tell Lambda that all is well.
func check(records []events.SQSMessage) error {
	if len(records) == 0 {
		return errNoRecords
	}
	queue := records[0].EventSourceARN
	for i := range records {
		r := &records[i]
		switch {
		case r.EventSource != "aws:sqs":
			return fmt.Errorf("lambda: record %d is from %.64q, not from aws:sqs", i, r.EventSource)
		case r.MessageId == "":
			// It could not be named in the response, so its failure would delete it.
			return fmt.Errorf("lambda: record %d has no message ID", i)
		case r.EventSourceARN != queue:
			return fmt.Errorf("lambda: record %d is from another queue than record 0: a mapping has one queue", i)
		}
	}
	// The ARN says whether order matters and is part of the key of events without an ID of their own.
	if _, err := host.ParseQueueARN(queue); err != nil {
		return fmt.Errorf("lambda: eventSourceARN %w", err)
	}
	return nil
}
