package dynamooutbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// fakeRelay records what it is asked for.
type fakeRelay struct {
	asked []string
	err   error
}

func (r *fakeRelay) Drain(_ context.Context, groups ...string) error {
	r.asked = append(r.asked, "drain "+strings.Join(groups, " "))
	return r.err
}

func (r *fakeRelay) Sweep(context.Context) (outbox.Backlog, error) {
	r.asked = append(r.asked, "sweep")
	return outbox.Backlog{Groups: 7}, r.err
}

const streamARN = "arn:aws:dynamodb:us-east-1:123456789012:table/outbox/stream/2026-11-24T00:00:00.000"

// streamEvent is an event of records "EVENT pk", with the sequence numbers 100, 101, ...
func streamEvent(arn string, records ...string) json.RawMessage {
	var all []string
	for i, r := range records {
		name, pk, _ := strings.Cut(r, " ")
		all = append(all, fmt.Sprintf(`{"eventID":"%d","eventName":%q,"eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1","dynamodb":{`+
			`"ApproximateCreationDateTime":1795478400,"Keys":{"pk":{"S":%q},"seq":{"N":"3"}},"SequenceNumber":"%d","SizeBytes":24,"StreamViewType":"KEYS_ONLY"},"eventSourceARN":%q}`,
			i, name, pk, 100+i, arn))
	}
	return json.RawMessage(`{"Records":[` + strings.Join(all, ",") + `]}`)
}

func TestLambda(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	of := func(group string, err error) error { return &outbox.GroupError{Group: group, Err: err} }
	records := []string{"INSERT orders#a", "INSERT orders#b", "INSERT orders#a", "INSERT orders#c"}
	for name, c := range map[string]struct {
		event json.RawMessage
		err   error
		asked string
		want  string // JSON, or "error"
	}{
		"records":              {event: streamEvent(streamARN, records...), asked: "drain a b c", want: `{"batchItemFailures":[]}`},
		"one group fails":      {event: streamEvent(streamARN, records...), err: errors.Join(of("a", away)), asked: "drain a b c", want: `{"batchItemFailures":[{"itemIdentifier":"100"}]}`},
		"two groups fail":      {event: streamEvent(streamARN, records...), err: errors.Join(of("c", away), of("b", away)), asked: "drain a b c", want: `{"batchItemFailures":[{"itemIdentifier":"101"},{"itemIdentifier":"103"}]}`},
		"a group is halted":    {event: streamEvent(streamARN, records...), err: errors.Join(of("a", outbox.ErrHalted), of("c", away)), asked: "drain a b c", want: `{"batchItemFailures":[{"itemIdentifier":"103"}]}`},
		"all are halted":       {event: streamEvent(streamARN, records[0]), err: of("a", outbox.ErrHalted), asked: "drain a", want: `{"batchItemFailures":[]}`},
		"the relay stops":      {event: streamEvent(streamARN, records...), err: errors.Join(of("a", away), outbox.ErrDenied), asked: "drain a b c", want: "error"},
		"an error of no group": {event: streamEvent(streamARN, records...), err: away, asked: "drain a b c", want: "error"},
		"other event names":    {event: streamEvent(streamARN, "REMOVE orders#a", "MODIFY orders#b", "UPSERT orders#c"), want: `{"batchItemFailures":[]}`},
		"among others":         {event: streamEvent(streamARN, "REMOVE orders#a", "INSERT orders#b"), err: of("b", away), asked: "drain b", want: `{"batchItemFailures":[{"itemIdentifier":"101"}]}`},
		"other outboxes":       {event: streamEvent(streamARN, "INSERT orders2#a", "INSERT order#a", "INSERT orders#a#b"), asked: "drain a#b", want: `{"batchItemFailures":[]}`},
		"no group":             {event: streamEvent(streamARN, "INSERT orders#"), want: `{"batchItemFailures":[]}`},
		"no records":           {event: json.RawMessage(`{"Records":[]}`), want: `{"batchItemFailures":[]}`},
		"another table":        {event: streamEvent(strings.Replace(streamARN, "/outbox/", "/orders/", 1), records...), want: "error"},
		"another table, last":  {event: json.RawMessage(strings.Replace(string(streamEvent(streamARN, records...)), "]}", `,{"eventName":"REMOVE","eventSourceARN":"arn:aws:dynamodb:us-east-1:1:table/x/stream/y"}]}`, 1)), want: "error"},
		"SQS":                  {event: json.RawMessage(`{"Records":[{"messageId":"1","body":"{}","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:us-east-1:1:outbox"}]}`), want: "error"},
		"no key":               {event: json.RawMessage(`{"Records":[{"eventName":"INSERT","eventSourceARN":"` + streamARN + `","dynamodb":{"Keys":{"id":{"S":"x"}}}}]}`), want: "error"},
		"a key that is binary": {event: json.RawMessage(`{"Records":[{"eventName":"INSERT","eventSourceARN":"` + streamARN + `","dynamodb":{"Keys":{"pk":{"B":"eA=="}}}}]}`), want: "error"},
		"records are text":     {event: json.RawMessage(`{"Records":"x"}`), want: "error"},
		"schedule":             {event: json.RawMessage(`{"source":"aws.events","detail-type":"Scheduled Event","detail":{}}`), asked: "sweep", want: `{"Groups":7,"Oldest":0,"Halted":0,"Skipped":0,"Overdue":0}`},
		"schedule fails":       {event: json.RawMessage(`{}`), err: away, asked: "sweep", want: "error"},
		"null":                 {event: json.RawMessage(`null`), asked: "sweep", want: `{"Groups":7,"Oldest":0,"Halted":0,"Skipped":0,"Overdue":0}`},
		"records are null":     {event: json.RawMessage(`{"Records":null}`), asked: "sweep", want: `{"Groups":7,"Oldest":0,"Halted":0,"Skipped":0,"Overdue":0}`},
		"constant":             {event: json.RawMessage(`"sweep"`), asked: "sweep", want: `{"Groups":7,"Oldest":0,"Halted":0,"Skipped":0,"Overdue":0}`},
		"not JSON":             {event: json.RawMessage(`{"Records"`), want: "error"},
		"nothing":              {want: "error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := (&bed{T: t}).outbox(testaws.DynamoDB(nil), testBox)
			r := &fakeRelay{err: c.err}
			answer, err := o.invoke(t.Context(), r, c.event)
			got := "error"
			if err == nil {
				text, _ := json.Marshal(answer)
				got = string(text)
			}
			if got != c.want || strings.Join(r.asked, ", ") != c.asked {
				t.Errorf("asked for %q, answered %s (%v); want %q, %s", r.asked, got, err, c.asked, c.want)
			}
		})
	}
}

// With a relay: what is drained and what is halted is done, and a group that is neither comes again.
func TestStreamWithARelay(t *testing.T) {
	onRig(t, func(x *rig) {
		x.mustCommit("a", 0, 3)
		x.mustCommit("halted", 0, 2)
		x.park("halted", outbox.OnRefusedHalt, 1)
		later := encode(x.box.partition("broken"), 1, source, event("broken", 1), time.Now())
		later[attrVersion] = number(2)
		x.set(later)
		handler := x.box.Lambda(x.relay(x.box))
		answer, err := handler(x.Context(), streamEvent(streamARN, "INSERT orders#a", "INSERT orders#halted", "INSERT orders#broken"))
		text, _ := json.Marshal(answer)
		if want := `{"batchItemFailures":[{"itemIdentifier":"102"}]}`; err != nil || string(text) != want {
			x.Errorf("got %s, %v, want %s", text, err, want)
		}
		if p := x.problem("a", 3); p != "" {
			x.Error(p)
		}
		// The permission to delete is missing: nothing is drained, and the invocation fails once the relay knows.
		x.mustCommit("b", 0, 1)
		x.mustCommit("c", 0, 1)
		x.faults(fault.Rule{Op: "BatchWriteItem", Prob: 1, Do: fault.Error, Code: "AccessDeniedException"})
		answer, err = handler(x.Context(), streamEvent(streamARN, "INSERT orders#b"))
		text, _ = json.Marshal(answer)
		if want := `{"batchItemFailures":[{"itemIdentifier":"100"}]}`; err == nil && string(text) != want {
			x.Errorf("got %s, want an error or %s", text, want)
		}
		if _, err = handler(x.Context(), streamEvent(streamARN, "INSERT orders#c")); !errors.Is(err, outbox.ErrDenied) {
			x.Errorf("got %v, want ErrDenied", err)
		}
		if got := x.arrived("c"); len(got) > 0 {
			x.Errorf("%q were sent after the delete was denied", got)
		}
		x.faults()
		answer, err = handler(x.Context(), json.RawMessage(`{"source":"aws.events"}`))
		if b, ok := answer.(outbox.Backlog); !ok || b.Groups != 3 || b.Halted != 1 {
			x.Errorf("Sweep: got %v, %v, want 3 groups, of which one is halted", answer, err)
		}
	})
}

// A table that is given by its ARN is compared as a whole.
func TestStreamOfATableByARN(t *testing.T) {
	t.Parallel()
	for table, want := range map[string]bool{
		"outbox":  true,
		"outbox2": false,
		"arn:aws:dynamodb:us-east-1:123456789012:table/outbox": true,
		"arn:aws:dynamodb:eu-west-1:123456789012:table/outbox": false,
		"arn:aws:dynamodb:us-east-1:210987654321:table/outbox": false,
	} {
		o := must.Get(New(testaws.DynamoDB(nil), table, testBox, source))(t)
		r := &fakeRelay{}
		e := events.DynamoDBEvent{}
		must.Do(t, json.Unmarshal(streamEvent(streamARN, "INSERT orders#a"), &e))
		if _, err := o.stream(t.Context(), r, e); (err == nil) != want {
			t.Errorf("%s: got %v, want an error: %t", table, err, !want)
		}
	}
}

// A role that STS refuses for a moment has DynamoDB refuse nothing: the relay does not end.
func TestRefusedCredentialsAreNoDenial(t *testing.T) {
	t.Parallel()
	refused := testaws.DynamoDB(nil)
	refused = dynamodb.New(refused.Options(), func(o *dynamodb.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, &smithy.OperationError{ServiceID: "STS", Err: &smithy.GenericAPIError{Code: "AccessDenied"}}
		})
	})
	o := must.Get(New(refused, testTable, "orders", source))(t)
	e := outbox.Entry{Seq: 1, Source: source}
	e.ID, e.Group = "1", "g"
	if _, err := o.Delete(t.Context(), []outbox.Entry{e}); err == nil || errors.Is(err, outbox.ErrDenied) {
		t.Errorf("got %v, want an error without ErrDenied", err)
	}
}

// streamed returns the table's stream as the event that Lambda makes of it.
func (x *rig) streamed() json.RawMessage {
	x.Helper()
	c := dynamodbstreams.New(dynamodbstreams.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://dynamodb.local"), HTTPClient: &http.Client{Transport: x.srv},
		Credentials: x.ddb.Options().Credentials,
	})
	table := must.Get(x.ddb.DescribeTable(x.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(testTable)}))(x)
	arn := table.Table.LatestStreamArn
	stream := must.Get(c.DescribeStream(x.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn}))(x)
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
		it := must.Get(c.GetShardIterator(x.Context(), &dynamodbstreams.GetShardIteratorInput{
			StreamArn: arn, ShardId: shard.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
		}))(x)
		out := must.Get(c.GetRecords(x.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator}))(x)
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
	return must.Get(json.Marshal(map[string]any{"Records": all}))(x)
}

// The table's own stream rings for its groups: every event of it is published, and a stream that is read again changes nothing.
func TestStreamOfTheTable(t *testing.T) {
	onRig(t, func(x *rig) {
		x.mustCommit("a", 0, 3)
		x.mustCommit("b", 0, 1)
		x.park("b", outbox.OnRefusedSkip, 1) // a MODIFY
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
