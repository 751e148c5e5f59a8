package dynamooutbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/cut"
)

// sameEvent is the first part of each condition: the item is there, and is the event.
const sameEvent = "#id = :id AND "

// Park implements [outbox.Store]. Without its condition a relay that comes late would bring a published event back, and its
// group would wait for ever.
func (o *Outbox) Park(ctx context.Context, e outbox.Entry, p outbox.RefusedPolicy, reason string) error {
	if policies[p] == "" {
		return fieldError("policy", "is %d, must be OnRefusedHalt or OnRefusedSkip", p)
	}
	_, err := call(ctx, &o.caller, o.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:           aws.String(o.table),
		Key:                 keyOf(o.partition(e.Group), e.Seq),
		UpdateExpression:    aws.String("SET #parked = :parked, #error = :error, #at = :at"),
		ConditionExpression: aws.String(sameEvent + "attribute_not_exists(#parked)"),
		ExpressionAttributeNames: map[string]string{
			"#id": attrID, "#parked": attrParked, "#error": attrError, "#at": attrParkedAt,
		},
		ExpressionAttributeValues: item{
			":id": text(e.ID), ":parked": text(policies[p]), ":error": text(cut.Text(reason, cut.MostCause)), ":at": number(time.Now().UnixMilli()),
		},
	})
	if _, refused := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); refused {
		return nil // gone, or parked by another relay
	}
	return o.explain("UpdateItem", err)
}

// Unpark implements [outbox.Store]. If the answer to its request is lost, the client sends it again, and Unpark and Discard may
// return [outbox.ErrNotParked] or [outbox.ErrNotFound] although the first request succeeded.
func (o *Outbox) Unpark(ctx context.Context, e outbox.Entry) error {
	_, err := call(ctx, &o.caller, o.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:           aws.String(o.table),
		Key:                 keyOf(o.partition(e.Group), e.Seq),
		UpdateExpression:    aws.String("REMOVE #parked, #error, #at"),
		ConditionExpression: aws.String(sameEvent + "attribute_exists(#parked)"),
		ExpressionAttributeNames: map[string]string{
			"#id": attrID, "#parked": attrParked, "#error": attrError, "#at": attrParkedAt,
		},
		ExpressionAttributeValues:           item{":id": text(e.ID)},
		ReturnValuesOnConditionCheckFailure: ddbtypes.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return o.operated("UpdateItem", e, err)
}

// Discard implements [outbox.Store].
func (o *Outbox) Discard(ctx context.Context, e outbox.Entry) error {
	_, err := call(ctx, &o.caller, o.client.DeleteItem, &dynamodb.DeleteItemInput{
		TableName:                           aws.String(o.table),
		Key:                                 keyOf(o.partition(e.Group), e.Seq),
		ConditionExpression:                 aws.String(sameEvent + "attribute_exists(#parked)"),
		ExpressionAttributeNames:            map[string]string{"#id": attrID, "#parked": attrParked},
		ExpressionAttributeValues:           item{":id": text(e.ID)},
		ReturnValuesOnConditionCheckFailure: ddbtypes.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return o.operated("DeleteItem", e, err)
}

// operated tells the two refusals of an operator's write apart.
func (o *Outbox) operated(op string, e outbox.Entry, err error) error {
	refused, ok := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err)
	switch {
	case !ok:
		return o.explain(op, err)
	case stringOf(refused.Item[attrID]) == e.ID && e.ID != "":
		return outbox.ErrNotParked
	}
	return outbox.ErrNotFound
}

// Parked implements [outbox.Store] by a Scan of the whole table, with half a read unit for each 4 KB of it, because a parked
// event may be anywhere. An item that can't be decoded is an [outbox.ErrBroken] of its group, which comes together with the events.
func (o *Outbox) Parked(ctx context.Context, limit int) ([]outbox.Entry, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	in := &dynamodb.ScanInput{
		TableName:                 aws.String(o.table),
		FilterExpression:          aws.String("begins_with(#pk, :prefix) AND attribute_exists(#parked)"),
		ExpressionAttributeNames:  map[string]string{"#pk": attrPK, "#parked": attrParked},
		ExpressionAttributeValues: item{":prefix": text(o.prefix)},
	}
	var found []outbox.Entry
	var broken []error
	for behind := (position{}); ; {
		out, err := call(ctx, &o.caller, o.client.Scan, in)
		if err != nil {
			return nil, o.explain("Scan", err)
		}
		now := time.Now()
		for _, it := range out.Items {
			group, ours := o.groupOf(stringOf(it[attrPK]))
			if !ours {
				return nil, o.explain("Scan", fmt.Errorf("%w: it has the key %.128q", errAnswer, group))
			}
			e, err := decode(it, now)
			if e.Group = group; err != nil {
				broken = append(broken, &outbox.GroupError{Group: group, Seq: e.Seq, Err: fmt.Errorf("%w: %w", outbox.ErrBroken, err)})
				continue
			}
			found = append(found, e)
		}
		slices.SortStableFunc(found, func(a, b outbox.Entry) int { return int(min(1, max(-1, b.Age-a.Age))) })
		found = found[:min(limit, len(found))]
		if len(out.LastEvaluatedKey) == 0 {
			return found, errors.Join(broken...)
		}
		end := positionOf(out.LastEvaluatedKey)
		if end == behind || end == (position{}) { // it would never end
			return nil, o.explain("Scan", fmt.Errorf("%w: a page behind %q ends at %q", errAnswer, behind, end))
		}
		behind, in.ExclusiveStartKey = end, out.LastEvaluatedKey
	}
}

// position is where a page ends: a key, as text.
type position struct{ pk, seq string }

func positionOf(key item) (p position) {
	p.pk = stringOf(key[attrPK])
	if n, ok := key[attrSeq].(*ddbtypes.AttributeValueMemberN); ok && n != nil {
		p.seq = n.Value
	}
	return p
}
