package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack"
)

// saving runs localaws with a directory. stop ends it as a signal does.
func saving(t *testing.T, dir string, change ...func(*options)) (stack *localstack.Stack, stop func()) {
	t.Helper()
	o := must.Get(parse([]string{"-addr", "127.0.0.1:0", "-dir", dir, "-queues", "jobs,jobs.fifo", "-tables", "records"}, io.Discard))(t)
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, out, io.Discard, o) }()
	url := make([]byte, 64)
	n := must.Get(in.Read(url))(t)
	stack = must.Get(localstack.Start(t.Context(), func(o *localstack.Options) { o.Endpoint = strings.TrimSpace(string(url[:n])) }))(t)
	return stack, func() {
		t.Helper()
		cancel()
		must.Do(t, <-ended)
	}
}

func sendGroup(t *testing.T, stack *localstack.Stack, queue, body string) *sqs.SendMessageOutput {
	t.Helper()
	in := &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body}
	if strings.HasSuffix(queue, ".fifo") {
		in.MessageGroupId, in.MessageDeduplicationId = aws.String("g"), &body
	}
	return must.Get(stack.SQS.SendMessage(t.Context(), in))(t)
}

func receive(t *testing.T, stack *localstack.Stack, queue string) []sqstypes.Message {
	t.Helper()
	return must.Get(stack.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &queue, MaxNumberOfMessages: 10, MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
	}))(t).Messages
}

// streamed returns the names of the records that a table's stream has.
func streamed(t *testing.T, stack *localstack.Stack, table string) (names []string) {
	t.Helper()
	c := testaws.Streams(http.DefaultTransport, func(o *dynamodbstreams.Options) { o.BaseEndpoint = &stack.URL })
	arn := must.Get(stack.DynamoDB.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}))(t).Table.LatestStreamArn
	for _, sh := range must.Get(c.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn}))(t).StreamDescription.Shards {
		it := must.Get(c.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{StreamArn: arn, ShardId: sh.ShardId, ShardIteratorType: "TRIM_HORIZON"}))(t)
		for _, r := range must.Get(c.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator}))(t).Records {
			names = append(names, string(r.EventName))
		}
	}
	return names
}

// filling is a part of the things that fill makes.
type filling struct {
	inFlight, held sqstypes.Message
	first          *sqs.SendMessageOutput
	item           map[string]ddbtypes.AttributeValue
}

func fill(t *testing.T, stack *localstack.Stack) (f filling) {
	t.Helper()
	ctx, jobs, fifo := t.Context(), stack.URL+"/000000000000/jobs", stack.URL+"/000000000000/jobs.fifo"
	sendGroup(t, stack, jobs, "in flight <&> \u2028")
	f.inFlight = receive(t, stack, jobs)[0]
	sendGroup(t, stack, jobs, "visible")
	must.Get(stack.SQS.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &jobs, MessageBody: aws.String("late"), DelaySeconds: 900, MessageAttributes: map[string]sqstypes.MessageAttributeValue{
		"a": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
	}}))(t)
	f.first = sendGroup(t, stack, fifo, "one")
	sendGroup(t, stack, fifo, "two")
	f.held = must.Get(stack.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &fifo}))(t).Messages[0]
	must.Get(stack.DynamoDB.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("outbox"), BillingMode: "PAY_PER_REQUEST", StreamSpecification: &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: "NEW_AND_OLD_IMAGES"},
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: "S"}, {AttributeName: aws.String("due"), AttributeType: "N"}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: "HASH"}},
		GlobalSecondaryIndexes: []ddbtypes.GlobalSecondaryIndex{{
			IndexName: aws.String("by_due"), KeySchema: []ddbtypes.KeySchemaElement{{AttributeName: aws.String("due"), KeyType: "HASH"}}, Projection: &ddbtypes.Projection{ProjectionType: "KEYS_ONLY"},
		}},
	}))(t)
	f.item = map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: "a"}, "due": &ddbtypes.AttributeValueMemberN{Value: "1"}, "empty": &ddbtypes.AttributeValueMemberM{Value: map[string]ddbtypes.AttributeValue{}}}
	for range 2 {
		must.Get(stack.DynamoDB.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("outbox"), Item: f.item}))(t)
		f.item["v"] = &ddbtypes.AttributeValueMemberBS{Value: [][]byte{{0}, {255}}}
	}
	t.Setenv("AWS_REGION", "eu-west-1")
	elsewhere := must.Get(localstack.Start(ctx, func(o *localstack.Options) { o.Endpoint = stack.URL }))(t)
	must.Get(elsewhere.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("abroad"), Attributes: map[string]string{"VisibilityTimeout": "7"}}))(t)
	t.Setenv("AWS_REGION", "us-east-1")
	return f
}

func TestDirKeepsTheState(t *testing.T) {
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "new")
	stack, stop := saving(t, dir)
	was := fill(t, stack)
	stop()

	stack, stop = saving(t, dir)
	jobs, fifo := stack.URL+"/000000000000/jobs", stack.URL+"/000000000000/jobs.fifo"
	if got, want := states(t, stack.URL), map[string]int{"visible": 1, "in flight": 1, "delayed": 1}; !maps.Equal(got, want) {
		t.Errorf("messages are %v, want %v", got, want)
	}
	must.Get(stack.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &jobs, ReceiptHandle: was.inFlight.ReceiptHandle}))(t)
	if got := states(t, stack.URL); got["in flight"] != 0 {
		t.Errorf("a receipt handle of before deletes nothing: %v", got)
	}
	if got := receive(t, stack, fifo); len(got) != 0 {
		t.Errorf("received %d messages of a group whose first is in flight, want none", len(got))
	}
	again := sendGroup(t, stack, fifo, "one")
	if *again.MessageId != *was.first.MessageId || *again.SequenceNumber != *was.first.SequenceNumber {
		t.Errorf("a duplicate is %s %s, want %s %s", *again.MessageId, *again.SequenceNumber, *was.first.MessageId, *was.first.SequenceNumber)
	}
	must.Get(stack.SQS.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &fifo, ReceiptHandle: was.held.ReceiptHandle}))(t)
	third := sendGroup(t, stack, fifo, "three")
	var bodies []string
	for _, m := range receive(t, stack, fifo) {
		bodies = append(bodies, *m.Body+m.Attributes["ApproximateReceiveCount"])
	}
	if got, want := strings.Join(bodies, " "), "one2 two1 three1"; got != want || *third.SequenceNumber <= *again.SequenceNumber {
		t.Errorf("received %q, want %q; sequence numbers %s, %s", got, want, *again.SequenceNumber, *third.SequenceNumber)
	}
	found := must.Get(stack.DynamoDB.Query(ctx, &dynamodb.QueryInput{
		TableName: aws.String("outbox"), IndexName: aws.String("by_due"), KeyConditionExpression: aws.String("due = :one"), ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":one": was.item["due"]},
	}))(t)
	if found.Count != 1 {
		t.Errorf("the index has %d items, want 1", found.Count)
	}
	must.Get(stack.DynamoDB.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("outbox"), Key: map[string]ddbtypes.AttributeValue{"id": was.item["id"]}}))(t)
	if got, want := strings.Join(streamed(t, stack, "outbox"), " "), "INSERT MODIFY REMOVE"; got != want {
		t.Errorf("the stream has %s, want %s", got, want)
	}
	ttl := must.Get(stack.DynamoDB.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String("records")}))(t)
	if ttl.TimeToLiveDescription.TimeToLiveStatus != "ENABLED" {
		t.Errorf("the TTL of records is %s", ttl.TimeToLiveDescription.TimeToLiveStatus)
	}
	t.Setenv("AWS_REGION", "eu-west-1")
	elsewhere := must.Get(localstack.Start(ctx, func(o *localstack.Options) { o.Endpoint = stack.URL }))(t)
	abroad := must.Get(elsewhere.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: aws.String("abroad"), AttributeNames: []sqstypes.QueueAttributeName{"All"}}))(t)
	if abroad.Attributes["VisibilityTimeout"] != "7" || abroad.Attributes["QueueArn"] != "arn:aws:sqs:eu-west-1:000000000000:abroad" {
		t.Errorf("the queue in eu-west-1 has %v", abroad.Attributes)
	}
	stop()
}

// filledState is a directory with a saved state, and its lines.
func filledState(t *testing.T) (dir string, lines [][]byte) {
	t.Helper()
	dir = t.TempDir()
	stack, stop := saving(t, dir)
	fill(t, stack)
	stop()
	return dir, bytes.SplitAfter(must.Get(os.ReadFile(filepath.Join(dir, stateFile)))(t), []byte("\n"))
}

// loaded loads a file, and returns the state as it is saved again, without the first line, which has the time.
func loaded(t *testing.T, file []byte) (again []byte, err error) {
	t.Helper()
	o := options{region: defaultRegion, dir: t.TempDir()}
	must.Do(t, os.WriteFile(filepath.Join(o.dir, stateFile), file, 0o600))
	w := newWorld(o, "http://localaws", io.Discard)
	defer w.close()
	if err := w.restore(); err != nil {
		return nil, err
	}
	must.Do(t, w.save())
	_, again, _ = bytes.Cut(must.Get(os.ReadFile(filepath.Join(o.dir, stateFile)))(t), []byte("\n"))
	return again, nil
}

func TestDirSavesTheSameAgain(t *testing.T) {
	_, lines := filledState(t)
	again, err := loaded(t, bytes.Join(lines, nil))
	if err != nil {
		t.Fatal(err)
	}
	if want := bytes.Join(lines[1:], nil); !bytes.Equal(again, want) {
		t.Errorf("saved again it is\n%s\nwant\n%s", again, want)
	}
}

// A file that lacks anything is not loaded, and the error names the line.
func TestDirDamaged(t *testing.T) {
	dir, lines := filledState(t)
	lines = lines[:len(lines)-1] // behind the last newline is nothing
	refused := func(what string, file []byte, at int) {
		t.Helper()
		_, err := loaded(t, file)
		if want := "line " + strconv.Itoa(at) + ":"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", what, err, want)
		}
	}
	join := func(parts ...[][]byte) []byte { return bytes.Join(slices.Concat(parts...), nil) }
	for i, l := range lines {
		refused("cut in the middle of a line", append(join(lines[:i]), l[:len(l)/2]...), i+1)
		refused("cut behind a line", join(lines[:i]), i+1)
		refused("a line that is no JSON", join(lines[:i], [][]byte{[]byte("x\n")}, lines[i+1:]), i+1)
		if _, err := loaded(t, join(lines[:i], lines[i+1:])); err == nil {
			t.Errorf("without line %d: got nil, want an error", i+1)
		}
		if _, err := loaded(t, join(lines[:i+1], lines[i:])); err == nil {
			t.Errorf("with line %d twice: got nil, want an error", i+1)
		}
	}
	refused("more behind the end", append(join(lines), 'x'), len(lines)+1)
	refused("of another version", bytes.Replace(join(lines), []byte(`"Version":1`), []byte(`"Version":2`), 1), 1)

	// A save that a kill has ended leaves a file that is not read, and the state before it.
	must.Do(t, os.WriteFile(filepath.Join(dir, newStateFile), lines[0], 0o600))
	stack, stop := saving(t, dir)
	if n := states(t, stack.URL)["visible"]; n != 1 {
		t.Errorf("%d visible messages, want 1", n)
	}
	stop()
	must.Do(t, os.WriteFile(filepath.Join(dir, stateFile), lines[0], 0o600))
	err := run(t.Context(), io.Discard, io.Discard, options{addr: "127.0.0.1:0", region: defaultRegion, dir: dir})
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("started on a damaged file: %v", err)
	}
}

func TestDirIsSavedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	stack, stop := saving(t, dir, func(o *options) { o.saveInterval = time.Millisecond })
	defer stop()
	sendGroup(t, stack, stack.URL+"/000000000000/jobs", "not yet stopped")
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(dir, stateFile)); err == nil && bytes.Contains(text, []byte("not yet stopped")) {
			return
		}
		if time.Since(begin) > 2*time.Minute {
			t.Fatal("the message was not saved within 2 min")
		}
	}
}
