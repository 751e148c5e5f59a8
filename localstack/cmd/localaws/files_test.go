package main

import (
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
)

func written(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func connected(t *testing.T, url string) *localstack.Stack {
	t.Helper()
	return must.Get(localstack.Start(t.Context(), func(o *localstack.Options) { o.Endpoint = url }))(t)
}

func attributesOf(t *testing.T, s *localstack.Stack, queue string) map[string]string {
	t.Helper()
	return must.Get(s.SQS.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &queue, AttributeNames: []sqstypes.QueueAttributeName{"All"},
	}))(t).Attributes
}

// README's template runs as it is: its resources are there, and those of other types are named.
func TestTemplate(t *testing.T) {
	t.Parallel()
	url, said := started(t, "-template", "../../../template.yaml", "-param", "AWS::StackName=shop", "-param", "Keep=false")
	if !strings.Contains(said, "\n  OrdersQueuePolicy (AWS::SQS::QueuePolicy)\n") {
		t.Errorf("does not name what it leaves out: %s", said)
	}
	s := connected(t, url)
	a := attributesOf(t, s, "shop-orders.fifo")
	if want := `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:shop-orders-dlq.fifo","maxReceiveCount":5}`; a["VisibilityTimeout"] != "180" || a["FifoQueue"] != "true" || a["RedrivePolicy"] != want {
		t.Errorf("shop-orders.fifo: %v, want the redrive policy %s", a, want)
	}
	for range 2 { // a reset makes them again
		table := must.Get(s.DynamoDB.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("OutboxTable")}))(t).Table
		if len(table.KeySchema) != 2 || table.StreamSpecification.StreamViewType != ddbtypes.StreamViewTypeKeysOnly {
			t.Errorf("OutboxTable: %+v", table)
		}
		ttl := must.Get(s.DynamoDB.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String("DedupTable")}))(t)
		if got := aws.ToString(ttl.TimeToLiveDescription.AttributeName); got != "expiration" {
			t.Errorf("DedupTable's TTL: %q", got)
		}
		if status, body := do(t, "POST", url+"/_localaws/reset", nil, nil); status != 204 {
			t.Fatalf("reset: %d %s", status, body)
		}
	}
}

const settings = `
queues:
  orders: {VisibilityTimeout: 60, RedrivePolicy: {deadLetterTargetArn: orders-dlq, maxReceiveCount: 3}, Tags: {team: shop}}
  orders-dlq:
  in.fifo: {ContentBasedDeduplication: true}
tables:
  ledger:
    key: account
    sort: {at: N}
    indexes: {by-state: {key: state, sort: {at: N}, project: [total]}}
    localIndexes: {by-total: {sort: {total: N}, project: KEYS_ONLY}}
    ttl: ends
    stream: NEW_AND_OLD_IMAGES
    items:
      - {account: "7", at: 1, total: 12.5, open: true, tags: [a, 1], of: {x: null}}
      - {account: 007, at: 2}
`

func TestConfig(t *testing.T) {
	t.Parallel()
	url, _ := started(t, "-config", written(t, "local.yaml", settings))
	s := connected(t, url)
	if a := attributesOf(t, s, "orders"); a["VisibilityTimeout"] != "60" || !strings.Contains(a["RedrivePolicy"], ":orders-dlq") {
		t.Errorf("orders: %v", a)
	}
	if a := attributesOf(t, s, "in.fifo"); a["ContentBasedDeduplication"] != "true" {
		t.Errorf("in.fifo: %v", a)
	}
	table := must.Get(s.DynamoDB.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("ledger")}))(t).Table
	if len(table.GlobalSecondaryIndexes) != 1 || len(table.LocalSecondaryIndexes) != 1 || table.LatestStreamArn == nil || len(table.AttributeDefinitions) != 4 {
		t.Errorf("ledger: %+v", table)
	}
	if got := len(must.Get(s.DynamoDB.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("ledger")}))(t).Items); got != 2 {
		t.Errorf("%d items, want 2", got)
	}
	item := must.Get(s.DynamoDB.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("ledger"), Key: map[string]ddbtypes.AttributeValue{
		"account": &ddbtypes.AttributeValueMemberS{Value: "7"}, "at": &ddbtypes.AttributeValueMemberN{Value: "1"},
	}}))(t).Item
	total, _ := item["total"].(*ddbtypes.AttributeValueMemberN)
	open, _ := item["open"].(*ddbtypes.AttributeValueMemberBOOL)
	if total == nil || total.Value != "12.5" || open == nil || !open.Value {
		t.Errorf("item: %v", item)
	}
}

// A file that localaws can't create is an error that names the place, and localaws does not serve.
func TestFileErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"queues: {}\nqueue: {}":                 `local.yaml:2: unknown property "queue"`,
		"queues:\n  a: {VisibilityTimout: 1}":   "local.yaml:2: queues.a.VisibilityTimout: unknown attribute",
		"queues:\n  a: {VisibilityTimeout: -1}": "queue a:",
		"queues:\n  a: {RedrivePolicy: {deadLetterTargetArn: nowhere, maxReceiveCount: 1}}": "queue a: RedrivePolicy:",
		"tables:\n  t:\n    key: {id: X}":                       `local.yaml:3: tables.t.key: has the type "X", must be S, N or B`,
		"tables: {t: }":                                         "tables.t: a key is missing",
		"tables: {t: {key: id, sort: {id: N}}}":                 "id has the types S and N",
		"tables: {abc: {key: id, items: [{x: 1}]}}":             "table abc: item 1:",
		"functions: {f: {Timeout: 0}}":                          `functions.f.Timeout: is "0", must be a whole number from 1 to 900`,
		"functions: {f: {Events: [{queue: a, table: b}]}}":      "functions.f.Events[0]: needs either a queue or a table",
		"functions: {f: {Events: [{queue: a, BatchSizes: 1}]}}": `unknown property "BatchSizes"`,
		"functions: {f: {Events: [{queue: a}, {queue: a}]}}":    "two mappings are named",
		"a: [": "local.yaml: yaml:",
	} {
		o := must.Get(parse([]string{"-addr", "127.0.0.1:0", "-config", written(t, "local.yaml", text)}, io.Discard))(t)
		var out strings.Builder
		if err := run(t.Context(), &out, io.Discard, o); err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%s: %v, printed %q, want %s", text, err, &out, want)
		}
	}
}

// The file of compose.yaml has the resources that LocalStack's script creates.
func TestComposeConfig(t *testing.T) {
	t.Parallel()
	url, _ := started(t, "-config", "../../init/localaws.yaml")
	s := connected(t, url)
	queues := must.Get(s.SQS.ListQueues(t.Context(), &sqs.ListQueuesInput{}))(t).QueueUrls
	tables := must.Get(s.DynamoDB.ListTables(t.Context(), &dynamodb.ListTablesInput{}))(t).TableNames
	if len(queues) != 4 || !slices.Equal(tables, []string{"dedup", "ledger"}) || !strings.Contains(attributesOf(t, s, "orders.fifo")["RedrivePolicy"], "orders-dlq.fifo") {
		t.Errorf("queues %q, tables %q", queues, tables)
	}
}

// The health check fails until all resources exist, and where nothing listens.
func TestHealth(t *testing.T) {
	t.Parallel()
	url, _ := started(t, "-queues", "jobs")
	addr := strings.TrimPrefix(url, "http://")
	if err := checkHealth(t.Context(), []string{"-addr", addr}, io.Discard); err != nil {
		t.Error(err)
	}
	starting := httptest.NewServer(newWorld(options{}, "", io.Discard).handler())
	defer starting.Close()
	for _, args := range [][]string{{"-addr", strings.TrimPrefix(starting.URL, "http://")}, {"-addr", "127.0.0.1:1"}, {"-addr", "nowhere"}, {"x"}} {
		if err := checkHealth(t.Context(), args, io.Discard); err == nil {
			t.Errorf("%q: healthy", args)
		}
	}
}

// A saved queue gets the attributes that the file has now, and keeps its messages.
func TestChangedQueue(t *testing.T) {
	dir := t.TempDir()
	with := func(timeout string) func(*options) {
		file := written(t, "local.yaml", "queues: {work: {VisibilityTimeout: "+timeout+"}, work.fifo: {VisibilityTimeout: "+timeout+"}}")
		return func(o *options) { o.config = file }
	}
	s, stop := saving(t, dir, with("60"))
	sendGroup(t, s, s.URL+"/000000000000/work", "kept")
	stop()
	s, stop = saving(t, dir, with("90"))
	defer stop()
	for _, queue := range []string{"work", "work.fifo"} {
		if got := attributesOf(t, s, queue)["VisibilityTimeout"]; got != "90" {
			t.Errorf("%s: the visibility timeout is %s, want 90", queue, got)
		}
	}
	if got := receive(t, s, s.URL+"/000000000000/work"); len(got) != 1 {
		t.Errorf("%d messages, want 1", len(got))
	}
}
