package lambda

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"
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
	if _, err := parseARN(queue); err != nil {
		return err
	}
	return nil
}

// queueARN is arn:partition:sqs:region:account:name.
type queueARN struct{ partition, region, account, name string }

func parseARN(arn string) (queueARN, error) {
	p := strings.Split(arn, ":")
	if len(p) != 6 || p[0] != "arn" || p[2] != "sqs" || p[3] == "" || p[4] == "" || p[5] == "" {
		return queueARN{}, fmt.Errorf("lambda: eventSourceARN %.256q is not a queue's ARN", arn)
	}
	return queueARN{partition: p[1], region: p[3], account: p[4], name: p[5]}, nil
}

// isFIFO goes by the name, which must end in .fifo exactly for FIFO queues. A group ID does not tell: standard queues
// carry one for fair queues.
func isFIFO(arn string) bool { return strings.HasSuffix(arn, ".fifo") }
