package ddbtest

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

// useIndexed creates a table with the key id and a global index by_owner on owner and pos.
func (x *exam) useIndexed(p ddbtypes.Projection) {
	in := &dynamodb.CreateTableInput{}
	in.KeySchema, in.AttributeDefinitions = schema("id:S")
	addGlobal(in, "by_owner", p, "owner:S", "pos:N")
	x.create(in)
}

// owned returns what the index has of the owner "me". An index is eventually consistent.
func (x *exam) owned(change ...func(*dynamodb.QueryInput)) (*dynamodb.QueryOutput, error) {
	in := &dynamodb.QueryInput{
		TableName: &x.table, IndexName: aws.String("by_owner"), KeyConditionExpression: aws.String("#owner = :me"),
		ExpressionAttributeNames: map[string]string{"#owner": "owner"}, ExpressionAttributeValues: attributes(m{":me": "me"}),
	}
	for _, f := range change {
		f(in)
	}
	return x.client().Query(x.ctx, in)
}

var everything = ddbtypes.Projection{ProjectionType: "ALL"}

var indexCases = []testCase{
	{name: "index/in the order of its sort key, sparse", run: func(x *exam) {
		x.useIndexed(everything)
		x.fill(m{"id": "a", "owner": "me", "pos": 3}, m{"id": "b", "owner": "me", "pos": 1, "v": 1}, m{"id": "c", "owner": "you", "pos": 2}, m{"id": "d", "owner": "me"}, m{"id": "e", "pos": 1})
		out := suite.Get(x.owned())
		x.list("items", out.Items, m{"id": "b", "owner": "me", "pos": 1, "v": 1}, m{"id": "a", "owner": "me", "pos": 3})
	}},
	{name: "index/its key is not unique", run: func(x *exam) {
		x.useIndexed(everything)
		x.fill(m{"id": "a", "owner": "me", "pos": 1}, m{"id": "b", "owner": "me", "pos": 1})
		out := suite.Get(x.owned())
		equal(x, "items", len(out.Items), 2)
	}},
	{name: "index/follows updates and deletes", run: func(x *exam) {
		x.useIndexed(everything)
		x.fill(m{"id": "a", "owner": "me", "pos": 1}, m{"id": "b", "owner": "me", "pos": 2}, m{"id": "c", "owner": "me", "pos": 3})
		x.ok(x.update(m{"id": "a"}, args{update: "SET #o = :o", names: map[string]string{"#o": "owner"}, values: m{":o": "you"}}).err)
		x.ok(x.update(m{"id": "b"}, args{update: "REMOVE pos"}).err)
		x.ok(x.remove(m{"id": "c"}).err)
		out := suite.Get(x.owned())
		x.list("items", out.Items)
	}},
	{name: "index/projections", run: func(x *exam) {
		full := m{"id": "a", "owner": "me", "pos": 1, "v": 1, "w": 2}
		for _, c := range []struct {
			projection ddbtypes.Projection
			want       m
		}{
			{everything, full},
			{ddbtypes.Projection{ProjectionType: "KEYS_ONLY"}, m{"id": "a", "owner": "me", "pos": 1}},
			{ddbtypes.Projection{ProjectionType: "INCLUDE", NonKeyAttributes: []string{"v"}}, m{"id": "a", "owner": "me", "pos": 1, "v": 1}},
		} {
			x.useIndexed(c.projection)
			t := suite.Get(x.describe(x.table))
			ix := t.GlobalSecondaryIndexes[0]
			equal(x, "described", aws.ToString(ix.IndexName)+" "+string(ix.IndexStatus)+" "+string(ix.Projection.ProjectionType), "by_owner ACTIVE "+string(c.projection.ProjectionType))
			x.fill(full)
			out := suite.Get(x.owned())
			x.list(string(c.projection.ProjectionType), out.Items, c.want)
		}
	}},
	{name: "index/pages", run: func(x *exam) {
		x.useIndexed(everything)
		for i := range 5 {
			x.fill(m{"id": fmt.Sprint(i), "owner": "me", "pos": i / 2})
		}
		var start item
		seen := map[string]bool{}
		for range 6 {
			out := suite.Get(x.owned(func(in *dynamodb.QueryInput) { in.Limit, in.ExclusiveStartKey = aws.Int32(2), start }))
			for _, i := range out.Items {
				if seen[show(i["id"])] {
					x.fatalf("item %s twice", show(i["id"]))
				}
				seen[show(i["id"])] = true
			}
			if start = out.LastEvaluatedKey; start == nil {
				break
			}
			equal(x, "attributes of a last key", len(start), 3)
		}
		equal(x, "items", len(seen), 5)
	}},
	{name: "index/scanned", run: func(x *exam) {
		x.useIndexed(everything)
		x.fill(m{"id": "a", "owner": "me", "pos": 1}, m{"id": "b"})
		x.list("items", x.scan(func(in *dynamodb.ScanInput) { in.IndexName = aws.String("by_owner") }), m{"id": "a", "owner": "me", "pos": 1})
	}},
	{name: "index/refused", run: func(x *exam) {
		x.useIndexed(ddbtypes.Projection{ProjectionType: "KEYS_ONLY"})
		_, err := x.owned(func(in *dynamodb.QueryInput) { in.ConsistentRead = aws.Bool(true) })
		x.refused(err, invalid)
		_, err = x.owned(func(in *dynamodb.QueryInput) { in.Select = "ALL_ATTRIBUTES" })
		x.refused(err, invalid)
		x.refused(x.put(m{"id": "a", "owner": 1, "pos": 1}).err, invalid)
		x.refused(x.put(m{"id": "a", "owner": "me", "pos": "1"}).err, invalid)
		x.refused(x.put(m{"id": "a", "owner": "", "pos": 1}).err, invalid)
		x.fill(m{"id": "a", "owner": "me", "pos": 1})
		x.refused(x.update(m{"id": "a"}, args{update: "SET pos = :v", values: m{":v": "1"}}).err, invalid)
		x.stored(m{"id": "a"}, m{"id": "a", "owner": "me", "pos": 1})
	}},
}
