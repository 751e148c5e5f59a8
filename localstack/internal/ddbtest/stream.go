package ddbtest

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

// What AWS says of streams:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Operations_Amazon_DynamoDB_Streams.html
// What it does not say is as ScyllaDB's tests have found it on AWS: scylladb/scylladb, test/alternator/test_streams.py.

func (x *exam) streams() *dynamodbstreams.Client {
	if x.account.Streams == nil {
		suite.Unsupported("streams are not served")
	}
	return x.account.Streams
}

func streamOf(view ddbtypes.StreamViewType) *ddbtypes.StreamSpecification {
	return &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view}
}

// useStream creates a table with the key "id" and a stream, and returns the stream's ARN when it is enabled.
func (x *exam) useStream(view ddbtypes.StreamViewType) string {
	x.streams()
	x.create(&dynamodb.CreateTableInput{StreamSpecification: streamOf(view)}, "id:S")
	return x.latestStream()
}

// latestStream returns the ARN of the table's stream when it is enabled.
func (x *exam) latestStream() string {
	t := suite.Get(x.describe(x.table))
	arn := aws.ToString(t.LatestStreamArn)
	x.until("enabled", func() bool {
		return x.describeStream(&dynamodbstreams.DescribeStreamInput{StreamArn: &arn}).StreamStatus == streamtypes.StreamStatusEnabled
	})
	return arn
}

func (x *exam) describeStream(in *dynamodbstreams.DescribeStreamInput) *streamtypes.StreamDescription {
	out := suite.Get(x.streams().DescribeStream(x.ctx, in))
	return out.StreamDescription
}

func (x *exam) shards(arn string) []streamtypes.Shard {
	return x.describeStream(&dynamodbstreams.DescribeStreamInput{StreamArn: &arn}).Shards
}

func (x *exam) iterator(arn string, shard *string, kind streamtypes.ShardIteratorType, sequence *string) *string {
	out := suite.Get(x.streams().GetShardIterator(x.ctx, &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: shard, ShardIteratorType: kind, SequenceNumber: sequence}))
	return out.ShardIterator
}

func (x *exam) records(iterator *string, limit int32) *dynamodbstreams.GetRecordsOutput {
	in := &dynamodbstreams.GetRecordsInput{ShardIterator: iterator}
	if limit > 0 {
		in.Limit = &limit
	}
	out := suite.Get(x.streams().GetRecords(x.ctx, in))
	return out
}

// located is a record and the shard that it was read from.
type located struct {
	streamtypes.Record
	shard *string
}

func (r located) sequence() *big.Int {
	n, _ := new(big.Int).SetString(*r.Dynamodb.SequenceNumber, 10)
	return n
}

// all reads a stream until it has n records, in the order of their sequence numbers. One more is an error.
func (x *exam) all(arn string, n int) []located {
	var got []located
	x.until(fmt.Sprintf("%d records", n), func() bool {
		got = nil
		for _, sh := range x.shards(arn) {
			records, _ := x.fromStart(arn, sh)
			for _, r := range records {
				got = append(got, located{r, sh.ShardId})
			}
		}
		return len(got) >= n
	})
	equal(x, "records", len(got), n)
	slices.SortFunc(got, func(a, b located) int { return a.sequence().Cmp(b.sequence()) })
	return got
}

// fromStart reads what a shard has now. A page without records may be followed by one with some. ended says that the shard has
// no more to come.
func (x *exam) fromStart(arn string, sh streamtypes.Shard) (all []streamtypes.Record, ended bool) {
	next := x.iterator(arn, sh.ShardId, streamtypes.ShardIteratorTypeTrimHorizon, nil)
	for empty := 0; next != nil && empty < 3; {
		out := x.records(next, 0)
		all = append(all, out.Records...)
		next = out.NextShardIterator
		if len(out.Records) == 0 {
			empty++
		}
	}
	return all, next == nil
}

// plain is an image of strings and numbers.
func (x *exam) plain(image map[string]streamtypes.AttributeValue) item {
	out := item{}
	for name, v := range image {
		switch v := v.(type) {
		case *streamtypes.AttributeValueMemberS:
			out[name] = value(v.Value)
		case *streamtypes.AttributeValueMemberN:
			out[name] = value(n(v.Value))
		default:
			x.fatalf("the image has a %T", v)
		}
	}
	return out
}

// show is a record as the cases write it: its name, keys, old and new image.
func (x *exam) show(r streamtypes.Record) string {
	parts := []string{string(r.EventName), showItem(x.plain(r.Dynamodb.Keys))}
	for _, image := range []map[string]streamtypes.AttributeValue{r.Dynamodb.OldImage, r.Dynamodb.NewImage} {
		parts = append(parts, showItem(x.plain(image)))
	}
	return strings.Join(parts, " ")
}

func (x *exam) shown(all []located) string {
	var lines []string
	for _, r := range all {
		lines = append(lines, x.show(r.Record))
	}
	return strings.Join(lines, "\n")
}

// recordOf is what show says of a change of the item "a".
func recordOf(view ddbtypes.StreamViewType, name string, before, after m) string {
	if view == ddbtypes.StreamViewTypeKeysOnly || view == ddbtypes.StreamViewTypeNewImage {
		before = nil
	}
	if view == ddbtypes.StreamViewTypeKeysOnly || view == ddbtypes.StreamViewTypeOldImage {
		after = nil
	}
	return strings.Join([]string{name, showItem(attributes(m{"id": "a"})), showItem(attributes(before)), showItem(attributes(after))}, " ")
}

func viewCase(view ddbtypes.StreamViewType) testCase {
	return testCase{name: "stream/" + string(view), run: func(x *exam) {
		arn := x.useStream(view)
		one, two, three := m{"id": "a", "n": 1}, m{"id": "a", "t": "x"}, m{"id": "a", "t": "x", "n": 3}
		x.fill(one, two)
		x.ok(x.update(m{"id": "a"}, args{update: "SET n = :n", values: m{":n": 3}}).err)
		x.ok(x.remove(m{"id": "a"}).err)
		x.ok(x.update(m{"id": "a"}, args{update: "SET n = :n", values: m{":n": 1}}).err)
		got := x.all(arn, 5)
		equal(x, "stream", x.shown(got), strings.Join([]string{
			recordOf(view, "INSERT", nil, one), recordOf(view, "MODIFY", one, two), recordOf(view, "MODIFY", two, three),
			recordOf(view, "REMOVE", three, nil), recordOf(view, "INSERT", nil, one),
		}, "\n"))
		ids := map[string]bool{}
		for _, r := range got {
			ids[*r.EventID] = true
			equal(x, "view type", string(r.Dynamodb.StreamViewType), string(view))
			equal(x, "source", *r.EventSource, "aws:dynamodb")
			equal(x, "identity", r.UserIdentity == nil, true)
			if r.Dynamodb.ApproximateCreationDateTime == nil || r.AwsRegion == nil || r.EventVersion == nil {
				x.fatalf("the record lacks a time, region or version: %+v", r)
			}
		}
		equal(x, "event IDs", len(ids), 5)
	}}
}

func streamCases() []testCase {
	all := []testCase{}
	for _, view := range ddbtypes.StreamViewType("").Values() {
		all = append(all, viewCase(view))
	}
	return slices.Concat(all, streamRecordCases, streamSettingCases, streamReadingCases)
}

var streamRecordCases = []testCase{
	{name: "stream/what changes nothing leaves no record", run: func(x *exam) {
		arn := x.useStream("KEYS_ONLY")
		key, one := m{"id": "a"}, m{"id": "a", "n": 1}
		x.ok(x.remove(key).err)
		x.refused(x.put(one, args{condition: "attribute_exists(id)"}).err, conditionFailed)
		x.fill(one, one)
		x.ok(x.update(key, args{update: "SET n = :n", values: m{":n": n("1.0")}}).err)
		x.ok(x.remove(key).err)
		x.ok(x.remove(key).err)
		x.fill(one)
		equal(x, "stream", x.shown(x.all(arn, 3)), strings.Join([]string{
			recordOf("KEYS_ONLY", "INSERT", nil, nil), recordOf("KEYS_ONLY", "REMOVE", nil, nil), recordOf("KEYS_ONLY", "INSERT", nil, nil),
		}, "\n"))
	}},
	// The size of the developer guide's example: keys 5, image 21.
	// https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
	{name: "stream/sizes", run: func(x *exam) {
		x.streams()
		x.create(&dynamodb.CreateTableInput{StreamSpecification: streamOf("NEW_AND_OLD_IMAGES")}, "Id:N")
		x.fill(m{"Id": 101, "Message": "New item!"}, m{"Id": 101, "Message": "This item has changed"})
		got := x.all(x.latestStream(), 2)
		equal(x, "of the insert", *got[0].Dynamodb.SizeBytes, 26)
		equal(x, "of the change", *got[1].Dynamodb.SizeBytes, 59)
	}},
	{name: "stream/of batches, statements and transactions", run: func(x *exam) {
		arn := x.useStream("NEW_IMAGE")
		put := func(id string) ddbtypes.WriteRequest {
			return ddbtypes.WriteRequest{PutRequest: &ddbtypes.PutRequest{Item: attributes(m{"id": id})}}
		}
		suite.Get(x.client().BatchWriteItem(x.ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]ddbtypes.WriteRequest{x.table: {put("batch 1"), put("batch 2")}}}))
		suite.Get(x.client().ExecuteStatement(x.ctx, &dynamodb.ExecuteStatementInput{Statement: aws.String(`INSERT INTO "` + x.table + `" VALUE {'id':'statement'}`)}))
		suite.Get(x.client().TransactWriteItems(x.ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{
			{Put: &ddbtypes.Put{TableName: &x.table, Item: attributes(m{"id": "transaction"})}},
			{Delete: &ddbtypes.Delete{TableName: &x.table, Key: attributes(m{"id": "batch 1"})}},
			{ConditionCheck: &ddbtypes.ConditionCheck{TableName: &x.table, Key: attributes(m{"id": "batch 2"}), ConditionExpression: aws.String("attribute_exists(id)")}},
		}}))
		lines := strings.Split(x.shown(x.all(arn, 5)), "\n") // the order is by item only
		slices.Sort(lines)
		want := []string{}
		for _, id := range []string{"batch 1", "batch 2", "statement", "transaction"} {
			image := showItem(attributes(m{"id": id}))
			want = append(want, "INSERT "+image+" nothing "+image)
		}
		want = append(want, "REMOVE "+showItem(attributes(m{"id": "batch 1"}))+" nothing nothing")
		equal(x, "stream", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}},
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html
	{name: "stream/TTL says who deleted", run: func(x *exam) {
		arn := x.useStream("OLD_IMAGE")
		x.ok(x.setTTL("n", true))
		x.fill(m{"id": "a", "n": 1})
		x.ok(x.update(m{"id": "a"}, args{update: "SET n = :n", values: m{":n": int(time.Now().Unix()) - 1000}}).err)
		x.sweep()
		got := x.all(arn, 3)[2]
		equal(x, "event", string(got.EventName), "REMOVE")
		if got.UserIdentity == nil {
			x.fatalf("the record has no identity")
		}
		equal(x, "type", *got.UserIdentity.Type, "Service")
		equal(x, "principal", *got.UserIdentity.PrincipalId, "dynamodb.amazonaws.com")
	}},
	{name: "stream/an item's records are in one shard, in order", run: func(x *exam) {
		arn := x.useStream("KEYS_ONLY")
		for i := range 5 {
			for _, id := range []string{"a", "b", "c"} {
				x.fill(m{"id": id, "n": i})
			}
		}
		shardOf := map[string]string{}
		for _, r := range x.all(arn, 15) {
			id := r.Dynamodb.Keys["id"].(*streamtypes.AttributeValueMemberS).Value
			if was := shardOf[id]; was != "" {
				equal(x, "shard of "+id, *r.shard, was)
			}
			shardOf[id] = *r.shard
			if len(*r.Dynamodb.SequenceNumber) < 21 || len(*r.Dynamodb.SequenceNumber) > 40 {
				x.fatalf("sequence number %s, want 21 to 40 digits", *r.Dynamodb.SequenceNumber)
			}
		}
	}},
}
