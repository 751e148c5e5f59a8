package ddbtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

func putRequest(i m) ddbtypes.WriteRequest {
	return ddbtypes.WriteRequest{PutRequest: &ddbtypes.PutRequest{Item: attributes(i)}}
}

func deleteRequest(key m) ddbtypes.WriteRequest {
	return ddbtypes.WriteRequest{DeleteRequest: &ddbtypes.DeleteRequest{Key: attributes(key)}}
}

func (x *exam) writeBatch(requests map[string][]ddbtypes.WriteRequest) error {
	out, err := x.client().BatchWriteItem(x.ctx, &dynamodb.BatchWriteItemInput{RequestItems: requests})
	if err == nil && len(out.UnprocessedItems) > 0 {
		x.fatalf("unprocessed: %v", out.UnprocessedItems)
	}
	return err
}

// many returns n requests for different items.
func many(n int) []ddbtypes.WriteRequest {
	var all []ddbtypes.WriteRequest
	for i := range n {
		all = append(all, putRequest(m{"id": fmt.Sprint("item ", i)}))
	}
	return all
}

var batchWriteCases = []testCase{
	{name: "batch write/puts and deletes in two tables", run: func(x *exam) {
		one, two := x.use("id:S"), x.use("id:S", "pos:N")
		x.table = one
		x.fill(m{"id": "old"}, m{"id": "replaced", "v": 1})
		x.ok(x.writeBatch(map[string][]ddbtypes.WriteRequest{
			one: {putRequest(m{"id": "new"}), putRequest(m{"id": "replaced"}), deleteRequest(m{"id": "old"}), deleteRequest(m{"id": "never"})},
			two: {putRequest(m{"id": "new", "pos": 1})},
		}))
		x.stored(m{"id": "new"}, m{"id": "new"})
		x.stored(m{"id": "replaced"}, m{"id": "replaced"})
		x.stored(m{"id": "old"}, nil)
		x.table = two
		x.stored(m{"id": "new", "pos": 1}, m{"id": "new", "pos": 1})
	}},
	{name: "batch write/25 requests", keys: "id:S", run: func(x *exam) {
		x.ok(x.writeBatch(map[string][]ddbtypes.WriteRequest{x.table: many(25)}))
		x.stored(m{"id": "item 24"}, m{"id": "item 24"})
		x.refused(x.writeBatch(map[string][]ddbtypes.WriteRequest{x.table: many(26)}), invalid)
	}},
	{name: "batch write/refused as a whole", keys: "id:S", run: func(x *exam) {
		good := putRequest(m{"id": "good"})
		for what, requests := range map[string][]ddbtypes.WriteRequest{
			"none":                {},
			"one item twice":      {good, putRequest(m{"id": "good", "v": 1})},
			"a put and a delete":  {good, deleteRequest(m{"id": "good"})},
			"neither":             {good, {}},
			"both":                {good, {PutRequest: putRequest(m{"id": "x"}).PutRequest, DeleteRequest: deleteRequest(m{"id": "x"}).DeleteRequest}},
			"an item without key": {good, putRequest(m{"v": 1})},
			"a key too long":      {good, deleteRequest(m{"id": "x", "v": 1})},
			"an empty set":        {good, putRequest(m{"id": "x", "v": ss{}})},
		} {
			x.refusedAs(what, x.writeBatch(map[string][]ddbtypes.WriteRequest{x.table: requests}), invalid)
		}
		// nubo-db/dynamodb-conformance, error-messages/batchWriteItem.test.ts
		x.refused(x.writeBatch(map[string][]ddbtypes.WriteRequest{}), invalid, "The requestItems parameter is required for BatchWriteItem")
		const length = "failed to satisfy constraint: Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]"
		x.refused(x.writeBatch(map[string][]ddbtypes.WriteRequest{x.table: {}}), invalid, length)
		x.refused(x.writeBatch(map[string][]ddbtypes.WriteRequest{x.table: many(26)}), invalid, length)
		for _, i := range []m{{"v": 1}, {"id": 5}, {"id": l{"x"}}} {
			x.refused(x.writeBatch(map[string][]ddbtypes.WriteRequest{x.table: {putRequest(i)}}), invalid, "The provided key element does not match the schema")
		}
		x.stored(m{"id": "good"}, nil)
	}},
	{name: "batch write/no table", keys: "id:S", run: func(x *exam) {
		x.refused(x.writeBatch(map[string][]ddbtypes.WriteRequest{x.table: many(1), x.newName(): many(1)}), notFound)
		x.stored(m{"id": "item 0"}, nil)
	}},
}

func (x *exam) getBatch(requests map[string]ddbtypes.KeysAndAttributes) (map[string][]item, error) {
	out, err := x.client().BatchGetItem(x.ctx, &dynamodb.BatchGetItemInput{RequestItems: requests})
	if err != nil {
		return nil, err
	}
	if len(out.UnprocessedKeys) > 0 {
		x.fatalf("unprocessed: %v", out.UnprocessedKeys)
	}
	return out.Responses, nil
}

func keys(all ...m) ddbtypes.KeysAndAttributes {
	consistent := true
	k := ddbtypes.KeysAndAttributes{ConsistentRead: &consistent}
	for _, key := range all {
		k.Keys = append(k.Keys, attributes(key))
	}
	return k
}

var batchGetCases = []testCase{
	{name: "batch get/of two tables, missing items left out", run: func(x *exam) {
		one, two := x.use("id:S"), x.use("id:S")
		x.fill(m{"id": "a", "of": "two"})
		x.table = one
		x.fill(m{"id": "a", "of": "one"}, m{"id": "b", "of": "one"})
		got := suite.Get(x.getBatch(map[string]ddbtypes.KeysAndAttributes{one: keys(m{"id": "a"}, m{"id": "b"}, m{"id": "c"}), two: keys(m{"id": "a"})}))
		slices.SortFunc(got[one], func(a, b item) int { return strings.Compare(showItem(a), showItem(b)) })
		x.list("the first", got[one], m{"id": "a", "of": "one"}, m{"id": "b", "of": "one"})
		x.list("the second", got[two], m{"id": "a", "of": "two"})
	}},
	{name: "batch get/projection", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1, "status": "x", "w": 2})
		k := keys(m{"id": "a"})
		expression := "v, #status"
		k.ProjectionExpression, k.ExpressionAttributeNames = &expression, used(names, expression)
		got := suite.Get(x.getBatch(map[string]ddbtypes.KeysAndAttributes{x.table: k}))
		x.list("projected", got[x.table], m{"v": 1, "status": "x"})
	}},
	{name: "batch get/100 keys", keys: "id:S", run: func(x *exam) {
		get := func(n int) error {
			var all []m
			for i := range n {
				all = append(all, m{"id": fmt.Sprint(i)})
			}
			_, err := x.getBatch(map[string]ddbtypes.KeysAndAttributes{x.table: keys(all...)})
			return err
		}
		x.ok(get(100))
		// nubo-db/dynamodb-conformance, error-messages/batchGetItem.test.ts
		x.refused(get(101), invalid, "1 validation error detected: Value at 'RequestItems."+x.table+".member.Keys' failed to satisfy constraint: Member must have length less than or equal to 100")
		_, err := x.getBatch(map[string]ddbtypes.KeysAndAttributes{})
		x.refused(err, invalid, "1 validation error detected: Value at 'RequestItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
	}},
	// AWS, API_BatchGetItem: "if you ask to retrieve 100 items, but each individual item is 300 KB in size, the system returns 52 items
	// (so as not to exceed the 16 MB limit). It also returns an appropriate UnprocessedKeys value".
	{name: "batch get/over 16 MB", keys: "id:S", run: func(x *exam) {
		var all []m
		for i := range 60 {
			i := sized(fmt.Sprintf("%02d", i), 300<<10)
			x.fill(i)
			all = append(all, m{"id": i["id"]})
		}
		requests := map[string]ddbtypes.KeysAndAttributes{x.table: keys(all...)}
		out := suite.Get(x.client().BatchGetItem(x.ctx, &dynamodb.BatchGetItemInput{RequestItems: requests}))
		equal(x, "items", len(out.Responses[x.table]), 52)
		left := out.UnprocessedKeys[x.table]
		equal(x, "unprocessed keys", len(left.Keys), 8)
		equal(x, "consistent", aws.ToBool(left.ConsistentRead), true)
		out = suite.Get(x.client().BatchGetItem(x.ctx, &dynamodb.BatchGetItemInput{RequestItems: out.UnprocessedKeys}))
		equal(x, "items of the rest", len(out.Responses[x.table]), 8)
	}},
	{name: "batch get/refused", keys: "id:S", run: func(x *exam) {
		for what, k := range map[string]ddbtypes.KeysAndAttributes{"none": keys(), "a key twice": keys(m{"id": "a"}, m{"id": "a"}), "a wrong key": keys(m{"id": 1})} {
			if k.Keys == nil {
				k.Keys = []item{}
			}
			_, err := x.getBatch(map[string]ddbtypes.KeysAndAttributes{x.table: k})
			x.refusedAs(what, err, invalid)
		}
		_, err := x.getBatch(map[string]ddbtypes.KeysAndAttributes{x.newName(): keys(m{"id": "a"})})
		x.refused(err, notFound)
	}},
	{name: "batch get/no keys", keys: "id:S", run: func(x *exam) { // nubo-db/dynamodb-conformance, error-messages/batchGetItem.test.ts
		x.says("BatchGetItem", `{"RequestItems":{"`+x.table+`":{"Keys":[]}}}`, "1 validation error detected: Value at 'RequestItems."+x.table+".member.Keys' failed to satisfy constraint: Member must have length greater than or equal to 1")
	}},
}
