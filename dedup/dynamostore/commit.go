package dynamostore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// ConditionError says that a condition of one of the handler's own writes was not met. Nothing was written.
type ConditionError struct {
	Index int // of the write, in the order of the calls to the Tx, from 0
	// Item is what DynamoDB holds instead; nil where there is no item, or where the write chose not to get it.
	Item map[string]ddbtypes.AttributeValue
}

func (e *ConditionError) Error() string {
	return fmt.Sprintf("dynamostore: transaction: the condition of write %d failed", e.Index)
}

// ErrOutcomeUnknown says that a transaction may have been committed. The record's release, which follows, decides: it is
// refused by a record that the transaction completed, and refuses a transaction that arrives after it.
var ErrOutcomeUnknown = errors.New("dynamostore: transaction: outcome unknown")

// Codes of cancellation reasons.
const (
	reasonNone      = "None"
	reasonCondition = "ConditionalCheckFailed"
)

// passingReasons cancel a transaction for something that passes.
var passingReasons = map[string]bool{
	"TransactionConflict": true, "ThrottlingError": true, "ProvisionedThroughputExceeded": true,
	"RequestLimitExceeded": true, "InternalServerError": true, "InternalServerErrorException": true,
}

// commit writes the record's completion and the handler's writes in one transaction. nil: committed, by this call or by
// an attempt of it whose reply was lost.
func (s *Store) commit(ctx context.Context, l dedup.Lease, writes []ddbtypes.TransactWriteItem) error {
	var (
		token       string
		tokens      = map[string]bool{} // of all attempts
		outstanding bool                // an attempt with this token may have been committed, or may yet be
		err         error
	)
	for n := range maxAttempts {
		if n > 0 && !pause(ctx, n) {
			err = because(context.Cause(ctx), err)
			break
		}
		// Within ten minutes DynamoDB answers a token that it has committed with success: the same one while the outcome
		// is unknown. It would answer a token that was cancelled with the writes as they were refused, so a new one then.
		if token == "" {
			token = rand.Text()
			tokens[token] = true
		}
		var o outcome
		o, err = s.attempt(ctx, n, func(ctx context.Context, single func(*dynamodb.Options)) error {
			out, err := s.client.TransactWriteItems(ctx, s.transaction(l, token, writes), single)
			if err == nil {
				s.meter.wrote(out.ConsumedCapacity...)
			}
			return err
		})
		if err == nil {
			s.at.leave(l.Owner)
			return nil
		}
		if cancelled, ok := errors.AsType[*ddbtypes.TransactionCanceledException](err); ok {
			final, answer := judge(cancelled.CancellationReasons, l.Owner, tokens)
			if final {
				if answer == nil {
					s.at.leave(l.Owner)
				} else if writtenByOthers(cancelled.CancellationReasons, l.Owner) {
					s.meter.foreign.Add(1)
					answer = fmt.Errorf("%w: %w", answer, dedup.ErrForeignWriter)
				}
				return answer
			}
			// An earlier attempt of this token was not committed either: this answer would have been success.
			token, outstanding = "", false
			continue
		}
		switch o {
		case unknown:
			outstanding = true
			continue
		case unwritten:
			continue
		}
		break
	}
	if outstanding {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok && strings.Contains(api.ErrorMessage(), "multiple operations on one item") {
		return &WriteError{Index: -1, Err: ErrSameItem}
	}
	return s.explain("transaction", err)
}

// writtenByOthers reports whether a program that knows no owners has completed the record under this owner, or has put
// its own in its place. It is asked only about transactions that were not committed.
func writtenByOthers(reasons []ddbtypes.CancellationReason, owner string) bool {
	if len(reasons) == 0 {
		return false
	}
	r, err := decode(reasons[0].Item)
	return err == nil && (r.status == completed && r.owner == owner || r.owner == "")
}

// transaction is made anew for each attempt: the SDK writes into its inputs.
func (s *Store) transaction(l dedup.Lease, token string, writes []ddbtypes.TransactWriteItem) *dynamodb.TransactWriteItemsInput {
	v := values{
		":me": text(l.Owner), ":p": text(inProgress), ":d": text(completed),
		":zero": number(0), ":token": text(token),
	}
	if l.Validation != "" {
		v[":v"] = text(l.Validation)
	}
	e := completion(isCommittable, v)
	record := ddbtypes.TransactWriteItem{Update: &ddbtypes.Update{
		TableName:                           aws.String(s.table),
		Key:                                 values{attrID: text(l.Key)},
		UpdateExpression:                    e.update,
		ConditionExpression:                 e.condition,
		ExpressionAttributeNames:            e.names,
		ExpressionAttributeValues:           v,
		ReturnValuesOnConditionCheckFailure: ddbtypes.ReturnValuesOnConditionCheckFailureAllOld,
	}}
	return &dynamodb.TransactWriteItemsInput{
		ClientRequestToken:     aws.String(token),
		ReturnConsumedCapacity: ddbtypes.ReturnConsumedCapacityTotal,
		TransactItems:          append([]ddbtypes.TransactWriteItem{record}, writes...),
	}
}

// judge reads why a transaction was cancelled. The record's reason comes first: where an earlier attempt of ours was
// committed after all, the user's conditions fail because of it. Not final: send again with a new token.
func judge(reasons []ddbtypes.CancellationReason, owner string, tokens map[string]bool) (final bool, err error) {
	if len(reasons) == 0 {
		return true, fmt.Errorf("dynamostore: transaction: cancelled without a reason")
	}
	switch code := aws.ToString(reasons[0].Code); {
	case code == reasonCondition:
		r, err := decode(reasons[0].Item)
		// Only the token proves that the commit was ours. A completed record of this owner without it was written by
		// someone who knows no owners, and the handler's writes were not part of that.
		if err == nil && r.status == completed && tokens[r.tx] {
			return true, nil
		}
		return true, sqsonce.ErrLeaseLost
	case passingReasons[code]:
		return false, nil
	case code != reasonNone && code != "":
		return true, fmt.Errorf("dynamostore: transaction: record: %s: %s", code, aws.ToString(reasons[0].Message))
	}
	passes := false
	for i, reason := range reasons[1:] {
		switch code := aws.ToString(reason.Code); {
		case code == reasonCondition:
			return true, &ConditionError{Index: i, Item: reason.Item}
		case passingReasons[code]:
			passes = true
		case code != reasonNone && code != "":
			return true, &WriteError{Index: i, Err: fmt.Errorf("%s: %s", code, aws.ToString(reason.Message))}
		}
	}
	if passes {
		return false, nil
	}
	return true, fmt.Errorf("dynamostore: transaction: cancelled without a reason")
}
