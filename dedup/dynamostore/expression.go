package dynamostore

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/dedup"
)

// expression is an update or a deletion with its condition. Attributes are written #name, since several of their names
// are reserved words. Values are bound where it is used.
type expression struct {
	update, condition *string
	names             map[string]string // shared by all requests, never changed
}

func newExpression(update, condition string) expression {
	e := expression{condition: aws.String(condition), names: map[string]string{}}
	if update != "" {
		e.update = aws.String(update)
	}
	for _, field := range strings.FieldsFunc(update+" "+condition, notName) {
		if strings.HasPrefix(field, "#") {
			e.names[field] = field[1:]
		}
	}
	return e
}

func notName(r rune) bool { return r != '#' && r != '_' && !unicode.IsLower(r) }

var acquireUpdate = "SET #status=:p, #owner=:me, #fence=:fence, #in_progress_expiration=:until, #expiration=:exp, #receive_count=:n" + removeResult

const (
	// The clauses of an acquire's condition. It has the record if one of them is true.

	// There is no record.
	isNew = "attribute_not_exists(#id)"
	// This very request was written, and its reply was lost. All four terms are needed: with the owner alone a delayed copy
	// of an acquire would reopen the record after a renewal, and without the status after a complete.
	isOwnRetry = "#status=:p AND #owner=:me AND #in_progress_expiration=:until AND #fence=:fence"
	// Another owner's lease has ended by the taker's clock, or is released. The owner itself is excluded: a copy of its acquire
	// that the network delivers after its release is not a new attempt. The fence must grow: of two owners within a
	// millisecond, or with clocks apart, the later one has the greater fence.
	isOver     = "#status=:p AND #in_progress_expiration < :now AND " + isAnothers
	isReleased = "#status=:p AND #in_progress_expiration = :zero AND " + isAnothers
	isAnothers = "(attribute_not_exists(#owner) OR #owner<>:me) AND " + fenceGrows
	fenceGrows = "(attribute_not_exists(#fence) OR #fence < :fence)"
	// A holder that writes no lease end: Powertools outside Lambda.
	isOverUndated = "#status=:p AND attribute_not_exists(#in_progress_expiration) AND #expiration < :nows"
	// Completed, and its retention has ended. DynamoDB's TTL deletes such a record within days:
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html
	isRetentionOver = "#status=:d AND #expiration < :nows AND " + fenceGrows
)

var (
	acquireExpr = newExpression(acquireUpdate, anyOf(isNew, isOwnRetry, isOver, isOverUndated, isRetentionOver))
	// Under the policies that block the record of a crashed holder, only a release ends a lease.
	acquireReleasedExpr = newExpression(acquireUpdate, anyOf(isNew, isOwnRetry, isReleased, isOverUndated, isRetentionOver))

	// BETWEEN 1 AND :until: a delayed copy of a renewal neither revives a released lease (end 0) nor shortens the lease of a
	// later renewal.
	renewExpr = newExpression("SET #in_progress_expiration=:until, #expiration=:exp",
		"#owner=:me AND #status=:p AND #in_progress_expiration BETWEEN :one AND :until")

	// The record of a question: see inboxStore.
	askExpr = newExpression(acquireUpdate, anyOf(isNew, isMine))

	// Never shorter.
	retainExpr = newExpression("SET #expiration=:exp", "#owner=:me AND #status=:d AND #expiration < :exp")

	// The owner stays, as a tombstone: see isAnothers.
	releaseExpr        = newExpression("SET #in_progress_expiration=:zero, #error=:e", isHeldByMe)
	releaseNoCauseExpr = newExpression("SET #in_progress_expiration=:zero REMOVE #error", isHeldByMe)

	// A record with a live lease is not deleted.
	deleteExpr = newExpression("", anyOf(isNew, "#status=:d", "#in_progress_expiration < :now",
		"attribute_not_exists(#in_progress_expiration) AND #expiration < :nows"))
)

const (
	isMine     = "#owner=:me"
	isHeldByMe = "#owner=:me AND #status=:p"
	// And not released: a delayed copy of the transaction must not commit after its own owner's release.
	isCommittable = "#owner=:me AND #status=:p AND #in_progress_expiration > :zero"
)

const (
	// The record is still the one that the operator saw. The status is needed: an owner may complete its record after its
	// lease's end, and that changes neither owner nor fence.
	isSeen = "#owner=:seen AND #fence=:seenfence AND #status=:seenstatus"
	// It is completed, or its lease has ended by the taker's clock.
	isReopenable = "(#status=:d OR #in_progress_expiration < :now)"
)

// A text that an operator keeps: where the one that was seen is, or where there is none.
var (
	keepUpdate  = "SET #status=:d, #owner=:op, #fence=:fence, #in_progress_expiration=:zero, #expiration=:exp, #receive_count=:zero, #data=:data" + removeAllBut("data")
	keepExpr    = newExpression(keepUpdate, "#owner=:seen AND #fence=:seenfence AND #status=:d")
	keepNewExpr = newExpression(keepUpdate, anyOf(isNew, "#status=:d AND #expiration < :nows"))
)

// reopening is the update that releases a record to an operator: with or without a note, and with any lease if no time is
// bound.
func reopening(v values) expression {
	update, remove, condition := "SET #owner=:op, #status=:p, #fence=:fence, #in_progress_expiration=:zero, #expiration=:exp", removeResult, isSeen
	if v[":note"] != nil {
		update += ", #note=:note"
	} else {
		remove += ", #note"
	}
	if v[":e"] != nil {
		update += ", #error=:e"
	}
	if v[":now"] != nil {
		condition += " AND " + isReopenable
	}
	return newExpression(update+remove, condition)
}

func anyOf(clauses ...string) string { return "(" + strings.Join(clauses, ") OR (") + ")" }

type values map[string]ddbtypes.AttributeValue

// acquisition is an acquire with its values. Its requests repeat the values while their outcome is unknown.
type acquisition struct {
	claim        dedup.Claim
	until, fence int64
	taker        int64 // the taker's clock
}

// newAcquisition asks for a lease from now by the holder's clock, so that it is never shorter than asked for. By the
// taker's clock a process that is thawed after an hour would ask for a lease that has ended. The fence is above the given
// one.
func (s *Store) newAcquisition(c dedup.Claim, above int64, m moment) acquisition {
	now := s.clock.holder(m)
	return acquisition{claim: c, until: now + c.Lease.Milliseconds(), fence: max(s.clock.fence(m), above+1), taker: s.clock.taker(m)}
}

// expiration is the end of retention.
func (a acquisition) expiration() int64 { return retainUntil(a.fence, a.claim.Retention, a.until) }

// retentionAfterLease is the least time that a record is retained after its lease's end, so that TTL doesn't delete a live
// lease.
const retentionAfterLease = time.Hour

// retainUntil is the end of retention in seconds of the epoch. Retention counts from the acquire, and the fence is that
// instant, or later if a holder's clock was ahead. So a renewal computes the same end from its lease alone.
func retainUntil(fence int64, retention time.Duration, until int64) int64 {
	end := max(fence+retention.Milliseconds(), until+retentionAfterLease.Milliseconds())
	return (end + 999) / 1000
}

// values are those of acquireUpdate.
func (a acquisition) values() values {
	return values{
		":p": inProgressValue, ":me": text(a.claim.Owner), ":fence": number(a.fence), ":until": number(a.until),
		":exp": number(a.expiration()), ":n": number(int64(a.claim.ReceiveCount)),
	}
}

// acquireInput is the acquire as the conditional update. It decides every case, while an INSERT decides only the first
// clause.
func (s *Store) acquireInput(a acquisition) *dynamodb.UpdateItemInput {
	v := a.values()
	v[":d"], v[":nows"] = completedValue, number(a.taker/1000)
	e := acquireExpr
	if a.claim.NoTakeover {
		e = acquireReleasedExpr
		v[":zero"] = number(0)
	} else {
		v[":now"] = number(a.taker)
	}
	in := s.updateInput(a.claim.Key, e, v)
	in.ReturnValues = ddbtypes.ReturnValueAllOld
	return in
}

// updateInput is an UpdateItem of a record. A refusal by its condition returns the item.
func (s *Store) updateInput(key string, e expression, v values) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                           aws.String(s.table),
		Key:                                 values{attrID: text(key)},
		UpdateExpression:                    e.update,
		ConditionExpression:                 e.condition,
		ExpressionAttributeNames:            e.names,
		ExpressionAttributeValues:           v,
		ReturnValuesOnConditionCheckFailure: ddbtypes.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              ddbtypes.ReturnConsumedCapacityTotal,
	}
}

// updateItem sends an update once, and counts the units that it consumes.
func (s *Store) updateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := s.client.UpdateItem(ctx, in, options)
	switch refusal, isRefusal := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); {
	case isRefusal:
		s.meter.refusedWrite(refusal.Item)
	case err == nil:
		s.meter.wrote(one(out.ConsumedCapacity)...)
	}
	return out, err
}

// write sends an update until it is answered. It returns the item as it was before, if the update asks for it. A refusal
// by the update's condition is not an error.
func (s *Store) write(ctx context.Context, in *dynamodb.UpdateItemInput) (item, *ddbtypes.ConditionalCheckFailedException, error) {
	var before item
	err := s.retry(ctx, func(ctx context.Context, options func(*dynamodb.Options)) error {
		out, err := s.updateItem(ctx, in, options)
		if err == nil {
			before = out.Attributes
		}
		return err
	})
	if refusal, refused := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); refused {
		return nil, refusal, nil
	}
	return before, nil, err
}
