package dynamooutbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Stream returns the handler of a function that the table's stream invokes. It drains the groups that the records name. It
// never sends the content of the records, and looks only at new items. Filter out the other records in the event source
// mapping. It ignores records of the table's other outboxes. Those of another table are an error.
//
// The answer names the first record of each group that isn't drained, except of halted groups, so that a shard never waits for
// an operator. The mapping needs ReportBatchItemFailures, else Lambda treats such an answer as a success, and the events wait
// for the next sweep. The reason why groups aren't drained is one line, at WARN, in slog.Default().
// https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html
func (o *Outbox) Stream(r *outbox.Relay) func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return func(ctx context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
		return o.stream(ctx, r, e)
	}
}

// Lambda returns a function's handler. It uses [Outbox.Stream] for an event that has records, and [outbox.Relay.Sweep] for any
// other, such as a schedule's, and answers with the [outbox.Backlog].
func (o *Outbox) Lambda(r *outbox.Relay) func(context.Context, json.RawMessage) (any, error) {
	return func(ctx context.Context, raw json.RawMessage) (any, error) { return o.invoke(ctx, r, raw) }
}

// drainer is the part of a relay that the handlers call.
type drainer interface {
	Drain(ctx context.Context, groups ...string) error
	Sweep(ctx context.Context) (outbox.Backlog, error)
}

func (o *Outbox) invoke(ctx context.Context, r drainer, raw json.RawMessage) (any, error) {
	if !json.Valid(raw) {
		return nil, errors.New("dynamooutbox: the event is not JSON")
	}
	var some struct{ Records json.RawMessage }
	// An event that is no object, such as a schedule's constant, has no records.
	if err := json.Unmarshal(raw, &some); err != nil || some.Records == nil || string(some.Records) == "null" {
		return r.Sweep(ctx)
	}
	var e events.DynamoDBEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, fmt.Errorf("dynamooutbox: the event is not one of a DynamoDB stream: %w", err)
	}
	return o.stream(ctx, r, e)
}

func (o *Outbox) stream(ctx context.Context, r drainer, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	groups, first, err := o.named(e)
	answer := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	if err != nil || len(groups) == 0 {
		return answer, err
	}
	if err = r.Drain(ctx, groups...); err == nil {
		return answer, nil
	}
	failed, rest := failures(err)
	if len(rest) > 0 { // of no group alone
		return answer, err
	}
	for _, g := range groups {
		if !failed[g] {
			continue
		}
		answer.BatchItemFailures = append(answer.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: first[g]})
	}
	if n := len(answer.BatchItemFailures); n > 0 {
		log := host.Logger(slog.Default())
		log.WarnContext(ctx, "dynamooutbox: groups are not drained, and their records come again", "groups", n, "error", err)
	}
	return answer, nil
}

// named returns the groups that the records name, in their order, and the sequence number of the first record of each.
func (o *Outbox) named(e events.DynamoDBEvent) (groups []string, first map[string]string, err error) {
	first = map[string]string{}
	for _, rec := range e.Records {
		if !o.isOurTable(rec.EventSourceArn) {
			return nil, nil, fmt.Errorf("dynamooutbox: a record of %.300q, want one of a stream of the table %s", rec.EventSourceArn, o.table)
		}
		if rec.EventName != string(events.DynamoDBOperationTypeInsert) {
			continue
		}
		pk, ok := rec.Change.Keys[attrPK]
		if !ok || pk.DataType() != events.DataTypeString {
			return nil, nil, fmt.Errorf("dynamooutbox: record %.128q has no key %s of type S", rec.Change.SequenceNumber, attrPK)
		}
		group, ours := o.groupOf(pk.String())
		// Put writes no group without a name. A sweep finds one of another writer, and shows it to operators.
		if _, known := first[group]; !ours || known || group == "" {
			continue
		}
		first[group] = rec.Change.SequenceNumber
		groups = append(groups, group)
	}
	return groups, first, nil
}

// isOurTable reports whether a stream's ARN, arn:aws:dynamodb:us-east-1:123456789012:table/NAME/stream/LABEL, is of the table.
func (o *Outbox) isOurTable(streamARN string) bool {
	table, _, ok := strings.Cut(streamARN, "/stream/")
	if !ok {
		return false
	}
	if strings.HasPrefix(o.table, "arn:") {
		return table == o.table
	}
	service, name, ok := strings.Cut(table, ":table/")
	return ok && name == o.table && strings.Contains(service, ":dynamodb:")
}

// failures returns the groups that have events left and do not wait for an operator, and the errors that are of no group.
func failures(err error) (failed map[string]bool, rest []error) {
	failed = map[string]bool{}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		of, ok := errors.AsType[*outbox.GroupError](err)
		halted := errors.Is(err, outbox.ErrHalted)
		switch {
		case !ok:
			rest = append(rest, err)
		case !halted:
			failed[of.Group] = true
		}
	}
	return failed, rest
}
