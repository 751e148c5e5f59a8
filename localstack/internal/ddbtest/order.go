package ddbtest

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// What AWS says of a transaction with two faults. Recorded: paritysuite/dynamodb-conformance,
// validation-ordering/transactions.test.ts.
var orderCases = []testCase{
	{name: "order/members before tables and items", run: func(x *exam) {
		x.use("id:S")
		const capacity = "Value 'DOG' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
		const metrics = "Value 'CAT' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must satisfy enum value set: [SIZE, NONE]"
		twice := []ddbtypes.TransactWriteItem{x.txPut(m{"id": "a"}), x.txDelete(m{"id": "a"})}
		for _, actions := range [][]ddbtypes.TransactWriteItem{{x.txPut(m{"id": "a"})}, {x.noTable()}, twice} {
			_, err := x.client().TransactWriteItems(x.ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions, ReturnConsumedCapacity: "DOG"})
			x.refused(err, invalid, "1 validation error detected: "+capacity)
		}
		in := &dynamodb.TransactWriteItemsInput{TransactItems: twice[:1], ReturnItemCollectionMetrics: "CAT"}
		_, err := x.client().TransactWriteItems(x.ctx, in)
		x.refused(err, invalid, "1 validation error detected: "+metrics)
		in.ReturnConsumedCapacity = "DOG"
		_, err = x.client().TransactWriteItems(x.ctx, in)
		x.refused(err, invalid, "2 validation errors detected: "+capacity+"; "+metrics)
		in.ClientRequestToken = aws.String(strings.Repeat("t", 37))
		_, err = x.client().TransactWriteItems(x.ctx, in)
		x.refused(err, invalid, "lientRequestToken' failed to satisfy constraint: Member must have length less than or equal to 36") // alone in one Region
		x.stored(m{"id": "a"}, nil)

		get := x.txGet(m{"id": "a"}, "")
		for _, gets := range [][]ddbtypes.TransactGetItem{{get}, {get, get}} {
			_, err := x.client().TransactGetItems(x.ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets, ReturnConsumedCapacity: "DOG"})
			x.refused(err, invalid, "1 validation error detected: "+capacity)
		}
	}},
	{name: "order/expressions before tables and items", run: func(x *exam) {
		x.use("id:S")
		bad := x.txCheck(m{"id": "b"}, args{condition: "attribute_not_exists("})
		const syntax = "Invalid ConditionExpression: Syntax error"
		unused := x.txCheck(m{"id": "b"}, args{condition: "attribute_not_exists(id)"})
		unused.ConditionCheck.ExpressionAttributeValues = attributes(m{":v": 1})
		const value = "Value provided in ExpressionAttributeValues unused in expressions: keys: {:v}"
		for _, c := range []struct {
			actions []ddbtypes.TransactWriteItem
			text    string
		}{
			{[]ddbtypes.TransactWriteItem{x.noTable(), bad}, syntax},
			{[]ddbtypes.TransactWriteItem{bad, x.noTable()}, syntax},
			{[]ddbtypes.TransactWriteItem{x.noTable(), unused}, value},
			{[]ddbtypes.TransactWriteItem{unused, x.noTable()}, value},
			{[]ddbtypes.TransactWriteItem{x.txPut(m{"id": "b"}), unused}, value},
			{[]ddbtypes.TransactWriteItem{x.txPut(m{"id": "b"}), bad}, syntax},
			{[]ddbtypes.TransactWriteItem{unused, bad}, value},
			{[]ddbtypes.TransactWriteItem{bad, unused}, syntax},
			{[]ddbtypes.TransactWriteItem{bad, x.txPut(m{"id": "a", "v": nested(33)})}, syntax},
			{[]ddbtypes.TransactWriteItem{x.txPut(m{"id": "a", "v": nested(33)}), bad}, "Nesting Levels have exceeded supported limits"},
		} {
			x.refused(x.transact(c.actions...), invalid, c.text)
		}
		x.stored(m{"id": "b"}, nil)
	}},
}

// noTable is a put into a table that does not exist.
func (x *exam) noTable() ddbtypes.TransactWriteItem {
	put := x.txPut(m{"id": "a"})
	put.Put.TableName = aws.String(x.newName())
	return put
}
