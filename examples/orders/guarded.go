package orders

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// Guarded returns the handler with records in any store: first the call, under a record of its own, then the booking.
//
// The two are one after the other, and not one inside the other as in [NewHandler]: book may be an inbox of a database,
// whose transaction should not stay open while a person looks at the order.
func Guarded(store dedup.Store, c Config, book sqsonce.Handler) (sqsonce.Handler, error) {
	calls, err := dedup.New(store, c.Consumer+"-calls", func(o *dedup.Options) { o.Lease = c.Lease })
	if err != nil {
		return nil, err
	}
	call := calls.Handler(sqsonce.JSON(func(ctx context.Context, o Order) error {
		if err := review(ctx, o); err != nil {
			return err
		}
		return outside{file: c.Calls}.notify(ctx, o)
	}))
	return func(ctx context.Context, m *sqsonce.Message) error {
		if err := call(ctx, m); err != nil {
			return fmt.Errorf("telling the outside system about %s: %w", m.ID, err)
		}
		return book(ctx, m) // also when the call was made by an earlier delivery
	}, nil
}

// BookOnce books an order where no record commits with the booking: the write itself refuses an entry that is there. It
// is the natural idempotency that an effect needs when its record is elsewhere.
func BookOnce(ctx context.Context, ddb *dynamodb.Client, table string, o Order) error {
	b := booking(table, o)
	b.ExpressionAttributeValues[":id"] = text(o.ID)
	_, err := ddb.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: b.TableName, Key: b.Key, UpdateExpression: b.UpdateExpression, ExpressionAttributeValues: b.ExpressionAttributeValues,
		ConditionExpression: aws.String("attribute_not_exists(entries) OR NOT contains(entries, :id)"),
	})
	if _, booked := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); booked {
		return nil
	}
	return err
}
