package ddbtest

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

func (x *exam) setStream(to *ddbtypes.StreamSpecification) error {
	return x.change(func(in *dynamodb.UpdateTableInput) { in.StreamSpecification = to })
}

var streamSettingCases = []testCase{
	{name: "stream/described", run: func(x *exam) {
		arn := x.useStream("KEYS_ONLY")
		t := suite.Get(x.describe(x.table))
		equal(x, "enabled", *t.StreamSpecification.StreamEnabled, true)
		equal(x, "view type", string(t.StreamSpecification.StreamViewType), "KEYS_ONLY")
		equal(x, "ARN", arn, *t.TableArn+"/stream/"+*t.LatestStreamLabel)
		out := suite.Get(x.client().UpdateTable(x.ctx, &dynamodb.UpdateTableInput{TableName: &x.table, BillingMode: ddbtypes.BillingModePayPerRequest}))
		equal(x, "ARN after an update", *out.TableDescription.LatestStreamArn, arn)

		d := x.describeStream(&dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
		equal(x, "stream", *d.StreamArn, arn)
		equal(x, "label", *d.StreamLabel, *t.LatestStreamLabel)
		equal(x, "table", *d.TableName, x.table)
		equal(x, "its view type", string(d.StreamViewType), "KEYS_ONLY")
		equal(x, "keys", len(d.KeySchema), 1)
		equal(x, "key", *d.KeySchema[0].AttributeName+" "+string(d.KeySchema[0].KeyType), "id HASH")
		equal(x, "has a time", d.CreationRequestDateTime != nil, true)
		for _, sh := range d.Shards {
			if n := len(*sh.ShardId); n < 28 || n > 65 {
				x.fatalf("shard ID %s, want 28 to 65 characters", *sh.ShardId)
			}
			if n := len(aws.ToString(sh.SequenceNumberRange.StartingSequenceNumber)); n < 21 || n > 40 {
				x.fatalf("shard %+v, want a first sequence number of 21 to 40 digits", sh)
			}
		}
		last := d.Shards[len(d.Shards)-1].ShardId
		equal(x, "shards after the last", len(x.describeStream(&dynamodbstreams.DescribeStreamInput{StreamArn: &arn, ExclusiveStartShardId: last}).Shards), 0)
		beyond := aws.String(strings.Repeat("z", 40))
		equal(x, "shards after one that is not there", len(x.describeStream(&dynamodbstreams.DescribeStreamInput{StreamArn: &arn, ExclusiveStartShardId: beyond}).Shards), 0)

		listed := suite.Get(x.streams().ListStreams(x.ctx, &dynamodbstreams.ListStreamsInput{TableName: &x.table}))
		equal(x, "listed", len(listed.Streams), 1)
		equal(x, "listed ARN", *listed.Streams[0].StreamArn, arn)
		equal(x, "listed label", *listed.Streams[0].StreamLabel, *t.LatestStreamLabel)
	}},
	{name: "stream/none", run: func(x *exam) {
		x.streams()
		x.use("id:S")
		listed := suite.Get(x.streams().ListStreams(x.ctx, &dynamodbstreams.ListStreamsInput{TableName: &x.table}))
		equal(x, "listed", len(listed.Streams), 0)
		t := suite.Get(x.describe(x.table))
		equal(x, "has no ARN", t.LatestStreamArn == nil, true)
		equal(x, "has no specification", t.StreamSpecification == nil, true)
	}},
	{name: "stream/listed by pages", run: func(x *exam) {
		want := map[string]bool{x.useStream("KEYS_ONLY"): true, x.useStream("KEYS_ONLY"): true}
		in := &dynamodbstreams.ListStreamsInput{Limit: aws.Int32(1)}
		for len(want) > 0 {
			out := suite.Get(x.streams().ListStreams(x.ctx, in))
			if len(out.Streams) > 1 {
				x.fatalf("%d streams, want at most one", len(out.Streams))
			}
			for _, s := range out.Streams {
				delete(want, *s.StreamArn)
			}
			if out.LastEvaluatedStreamArn == nil {
				break
			}
			in.ExclusiveStartStreamArn = out.LastEvaluatedStreamArn
		}
		equal(x, "streams that were not listed", len(want), 0)
	}},
	// A disabled stream stays readable for 24 hours, and its shards are closed.
	{name: "stream/enabled and disabled", run: func(x *exam) {
		x.streams()
		x.use("id:S")
		x.fill(m{"id": "before"})
		x.refused(x.setStream(&ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(true)}), invalid)
		x.refused(x.setStream(streamOf("Fisk")), invalid)
		x.ok(x.setStream(streamOf("KEYS_ONLY")))
		arn := x.latestStream()
		x.refused(x.setStream(streamOf("KEYS_ONLY")), invalid, "already")
		x.refused(x.setStream(streamOf("OLD_IMAGE")), invalid, "already")
		x.fill(m{"id": "a"})
		x.all(arn, 1)
		x.ok(x.setStream(&ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(false)}))
		x.fill(m{"id": "after"})
		var d *streamtypes.StreamDescription
		x.until("disabled", func() bool {
			d = x.describeStream(&dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
			return d.StreamStatus == streamtypes.StreamStatusDisabled
		})
		for _, sh := range d.Shards {
			if sh.SequenceNumberRange.EndingSequenceNumber == nil {
				x.fatalf("shard %s is open", *sh.ShardId)
			}
			if _, ended := x.fromStart(arn, sh); !ended {
				x.fatalf("shard %s does not end", *sh.ShardId)
			}
		}
		equal(x, "records", x.shown(x.all(arn, 1)), recordOf("KEYS_ONLY", "INSERT", nil, nil))
		t := suite.Get(x.describe(x.table))
		equal(x, "has no specification", t.StreamSpecification == nil, true)
		x.refused(x.setStream(&ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(false)}), invalid, "Table has no stream to disable")
		x.ok(x.setStream(streamOf("NEW_IMAGE")))
		if again := x.latestStream(); again == arn {
			x.fatalf("the new stream has the ARN of the old one, %s", arn)
		}
	}},
}

// oneShard is a stream with the items n = 1, 2, 3 of "a", and the shard that has their records.
func (x *exam) oneShard() (arn string, got []located) {
	arn = x.useStream("NEW_IMAGE")
	x.fill(m{"id": "a", "n": 1}, m{"id": "a", "n": 2}, m{"id": "a", "n": 3})
	return arn, x.all(arn, 3)
}

var streamReadingCases = []testCase{
	{name: "stream/iterators", run: func(x *exam) {
		arn, all := x.oneShard()
		second := all[1]
		shown := func(out *dynamodbstreams.GetRecordsOutput) string {
			var lines []string
			for _, r := range out.Records {
				lines = append(lines, x.show(r))
			}
			return strings.Join(lines, "\n")
		}
		at := x.records(x.iterator(arn, second.shard, streamtypes.ShardIteratorTypeAtSequenceNumber, second.Dynamodb.SequenceNumber), 0)
		equal(x, "at", shown(at), x.shown(all[1:]))
		after := x.records(x.iterator(arn, second.shard, streamtypes.ShardIteratorTypeAfterSequenceNumber, second.Dynamodb.SequenceNumber), 0)
		equal(x, "after", shown(after), x.shown(all[2:]))
		next := x.records(after.NextShardIterator, 0)
		equal(x, "at the end", shown(next), "")
		equal(x, "Records at the end is a list", next.Records != nil, true)
		var start *string
		for _, sh := range x.shards(arn) {
			if *sh.ShardId == *second.shard {
				start = sh.SequenceNumberRange.StartingSequenceNumber
			}
		}
		equal(x, "from the shard's first number", shown(x.records(x.iterator(arn, second.shard, streamtypes.ShardIteratorTypeAtSequenceNumber, start), 0)), x.shown(all))
		equal(x, "from the horizon", shown(x.records(x.iterator(arn, second.shard, streamtypes.ShardIteratorTypeTrimHorizon, nil), 0)), x.shown(all))
		// An iterator can be used again.
		latest := x.iterator(arn, second.shard, streamtypes.ShardIteratorTypeLatest, nil)
		equal(x, "latest", shown(x.records(latest, 0)), "")
		x.fill(m{"id": "a", "n": 4})
		x.until("a later record", func() bool { return len(x.records(latest, 0).Records) == 1 })
		equal(x, "a later record by the last iterator", shown(x.records(next.NextShardIterator, 0)), x.show(x.all(arn, 4)[3].Record))
	}},
	{name: "stream/pages", run: func(x *exam) {
		arn, all := x.oneShard()
		it := x.iterator(arn, all[0].shard, streamtypes.ShardIteratorTypeTrimHorizon, nil)
		for i := range all {
			out := x.records(it, 1)
			equal(x, "records", len(out.Records), 1)
			equal(x, "record", x.show(out.Records[0]), x.show(all[i].Record))
			it = out.NextShardIterator
		}
		equal(x, "records at the end", len(x.records(it, 1000).Records), 0)
	}},
	{name: "stream/reading refused", run: func(x *exam) {
		arn, all := x.oneShard()
		shard, sequence := all[0].shard, all[0].Dynamodb.SequenceNumber
		iterator := func(set func(*dynamodbstreams.GetShardIteratorInput)) error {
			in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: shard, ShardIteratorType: streamtypes.ShardIteratorTypeLatest}
			set(in)
			_, err := x.streams().GetShardIterator(x.ctx, in)
			return err
		}
		type in = *dynamodbstreams.GetShardIteratorInput
		x.refused(iterator(func(i in) { i.ShardIteratorType = streamtypes.ShardIteratorTypeAtSequenceNumber }), invalid)
		x.refused(iterator(func(i in) { i.ShardIteratorType = streamtypes.ShardIteratorTypeAfterSequenceNumber }), invalid)
		x.refused(iterator(func(i in) { i.SequenceNumber = sequence }), invalid)
		x.refused(iterator(func(i in) { i.ShardIteratorType, i.SequenceNumber = "TRIM_HORIZON", sequence }), invalid)
		x.refused(iterator(func(i in) { i.ShardIteratorType = "bulle" }), invalid)
		x.refused(iterator(func(i in) { i.StreamArn = aws.String(strings.Repeat("no stream", 6)) }), invalid)
		x.refused(iterator(func(i in) { i.ShardId = aws.String(strings.Repeat("no shard", 5)) }), notFound)
		x.refused(iterator(func(i in) { i.StreamArn = aws.String(strings.Replace(arn, "/stream/20", "/stream/19", 1)) }), notFound)
		records := func(in *dynamodbstreams.GetRecordsInput) error {
			_, err := x.streams().GetRecords(x.ctx, in)
			return err
		}
		it := x.iterator(arn, shard, streamtypes.ShardIteratorTypeLatest, nil)
		x.ok(records(&dynamodbstreams.GetRecordsInput{ShardIterator: it, Limit: aws.Int32(1000)}))
		for _, limit := range []int32{1001, 0, -1} {
			x.refused(records(&dynamodbstreams.GetRecordsInput{ShardIterator: it, Limit: &limit}), invalid, "imit")
		}
		x.refused(records(&dynamodbstreams.GetRecordsInput{ShardIterator: aws.String(strings.Repeat("no iterator", 5))}), invalid)
		describe := func(in *dynamodbstreams.DescribeStreamInput) error {
			_, err := x.streams().DescribeStream(x.ctx, in)
			return err
		}
		x.refused(describe(&dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(strings.Repeat("no stream", 6))}), invalid)
		x.refused(describe(&dynamodbstreams.DescribeStreamInput{StreamArn: &arn, Limit: aws.Int32(0)}), invalid)
		list := func(in *dynamodbstreams.ListStreamsInput) error {
			_, err := x.streams().ListStreams(x.ctx, in)
			return err
		}
		x.refused(list(&dynamodbstreams.ListStreamsInput{Limit: aws.Int32(0)}), invalid)
		x.refused(list(&dynamodbstreams.ListStreamsInput{Limit: aws.Int32(101)}), invalid)
		x.refused(list(&dynamodbstreams.ListStreamsInput{TableName: &x.table, ExclusiveStartStreamArn: aws.String(strings.Repeat("no stream", 6))}), invalid)
	}},
}
