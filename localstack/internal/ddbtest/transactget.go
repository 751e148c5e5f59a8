package ddbtest

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

func (x *exam) txGet(key m, projection string) ddbtypes.TransactGetItem {
	return ddbtypes.TransactGetItem{Get: &ddbtypes.Get{TableName: aws.String(x.table), Key: attributes(key), ProjectionExpression: optional(projection), ExpressionAttributeNames: used(names, projection)}}
}

func (x *exam) transactGet(gets ...ddbtypes.TransactGetItem) ([]item, error) {
	out, err := x.client().TransactGetItems(x.ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets})
	if err != nil {
		return nil, err
	}
	var all []item
	for _, r := range out.Responses {
		all = append(all, r.Item)
	}
	return all, nil
}

var transactGetCases = []testCase{
	{name: "transact get/in the order asked for, missing ones too", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1}, m{"id": "b", "v": 2, "status": "x"})
		got := suite.Get(x.transactGet(x.txGet(m{"id": "b"}, "#status"), x.txGet(m{"id": "none"}, ""), x.txGet(m{"id": "a"}, "")))
		x.list("items", got, m{"status": "x"}, nil, m{"id": "a", "v": 1})
	}},
	{name: "transact get/refused", keys: "id:S", run: func(x *exam) {
		for _, gets := range [][]ddbtypes.TransactGetItem{{}, {x.txGet(m{"id": "a"}, ""), x.txGet(m{"id": "a"}, "v")}, {x.txGet(m{"id": "a"}, "status")}} {
			_, err := x.transactGet(gets...)
			x.refused(err, invalid)
		}
		x.table = x.newName()
		_, err := x.transactGet(x.txGet(m{"id": "a"}, ""))
		x.refused(err, notFound)
	}},
	{name: "transact get/a key that does not fit cancels", keys: "id:S", run: func(x *exam) { // nubo-db/dynamodb-conformance, error-messages/transactGetItems.test.ts
		_, err := x.transactGet(x.txGet(m{"id": "a"}, ""), x.txGet(m{}, ""))
		x.refused(err, "TransactionCanceledException", "[None, ValidationError]")
	}},
	{name: "transact get/over 4 MB", keys: "id:S", run: func(x *exam) { // AWS, API_TransactGetItems: the aggregate size of the items cannot exceed 4 MB
		var gets []ddbtypes.TransactGetItem
		for i := range 11 {
			x.fill(sized(fmt.Sprintf("%02d", i), 390<<10))
			gets = append(gets, x.txGet(m{"id": fmt.Sprintf("%02d", i)}, "id"))
		}
		_, err := x.transactGet(gets[:10]...)
		x.ok(err)
		_, err = x.transactGet(gets...)
		x.refused(err, invalid)
	}},
	{name: "transact get/100 items", keys: "id:S", run: func(x *exam) {
		var gets []ddbtypes.TransactGetItem
		for i := range 101 {
			gets = append(gets, x.txGet(m{"id": fmt.Sprint(i)}, ""))
		}
		_, err := x.transactGet(gets[:100]...)
		x.ok(err)
		_, err = x.transactGet(gets...)
		x.refused(err, invalid)
	}},
}
