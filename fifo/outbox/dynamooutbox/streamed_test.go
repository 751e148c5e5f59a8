package dynamooutbox

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// streamed returns the table's stream as the event that Lambda makes of it.
func (x *rig) streamed() json.RawMessage {
	x.Helper()
	c := dynamodbstreams.New(dynamodbstreams.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://dynamodb.local"), HTTPClient: &http.Client{Transport: x.srv},
		Credentials: x.ddb.Options().Credentials,
	})
	must := func(err error) {
		x.Helper()
		if err != nil {
			x.Fatal(err)
		}
	}
	table, err := x.ddb.DescribeTable(x.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(testTable)})
	must(err)
	arn := table.Table.LatestStreamArn
	stream, err := c.DescribeStream(x.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
	must(err)
	type change struct {
		Keys           map[string]any
		SequenceNumber *string
		StreamViewType streamtypes.StreamViewType
	}
	type record struct {
		EventName streamtypes.OperationType `json:"eventName"`
		Change    change                    `json:"dynamodb"`
		ARN       *string                   `json:"eventSourceARN"`
	}
	all := []record{}
	for _, shard := range stream.StreamDescription.Shards {
		it, err := c.GetShardIterator(x.Context(), &dynamodbstreams.GetShardIteratorInput{StreamArn: arn, ShardId: shard.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon})
		must(err)
		out, err := c.GetRecords(x.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator})
		must(err)
		for _, r := range out.Records {
			keys := map[string]any{}
			for name, v := range r.Dynamodb.Keys {
				switch v := v.(type) {
				case *streamtypes.AttributeValueMemberS:
					keys[name] = map[string]string{"S": v.Value}
				case *streamtypes.AttributeValueMemberN:
					keys[name] = map[string]string{"N": v.Value}
				}
			}
			all = append(all, record{r.EventName, change{keys, r.Dynamodb.SequenceNumber, r.Dynamodb.StreamViewType}, arn})
		}
	}
	raw, err := json.Marshal(map[string]any{"Records": all})
	must(err)
	return raw
}

// The table's own stream rings for its groups: every event of it is published, and a stream that is read again changes nothing.
func TestStreamOfTheTable(t *testing.T) {
	t.Parallel()
	inRig(t, func(x *rig) {
		x.mustCommit("a", 0, 3)
		x.mustCommit("b", 0, 1)
		x.park("b", outbox.Skip, 1) // a MODIFY
		x.mustCommit("b", 1, 2)
		handler := x.box.Lambda(x.relay(x.box))
		for range 2 {
			answer, err := handler(x.Context(), x.streamed())
			if text, _ := json.Marshal(answer); err != nil || string(text) != `{"batchItemFailures":[]}` {
				x.Errorf("got %s, %v, want success", text, err)
			}
		}
		time.Sleep(time.Hour)
		if p := x.problem("a", 3); p != "" || len(x.queue.Messages(x.url)) != 5 {
			x.Errorf("%s, %d messages, want 5", p, len(x.queue.Messages(x.url)))
		}
		x.wantStored("orders#b 1")
	})
}
