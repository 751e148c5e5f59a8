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

// ConditionError says that the condition of one of the handler's own writes failed. The transaction was not written.
type ConditionError struct {
	Index int // of the write, in the order of the calls to the Tx, from 0
	// Item is the item in DynamoDB. It is nil if the item doesn't exist, or if the write asked not to get it.
	Item map[string]ddbtypes.AttributeValue
}

func (e *ConditionError) Error() string {
	return fmt.Sprintf("dynamostore: transaction: the condition of write %d failed, and nothing was written", e.Index)
}

// Codes of cancellation reasons:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
const (
	reasonNone      = "None"
	reasonCondition = "ConditionalCheckFailed"
)

// transientReasons cancel a transaction for a cause that a retry may not meet.
var transientReasons = map[string]bool{
	"TransactionConflict": true, "ThrottlingError": true, "ProvisionedThroughputExceeded": true,
	"RequestLimitExceeded": true, "InternalServerError": true, "InternalServerErrorException": true,
}

// commit writes the record's completion and the handler's writes in one transaction. It returns nil if that was
// committed: by the last attempt, or by an earlier one whose reply was lost.
func (s *Store) commit(ctx context.Context, l dedup.Lease, res dedup.Result, writes []ddbtypes.TransactWriteItem) error {
	var (
		token          string
		tokens         = map[string]bool{} // of all attempts
		unknownOutcome bool                // an attempt with this token may have been committed, or may be committed later
		refused        bool                // by an answer, for a reason that stays
		err            error
	)
	for n := range maxAttempts {
		if n > 0 && !pause(ctx, n) {
			err = because(context.Cause(ctx), err)
			break
		}
		// For ten minutes DynamoDB answers a token that it has committed with success: the token stays while the outcome is
		// unknown. A token that was cancelled would get the same refusal again: after a cancellation it is new.
		if token == "" {
			token = rand.Text()
			tokens[token] = true
		}
		var result attemptResult
		result, err = s.attempt(ctx, n, func(ctx context.Context, options func(*dynamodb.Options)) error {
			v := values{":p": inProgressValue, ":zero": number(0)}
			return s.transact(ctx, l.Key, token, outcome{l, res, token}.completion(isCommittable, v), v, writes, options)
		})
		if err == nil {
			s.peers.leave(l.Owner)
			return nil
		}
		if cancelled, ok := errors.AsType[*ddbtypes.TransactionCanceledException](err); ok {
			final, reason := readCancellation(cancelled.CancellationReasons, tokens)
			if final {
				if reason == nil {
					s.peers.leave(l.Owner)
				} else if writtenByOthers(cancelled.CancellationReasons, l.Owner) {
					s.meter.foreign.Add(1)
					reason = fmt.Errorf("%w: %w", reason, dedup.ErrForeignWriter)
				}
				return reason
			}
			// No earlier attempt with this token was committed either: DynamoDB would have answered with success.
			token, unknownOutcome = "", false
			continue
		}
		if result == answered {
			refused = true
			break
		}
		unknownOutcome = unknownOutcome || result == unknown
	}
	if unknownOutcome {
		// Unavailable, because the missing answer of DynamoDB isn't the event's failure. The record's release, which follows, decides: a
		// record that the transaction completed refuses it, and a released record refuses a transaction that arrives later.
		return sqsonce.Unavailable(fmt.Errorf("dynamostore: %w: %w", dedup.ErrCommitUnknown, err))
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok && strings.Contains(api.ErrorMessage(), "multiple operations on one item") {
		return &writeError{Index: -1, Err: errSameItem}
	}
	if refused { // as a whole, or the SDK could not send it: dedup's question decides whose fault that is
		return fmt.Errorf("dynamostore: transaction: %w", err)
	}
	if _, cancelled := errors.AsType[*ddbtypes.TransactionCanceledException](err); cancelled { // conflicts or throttling, each time
		return sqsonce.Unavailable(fmt.Errorf("dynamostore: transaction: %w", err))
	}
	return s.explain("transaction", err)
}

// writtenByOthers reports whether a program that does not check ownership has completed the record under this owner, or
// has replaced it. It is called only for transactions that were not committed.
func writtenByOthers(reasons []ddbtypes.CancellationReason, owner string) bool {
	if len(reasons) == 0 {
		return false
	}
	r, err := decode(reasons[0].Item)
	return err == nil && (r.status == completed && r.owner == owner || r.owner == "")
}

// transact sends an update of the record and the handler's writes in one transaction. Each attempt has a new input, since the SDK
// writes into its inputs.
func (s *Store) transact(ctx context.Context, key, token string, e expression, v values, writes []ddbtypes.TransactWriteItem, options func(*dynamodb.Options)) error {
	record := ddbtypes.TransactWriteItem{Update: &ddbtypes.Update{
		TableName:                           aws.String(s.table),
		Key:                                 values{attrID: text(key)},
		UpdateExpression:                    e.update,
		ConditionExpression:                 e.condition,
		ExpressionAttributeNames:            e.names,
		ExpressionAttributeValues:           v,
		ReturnValuesOnConditionCheckFailure: ddbtypes.ReturnValuesOnConditionCheckFailureAllOld,
	}}
	out, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		ClientRequestToken:     aws.String(token),
		ReturnConsumedCapacity: ddbtypes.ReturnConsumedCapacityTotal,
		TransactItems:          append([]ddbtypes.TransactWriteItem{record}, writes...),
	}, options)
	if err == nil {
		s.meter.wrote(out.ConsumedCapacity...)
	}
	return err
}

// readCancellation returns why a transaction was cancelled. Where that is not final the transaction is sent again with a
// new token. The record's reason is read first: if an earlier attempt was committed, the user's conditions fail because
// of it.
func readCancellation(reasons []ddbtypes.CancellationReason, tokens map[string]bool) (final bool, err error) {
	if len(reasons) == 0 {
		return true, fmt.Errorf("dynamostore: transaction: cancelled without a reason")
	}
	switch code := aws.ToString(reasons[0].Code); {
	case code == reasonCondition:
		r, err := decode(reasons[0].Item)
		// Only the token proves that the commit was this call's. A record that was completed without it, even under this
		// owner, was written by a program that does not check ownership, and the handler's writes were not part of that.
		if err == nil && r.status == completed && tokens[r.tx] {
			return true, nil
		}
		return true, sqsonce.ErrLeaseLost
	case transientReasons[code]:
		return false, nil
	case code != reasonNone && code != "":
		return true, fmt.Errorf("dynamostore: transaction: record: %s: %s", code, aws.ToString(reasons[0].Message))
	}
	retryable := false
	for i, reason := range reasons[1:] {
		switch code := aws.ToString(reason.Code); {
		case code == reasonCondition:
			return true, &ConditionError{Index: i, Item: reason.Item}
		case transientReasons[code]:
			retryable = true
		case code != reasonNone && code != "":
			return true, &writeError{Index: i, Err: fmt.Errorf("%s: %s", code, aws.ToString(reason.Message))}
		}
	}
	if retryable {
		return false, nil
	}
	return true, fmt.Errorf("dynamostore: transaction: cancelled without a reason")
}
