package ddbtest

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// args are the parameters that the calls of one item have in common. Placeholders that no expression names are not sent.
type args struct {
	update, condition string
	names             map[string]string
	values            m
	returns           ddbtypes.ReturnValue
	onFailure         ddbtypes.ReturnValuesOnConditionCheckFailure
	capacity          ddbtypes.ReturnConsumedCapacity
}

// result is what these calls return.
type result struct {
	attributes item
	failed     item // of a failed condition
	capacity   *ddbtypes.ConsumedCapacity
	err        error
}

func (a args) sent() (condition, update *string, names map[string]string, values item) {
	return optional(a.condition), optional(a.update), used(a.names, a.condition, a.update), attributes(used(a.values, a.condition, a.update))
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (x *exam) put(i m, optional ...args) result {
	a := only(optional)
	in := &dynamodb.PutItemInput{TableName: &x.table, Item: attributes(i), ReturnValues: a.returns, ReturnValuesOnConditionCheckFailure: a.onFailure, ReturnConsumedCapacity: a.capacity}
	in.ConditionExpression, _, in.ExpressionAttributeNames, in.ExpressionAttributeValues = a.sent()
	out, err := x.client().PutItem(x.ctx, in)
	if err != nil {
		return result{err: err, failed: failedItem(err)}
	}
	return result{attributes: out.Attributes, capacity: out.ConsumedCapacity}
}

func (x *exam) update(key m, a args) result {
	in := &dynamodb.UpdateItemInput{TableName: &x.table, Key: attributes(key), ReturnValues: a.returns, ReturnValuesOnConditionCheckFailure: a.onFailure, ReturnConsumedCapacity: a.capacity}
	in.ConditionExpression, in.UpdateExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues = a.sent()
	out, err := x.client().UpdateItem(x.ctx, in)
	if err != nil {
		return result{err: err, failed: failedItem(err)}
	}
	return result{attributes: out.Attributes, capacity: out.ConsumedCapacity}
}

func (x *exam) remove(key m, optional ...args) result {
	a := only(optional)
	in := &dynamodb.DeleteItemInput{TableName: &x.table, Key: attributes(key), ReturnValues: a.returns, ReturnValuesOnConditionCheckFailure: a.onFailure, ReturnConsumedCapacity: a.capacity}
	in.ConditionExpression, _, in.ExpressionAttributeNames, in.ExpressionAttributeValues = a.sent()
	out, err := x.client().DeleteItem(x.ctx, in)
	if err != nil {
		return result{err: err, failed: failedItem(err)}
	}
	return result{attributes: out.Attributes, capacity: out.ConsumedCapacity}
}

func only(optional []args) args {
	if len(optional) == 0 {
		return args{}
	}
	return optional[0]
}

func failedItem(err error) item {
	if e, ok := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); ok {
		return e.Item
	}
	return nil
}

// fill puts items, which must succeed.
func (x *exam) fill(items ...m) {
	for _, i := range items {
		x.ok(x.put(i).err)
	}
}
